#include "hhmm/beam.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/random.h"

namespace treelm {

namespace {

class Hasher {
 public:
  explicit Hasher(std::uint64_t seed) : value_(mix64(seed)) {}
  void add(std::uint64_t number) { value_ = mix64(value_ ^ number); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

std::uint64_t packed(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

void add_stacks(const HhmmBeam& beam, Hasher& hasher) {
  hasher.add(packed(beam.initial, beam.single));
  hasher.add(packed(static_cast<std::uint32_t>(beam.nodes.size()), static_cast<std::uint32_t>(beam.stacks.size())));
  for (const HhmmBeam::Node& node : beam.nodes) {
    hasher.add(packed(node.parent, node.active));
    hasher.add(node.awaited);
  }
  for (const HhmmBeam::Stack& stack : beam.stacks) hasher.add(packed(stack.node, stack.active));
  for (const std::uint32_t word : beam.before) hasher.add(word);
}

void put(std::string& out, std::uint64_t number) {
  for (; number > 0x7F; number >>= 7) out.push_back(static_cast<char>(static_cast<std::uint8_t>(number & 0x7F) | 0x80));
  out.push_back(static_cast<char>(number));
}

[[noreturn]] void damaged() { throw Error(ErrorCode::table, "these bytes are not a saved state"); }

class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}
  std::uint64_t number() {
    std::uint64_t found = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (place_ == data_.size() || shift > 63) damaged();
      const auto byte = static_cast<std::uint8_t>(data_[place_++]);
      if (shift == 63 && byte > 1) damaged();
      found |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) {
        if (byte == 0 && shift > 0) damaged();  // longer than it need be
        return found;
      }
    }
  }
  std::uint32_t small() {
    const std::uint64_t found = number();
    if (found > 0x7FFFFFFFu) damaged();
    return static_cast<std::uint32_t>(found);
  }
  // A number of things that take at least `least` bytes each.
  std::uint32_t count(std::size_t least) {
    const std::uint32_t found = small();
    if (found > (data_.size() - place_) / least) damaged();
    return found;
  }
  bool done() const { return place_ == data_.size(); }

 private:
  std::string_view data_;
  std::size_t place_ = 0;
};

constexpr std::uint8_t initial_flag = 1, single_flag = 2, before_flag = 4;

}  // namespace

void HhmmBeam::set_hash() {
  // Four at once: none waits for the one before.
  Hasher nodes_of(0), awaited_of(1), stacks_of(2), weights_of(3);
  nodes_of.add(packed(initial, single));
  for (const Node& node : nodes) {
    nodes_of.add(packed(node.parent, node.active));
    awaited_of.add(node.awaited);
  }
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    stacks_of.add(packed(stacks[i].node, stacks[i].active));
    weights_of.add(std::bit_cast<std::uint64_t>(weights[i]));
  }
  for (const std::uint32_t word : before) awaited_of.add(word);
  for (const Hasher& each : {awaited_of, stacks_of, weights_of}) nodes_of.add(each.value());
  hash = nodes_of.value();
}

bool HhmmBeam::same(const HhmmBeam& other) const {
  return hash == other.hash && initial == other.initial && single == other.single && nodes == other.nodes &&
         stacks == other.stacks && weights == other.weights && before == other.before;
}

std::size_t HhmmBeam::bytes() const {
  return sizeof(*this) + nodes.size() * sizeof(Node) + stacks.size() * sizeof(Stack) + weights.size() * sizeof(double) +
         before.size() * sizeof(std::uint32_t);
}

std::vector<std::uint8_t> HhmmBeam::node_depths() const {
  std::vector<std::uint8_t> depths(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) depths[i] = static_cast<std::uint8_t>(depths[nodes[i].parent] + 1);
  return depths;
}

std::string HhmmBeam::to_bytes() const {
  std::string out;
  put(out, (initial ? initial_flag : 0u) | (single ? single_flag : 0u) | (before.empty() ? 0u : before_flag));
  if (!before.empty()) {
    put(out, before.size());
    for (const std::uint32_t word : before) put(out, word);
  }
  put(out, nodes.size() - 1);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    put(out, nodes[i].parent - nodes[i - 1].parent);
    put(out, nodes[i].active);
    put(out, nodes[i].awaited);
  }
  put(out, stacks.size());
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    put(out, stacks[i].node - (i == 0 ? 0 : stacks[i - 1].node));
    put(out, stacks[i].active);
    if (single)
      put(out, std::bit_cast<std::uint32_t>(static_cast<float>(weights[i])));
    else
      put(out, std::bit_cast<std::uint64_t>(weights[i]));
  }
  return out;
}

