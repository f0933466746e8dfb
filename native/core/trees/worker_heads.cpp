// Heads of phrases, lexical heads, and the temporal lexicon that needs them.
#include "text/unicode.h"
#include "trees/worker.h"

namespace treelm {

// The head child of a phrase, as an index into tree_.nodes.
std::uint32_t TreeWorker::head_of(std::uint32_t node) {
  list_children(node);
  if (children_.size() == 1) return children_[0];
  candidates_.clear();
  for (const std::uint32_t child : children_)
    candidates_.push_back({tree_.nodes[child].base, tree_.nodes[child].punctuation});
  return children_[profile_.head_child(tree_.nodes[node].base, candidates_)];
}

void TreeWorker::find_lexical_heads() {
  lexical_head_.resize(tree_.nodes.size());
  for (auto at = static_cast<std::uint32_t>(tree_.nodes.size()); at-- > root_;) {
    if (tree_.nodes[at].dead) continue;
    lexical_head_[at] = tree_.is_phrase(at) ? lexical_head_[head_of(at)] : at;
  }
}

std::vector<TreeWorker::TemporalCount> TreeWorker::count_temporal_heads(const PackedTrees& trees) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;  // by word of this batch
  begin_batch();
  loaded_labels_.assign(trees.labels.size(), {});
  loaded_words_.assign(trees.words.size(), none);
  loaded_atoms_.assign(trees.atoms.size(), none);
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    load(trees, tree);
    clean(true, false);
    if (tree_.nodes[root_].dead) continue;
    find_lexical_heads();
    counts.resize(words_.size());
    for (std::uint32_t at = root_; at < tree_.nodes.size(); ++at) {
      const WorkingTree::Node& node = tree_.nodes[at];
      if (node.dead || !tree_.is_phrase(at) || !(node.flags & is_temporal_phrase)) continue;
      const WorkingTree::Node& head = tree_.nodes[lexical_head_[at]];
      if (node.temporal_function && (head.flags & is_temporal_source)) counts[head.word].first += 1;
      counts[head.word].second += 1;
    }
  }
  std::vector<TemporalCount> result;
  for (std::uint32_t word = 0; word < counts.size(); ++word)
    if (counts[word].second != 0)
      result.push_back({std::string(atoms_[lower_atom(word)]), counts[word].first, counts[word].second});
  return result;
}

std::vector<std::uint32_t> find_heads(const PackedTrees& trees, const Profile& profile) {
  struct Atom {
    std::uint32_t id, flags;
  };
  std::vector<Atom> atoms;
  for (std::size_t i = 0; i < trees.atoms.size(); ++i)
    atoms.push_back({profile.atoms().find(trees.atoms[i]), profile.flags(trees.atoms[i])});
  std::vector<bool> punctuation_word;
  for (std::size_t i = 0; profile.punctuation_by_word() && i < trees.words.size(); ++i) {
    bool letters = false;
    for (std::size_t at = 0; at < trees.words[i].size();)
      letters |= is_alphanumeric(next_code_point(trees.words[i], at));
    punctuation_word.push_back(!letters);
  }
  std::vector<std::uint32_t> heads(trees.label.size(), none);
  std::vector<HeadCandidate> candidates;
  for (std::uint32_t node = 0; node < trees.label.size(); ++node) {
    if (trees.word[node] != none) continue;
    candidates.clear();
    for (std::uint32_t child = node + 1; child < node + trees.size[node]; child += trees.size[child]) {
      const Atom& atom = atoms[trees.labels[trees.label[child]].base];
      // A label the profile does not know gets an id beyond all known ones, distinct by its atom.
      const std::uint32_t base = atom.id != none ? atom.id : 0x80000000u | trees.labels[trees.label[child]].base;
      const std::uint32_t word = trees.word[child];
      const bool by_word = word != none && !punctuation_word.empty() && punctuation_word[word];
      candidates.push_back({base, by_word || (atom.flags & is_punctuation_tag) != 0});
    }
    heads[node] = profile.head_child(atoms[trees.labels[trees.label[node]].base].id, candidates);
  }
  return heads;
}

}  // namespace treelm
