#include "slm/beam.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace treelm {

namespace {

constexpr std::uint32_t no_place = 0xFFFFFFFF;

std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

void put(std::string& data, std::uint64_t number) {
  while (number > 0x7F) {
    data.push_back(static_cast<char>(0x80 | (number & 0x7F)));
    number >>= 7;
  }
  data.push_back(static_cast<char>(number));
}

class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  std::uint32_t number(std::uint64_t below) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      if (data_.empty()) fail();
      const auto byte = static_cast<unsigned char>(data_.front());
      data_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        if (value >= below) fail();
        return static_cast<std::uint32_t>(value);
      }
    }
    fail();
  }
  double real() {
    if (data_.size() < sizeof(double)) fail();
    double value;
    std::memcpy(&value, data_.data(), sizeof value);
    data_.remove_prefix(sizeof value);
    if (!std::isfinite(value) || value > 1e-6) fail();
    return value;
  }
  std::size_t left() const { return data_.size(); }
  [[noreturn]] static void fail() { throw Error(ErrorCode::argument, "these bytes are not a saved state"); }

 private:
  std::string_view data_;
};

}  // namespace

std::uint64_t head_hash(std::uint64_t below, std::uint32_t word, std::uint32_t label) {
  return mix(below ^ mix((static_cast<std::uint64_t>(word) << 32) | label));
}

int compare_heads(const std::vector<SlmHead>& heads, std::uint32_t first, std::uint32_t second) {
  while (first != second) {
    const SlmHead &one = heads[first], &two = heads[second];
    if (one.word != two.word) return one.word < two.word ? -1 : 1;
    if (one.label != two.label) return one.label < two.label ? -1 : 1;
    first = one.below;
    second = two.below;
  }
  return 0;
}

void actions_before(const std::vector<SlmAction>& actions, std::uint32_t place, std::vector<std::uint32_t>& path) {
  path.clear();
  for (; place != 0; place = actions[place].before) path.push_back(actions[place].action);
  std::reverse(path.begin(), path.end());
}

SlmBeam initial_beam(const SlmShape& shape) {
  SlmBeam beam;
  beam.heads.push_back({0, shape.start(), shape.boundary(), 0});
  beam.actions.push_back({0, 0});
  beam.hypotheses.push_back({});
  beam.words.assign(shape.order - 1, shape.start());
  return beam;
}

void SlmBeam::compact() {
  std::vector<std::uint32_t> place(heads.size(), no_place);
  place[0] = 0;
  for (const SlmHypothesis& hypothesis : hypotheses)
    for (std::uint32_t at = hypothesis.top; place[at] == no_place; at = heads[at].below) place[at] = 1;
  std::uint32_t kept = 1;
  for (std::uint32_t at = 1; at < heads.size(); ++at) {
    if (place[at] == no_place) continue;
    SlmHead head = heads[at];
    head.below = place[head.below];  // a head lies above those made before it
    place[at] = kept;
    heads[kept++] = head;
  }
  heads.resize(kept);
  for (SlmHypothesis& hypothesis : hypotheses) hypothesis.top = place[hypothesis.top];
}

bool SlmBeam::same(const SlmBeam& other) const {
  if (initial != other.initial || words != other.words || hypotheses.size() != other.hypotheses.size()) return false;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const SlmHypothesis &one = hypotheses[i], &two = other.hypotheses[i];
    if (std::bit_cast<std::uint64_t>(one.score) != std::bit_cast<std::uint64_t>(two.score)) return false;
    if (one.depth != two.depth || one.moves != two.moves) return false;
    std::uint32_t first = one.top, second = two.top;
    for (std::uint32_t left = one.depth; left > 0; --left) {
      const SlmHead &a = heads[first], &b = other.heads[second];
      if (a.word != b.word || a.label != b.label) return false;
      first = a.below;
      second = b.below;
    }
  }
  return true;
}

std::uint64_t SlmBeam::hash() const {
  std::uint64_t value = initial ? 1 : 2;
  for (const std::uint32_t word : words) value = mix(value ^ word);
  for (const SlmHypothesis& hypothesis : hypotheses) {
    value = mix(value ^ std::bit_cast<std::uint64_t>(hypothesis.score));
    value = mix(value ^ heads[hypothesis.top].hash ^ hypothesis.moves);
  }
  return value;
}

std::string SlmBeam::to_bytes() const {
  std::string data;
  put(data, initial ? 1 : 0);
  put(data, heads[0].word);
  put(data, heads[0].label);
  put(data, words.size());
  for (const std::uint32_t word : words) put(data, word);
  put(data, hypotheses.size());
  std::vector<const SlmHead*> path;
  for (const SlmHypothesis& hypothesis : hypotheses) {
    char score[sizeof(double)];
    std::memcpy(score, &hypothesis.score, sizeof score);
    data.append(score, sizeof score);
    put(data, hypothesis.moves);
    put(data, hypothesis.depth);
    path.clear();
    for (std::uint32_t at = hypothesis.top; at != 0; at = heads[at].below) path.push_back(&heads[at]);
    for (std::size_t i = path.size(); i-- > 0;) {
      put(data, path[i]->word);
      put(data, path[i]->label);
    }
  }
  return data;
}

SlmBeam SlmBeam::from_bytes(std::string_view data) {
  constexpr std::uint64_t any = 1ULL << 32;
  Reader reader(data);
  SlmBeam beam;
  beam.initial = reader.number(2) == 1;
  const std::uint32_t start = reader.number(any), boundary = reader.number(any);
  beam.heads.push_back({0, start, boundary, 0});
  beam.actions.push_back({0, 0});
  beam.words.resize(reader.number(65));
  for (std::uint32_t& word : beam.words) word = reader.number(any);
  const std::uint32_t count = reader.number(reader.left() + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    SlmHypothesis hypothesis;
    hypothesis.score = reader.real();
    hypothesis.moves = reader.number(1ULL << 20);
    hypothesis.depth = reader.number(reader.left() + 1);
    if (i > 0 && hypothesis.moves < beam.hypotheses.back().moves) Reader::fail();
    for (std::uint32_t depth = 0; depth < hypothesis.depth; ++depth) {
      const std::uint32_t word = reader.number(any), label = reader.number(any);
      const std::uint64_t hash = head_hash(beam.heads[hypothesis.top].hash, word, label);
      beam.heads.push_back({hypothesis.top, word, label, hash});
      hypothesis.top = static_cast<std::uint32_t>(beam.heads.size() - 1);
    }
    beam.hypotheses.push_back(hypothesis);
  }
  if (reader.left() != 0) Reader::fail();
  return beam;
}

bool SlmBeam::fits(const SlmShape& shape) const {
  if (words.size() + 1 != shape.order) return false;
  for (const std::uint32_t word : words)
    if (word > shape.start() || word == shape.end()) return false;
  if (heads[0].word != shape.start() || heads[0].label != shape.boundary()) return false;
  if (shape.heads == 0 && (heads.size() > 1 || hypotheses.size() > 1)) return false;
  for (std::size_t at = 1; at < heads.size(); ++at)
    if (heads[at].word >= shape.words || heads[at].label >= shape.boundary()) return false;
  return true;
}

}  // namespace treelm