HhmmBeam HhmmBeam::from_bytes(std::string_view data) {
  Bytes bytes(data);
  HhmmBeam beam;
  const std::uint32_t flags = bytes.small();
  if (flags > (initial_flag | single_flag | before_flag)) damaged();
  beam.initial = (flags & initial_flag) != 0;
  beam.single = (flags & single_flag) != 0;
  if ((flags & before_flag) != 0) {
    const std::uint32_t length = bytes.count(1);
    if (length == 0 || length > longest_hhmm_context) damaged();
    for (std::uint32_t i = 0; i < length; ++i) beam.before.push_back(bytes.small());
  }
  for (std::uint32_t rest = bytes.count(3); rest > 0; --rest) {
    const Node& before = beam.nodes.back();
    const std::uint64_t parent = std::uint64_t{before.parent} + bytes.small();
    const Node node{static_cast<std::uint32_t>(parent), bytes.small(), bytes.small()};
    if (parent >= beam.nodes.size()) damaged();
    const bool ascending = beam.nodes.size() == 1 || std::tie(before.parent, before.active, before.awaited) <
                                                         std::tie(node.parent, node.active, node.awaited);
    if (!ascending) damaged();
    beam.nodes.push_back(node);
  }
  double sum = 0;
  for (std::uint32_t rest = bytes.count(3); rest > 0; --rest) {
    const bool first = beam.stacks.empty();
    const std::uint64_t node = std::uint64_t{first ? 0 : beam.stacks.back().node} + bytes.small();
    const Stack stack{static_cast<std::uint32_t>(node), bytes.small()};
    if (node >= beam.nodes.size()) damaged();
    if (!first && std::tie(beam.stacks.back().node, beam.stacks.back().active) >= std::tie(stack.node, stack.active))
      damaged();
    const std::uint64_t bits = bytes.number();
    if (beam.single && bits > 0xFFFFFFFFu) damaged();
    const double weight =
        beam.single ? std::bit_cast<float>(static_cast<std::uint32_t>(bits)) : std::bit_cast<double>(bits);
    if (!(weight >= 0) || !std::isfinite(weight)) damaged();
    beam.stacks.push_back(stack);
    beam.weights.push_back(weight);
    sum += weight;
  }
  if (!bytes.done() || (beam.initial && (beam.nodes.size() > 1 || !beam.stacks.empty()))) damaged();
  if (!beam.stacks.empty() && std::abs(sum - 1) > 1e-3) damaged();
  beam.set_hash();
  return beam;
}

bool HhmmBeam::fits(const HhmmGrammar& grammar) const {
  if (before.size() != grammar.context_length()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool begun = i > 0 && before[i - 1] == grammar.pad();  // nothing stands before the first word
    if (before[i] > grammar.pad() || (begun && before[i] != grammar.pad())) return false;
  }
  if (initial && !before.empty() && before.front() != grammar.pad()) return false;
  const std::vector<std::uint8_t> depths = node_depths();
  for (std::size_t i = 1; i < nodes.size(); ++i)
    if (depths[i] > grammar.depth() || nodes[i].active == 0 || nodes[i].active >= grammar.phrasal() ||
        nodes[i].awaited == 0 || nodes[i].awaited >= grammar.phrasal())
      return false;
  for (const Stack& stack : stacks) {
    if (stack.active == 0 || stack.active >= grammar.symbols() || stack.active == grammar.end()) return false;
    if (depths[stack.node] == grammar.depth() && !grammar.is_tag(stack.active)) return false;
  }
  return true;
}

std::vector<std::uint32_t> stack_symbols(const HhmmBeam& beam, HhmmBeam::Stack stack) {
  std::vector<std::uint32_t> symbols{stack.active};
  for (std::uint32_t node = stack.node; node != 0; node = beam.nodes[node].parent) {
    symbols.push_back(beam.nodes[node].awaited);
    symbols.push_back(beam.nodes[node].active);
  }
  std::reverse(symbols.begin(), symbols.end());
  return symbols;
}

std::vector<std::uint32_t> heaviest_stacks(const HhmmBeam& beam, std::size_t count) {
  std::vector<std::uint32_t> order(beam.stacks.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      if (beam.weights[a] != beam.weights[b]) return beam.weights[a] > beam.weights[b];
                      return stack_symbols(beam, beam.stacks[a]) < stack_symbols(beam, beam.stacks[b]);
                    });
  order.resize(count);
  return order;
}

std::array<std::uint64_t, 2> beam_key(const HhmmBeam& beam, BeamKey key) {
  Hasher one(1), two(2);
  const auto add = [&](std::uint64_t number) {
    one.add(number);
    two.add(number);
  };
  add(static_cast<std::uint64_t>(key.kind));
  if (key.kind == BeamKey::Kind::ignore) return {one.value(), two.value()};
  if (key.kind == BeamKey::Kind::best) {
    add(packed(beam.initial, static_cast<std::uint32_t>(beam.stacks.empty())));
    for (const std::uint32_t word : beam.before) add(word);
    for (const std::uint32_t place : heaviest_stacks(beam, key.best)) {
      const std::vector<std::uint32_t> symbols = stack_symbols(beam, beam.stacks[place]);
      add(symbols.size());
      for (const std::uint32_t symbol : symbols) add(symbol);
    }
    return {one.value(), two.value()};
  }
  add_stacks(beam, one);
  add_stacks(beam, two);
  double sum = 0;
  for (const double weight : beam.weights) sum += weight;
  for (const double weight : beam.weights)
    if (key.kind == BeamKey::Kind::exact)
      add(std::bit_cast<std::uint64_t>(weight));
    else
      add(std::bit_cast<std::uint64_t>(std::nearbyint(std::log(weight / sum) * 0x1.0p20)));
  return {one.value(), two.value()};
}

BeamMeasures measure(const HhmmBeam& beam) {
  BeamMeasures found;
  const std::vector<std::uint8_t> depths = beam.node_depths();
  double sum = 0, best = -1;
  for (const double weight : beam.weights) sum += weight;
  for (std::size_t i = 0; i < beam.stacks.size(); ++i) {
    const double share = beam.weights[i] / sum;
    const double depth = depths[beam.stacks[i].node] + 1.0;
    if (share > 0) found.entropy -= share * std::log2(share);
    found.mean_depth += share * depth;
    if (share > best) {
      best = share;
      found.best_depth = depth;
    }
  }
  found.stacks = static_cast<double>(beam.stacks.size());
  return found;
}

}  // namespace treelm
