#include "trees/packed_trees.h"

#include <algorithm>

#include "base/random.h"
#include "text/encoder.h"

namespace treelm {

StringTable::StringTable(const Symbols& symbols) : start_{0} {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < symbols.size(); ++i) bytes += symbols[i].size();
  bytes_.reserve(bytes);
  start_.reserve(symbols.size() + 1);
  for (std::uint32_t i = 0; i < symbols.size(); ++i) push_back(symbols[i]);
}

void StringTable::push_back(std::string_view text) {
  if (bytes_.size() + text.size() >= none) throw Error(ErrorCode::too_large);
  bytes_.append(text);
  start_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

namespace {

std::size_t hash_parts(const LabelParts& parts) {
  const std::uint64_t low = std::uint64_t{parts.base} << 32 | parts.head;
  const std::uint64_t high = std::uint64_t{parts.parent} << 32 | parts.gap;
  return static_cast<std::size_t>(mix64(low ^ mix64(high)));
}

}  // namespace

std::uint32_t LabelTable::intern(const LabelParts& parts) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_parts(parts) & mask;
  for (; slots_[at] != none; at = (at + 1) & mask)
    if (parts_[slots_[at]] == parts) return slots_[at];
  const auto id = static_cast<std::uint32_t>(parts_.size());
  slots_[at] = id;
  parts_.push_back(parts);
  if (parts_.size() * 2 > slots_.size()) {
    std::vector<std::uint32_t> bigger(slots_.size() * 2, none);
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      std::size_t slot = hash_parts(parts_[i]) & (bigger.size() - 1);
      while (bigger[slot] != none) slot = (slot + 1) & (bigger.size() - 1);
      bigger[slot] = i;
    }
    slots_.swap(bigger);
  }
  return id;
}

void LabelTable::clear() {
  parts_.clear();
  std::fill(slots_.begin(), slots_.end(), none);
}

void render_label(std::string_view base, const std::string_view* head, bool gap, const std::string_view* parent,
                  std::string& out) {
  out.append(base);
  if (head != nullptr) {
    out.push_back('-');
    for (const char c : *head) {
      if (c == '@' || c == '+' || c == '^' || c == '|' || c == '\\') out.push_back('\\');
      out.push_back(c);
    }
  }
  if (gap) out.append("-GAP");
  if (parent != nullptr) {
    out.push_back('^');
    out.append(*parent);
  }
}

void render_label(const StringTable& atoms, const LabelParts& parts, std::string& out) {
  std::string_view head, parent;
  if (parts.head != none) head = atoms[parts.head];
  if (parts.parent != none) parent = atoms[parts.parent];
  render_label(atoms[parts.base], parts.head == none ? nullptr : &head, parts.gap != 0,
               parts.parent == none ? nullptr : &parent, out);
}

void Problems::add(TreeProblem problem) {
  ++count_;
  between_ += problem.between ? 1 : 0;
  if (first_.size() < kept) first_.push_back(std::move(problem));
}

void Problems::sort_by_place() {
  std::stable_sort(first_.begin(), first_.end(), [](const TreeProblem& a, const TreeProblem& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
}

std::string excerpt_at(std::string_view text, std::size_t at) {
  constexpr std::size_t longest = excerpt_bytes;
  std::string_view piece = text.substr(at, longest);
  piece = piece.substr(0, std::min(piece.find('\n'), piece.size()));
  if (piece.size() == longest && at + longest < text.size()) {
    // Do not cut a character in two: drop its bytes if the next one would continue it.
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    std::size_t end = piece.size();
    if (continues(text[at + end])) {
      while (end > longest - 3 && continues(piece[end - 1])) --end;
      piece = piece.substr(0, end - 1);
    }
  }
  return std::string(piece);
}

std::string write_brackets(const PackedTrees& trees) {
  StringTable rendered;
  std::string text;
  for (const LabelParts& parts : trees.labels) {
    text.clear();
    render_label(trees.atoms, parts, text);
    rendered.push_back(text);
  }
  std::string out;
  out.reserve(trees.label.size() * 12);
  std::vector<std::uint32_t> ends;  // ends of the open phrases
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    ends.clear();
    for (std::uint32_t node = trees.start[tree]; node < trees.start[tree + 1]; ++node) {
      if (!ends.empty()) out.push_back(' ');
      out.push_back('(');
      out.append(rendered[trees.label[node]]);
      if (trees.word[node] == none) {
        ends.push_back(node + trees.size[node]);
        continue;
      }
      out.push_back(' ');
      out.append(trees.words[trees.word[node]]);
      out.push_back(')');
      while (!ends.empty() && ends.back() == node + 1) {
        out.push_back(')');
        ends.pop_back();
      }
    }
    out.push_back('\n');
  }
  return out;
}

void encode_words(const PackedTrees& trees, TextEncoder& encoder) {
  std::vector<std::string_view> sentence;
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    sentence.clear();
    for (std::uint32_t node = trees.start[tree]; node < trees.start[tree + 1]; ++node)
      if (trees.word[node] != none) sentence.push_back(trees.words[trees.word[node]]);
    encoder.add_sentence(sentence);
  }
}

void check_packed(const PackedTrees& trees) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::argument, std::string("packed trees: ") + what);
  };
  const std::size_t nodes = trees.label.size();
  require(nodes < none, "too many nodes");
  require(trees.size.size() == nodes && trees.word.size() == nodes, "node arrays differ in length");
  require(!trees.start.empty() && trees.start.front() == 0, "tree starts must begin with 0");
  require(trees.start.back() == nodes, "the last tree start must equal the number of nodes");
  for (const LabelParts& parts : trees.labels) {
    const auto atom = [&](std::uint32_t id) { return id == none || id < trees.atoms.size(); };
    require(parts.base < trees.atoms.size() && atom(parts.head) && atom(parts.parent), "a label part is out of range");
  }
  std::vector<std::uint32_t> ends;
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    const std::uint32_t first = trees.start[tree], last = trees.start[tree + 1];
    require(first < last, "tree starts must increase");
    require(last <= nodes, "a tree start is out of range");
    ends.assign(1, last);
    for (std::uint32_t node = first; node < last; ++node) {
      while (ends.size() > 1 && ends.back() == node) ends.pop_back();
      require(ends.size() > 1 || node == first, "a tree has two roots");
      require(trees.label[node] < trees.labels.size(), "a node's label is out of range");
      require(trees.size[node] >= 1 && trees.size[node] <= ends.back() - node, "a subtree reaches beyond its parent");
      if (trees.word[node] == none) {
        require(trees.size[node] > 1, "a phrase has no children");
        ends.push_back(node + trees.size[node]);
      } else {
        require(trees.word[node] < trees.words.size(), "a node's word is out of range");
        require(trees.size[node] == 1, "a preterminal has children");
      }
    }
    require(trees.size[first] == last - first, "the root does not span its tree");
  }
}

}  // namespace treelm
