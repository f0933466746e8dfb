// The nine transforms of Pauls & Klein (2012), each one pass over the scratch tree, bottom-up.
#include "text/unicode.h"
#include "trees/worker.h"

namespace treelm {

namespace {

// First matching class: 0 YR, 1 MX, 2 DC, 3 NM, 4 AL.
std::uint8_t classify_number(std::string_view word) {
  bool digit = false, letter = false, decimal = false;
  std::size_t digits = 0;
  for (std::size_t at = 0; at < word.size();) {
    const bool after_point = at > 0 && word[at - 1] == '.';
    const char32_t point = next_code_point(word, at);
    if (point - '0' < 10) {
      digit = true;
      ++digits;
      decimal |= after_point;
    }
    letter |= is_letter(point);
  }
  if (digits == 4 && word.size() == 4) return 0;
  if (digit && letter) return 1;
  if (digit && decimal) return 2;
  return digit ? 3 : 4;
}

}  // namespace

// The word as annotations write it: lower case, straight apostrophes, bracket tokens as they are.
void TreeWorker::lower_annotation(std::string_view word, std::string& out) const {
  if (profile_.is_bracket_word(word)) {
    out = word;
    return;
  }
  std::string lower;
  lower_case(word, lower);
  out.clear();
  for (std::size_t at = 0; at < lower.size();) {
    const bool quote = lower.compare(at, 3, "\u2019") == 0 || lower.compare(at, 3, "\u2018") == 0;
    out.push_back(quote ? '\'' : lower[at]);
    at += quote ? 3 : 1;
  }
}

void TreeWorker::treelet() {
  for (std::size_t i = root_; any_reserved_ && i < tree_.nodes.size(); ++i) {
    const WorkingTree::Node& node = tree_.nodes[i];
    if (node.dead || !(node.flags & has_reserved_char)) continue;
    scratch_ = atoms_[node.base];
    throw Failure{ErrorCode::reserved_char, 0};
  }
  if (enabled(1)) retag_temporal_nouns();
  if (enabled(2)) annotate_heads();
  if (enabled(3)) flatten_noun_phrases();
  if (enabled(4)) classify_numbers();
  if (enabled(5)) flatten_clauses();
  if (enabled(6)) flatten_verb_phrases();
  if (enabled(7)) mark_gaps();
  if (enabled(8)) annotate_parents();
  if (enabled(9)) delete_unaries();
}

std::uint32_t TreeWorker::lower_atom(std::uint32_t word) {
  if (word_facts_[word].lower_atom == none) {
    std::string lower;
    lower_annotation(words_[word], lower);
    word_facts_[word].lower_atom = atom(lower);
  }
  return word_facts_[word].lower_atom;
}

bool TreeWorker::word_fact(std::uint32_t word, WordFact fact) {
  if (!(word_facts_[word].known & fact)) {
    bool holds = false;
    if (fact == temporal_word) holds = recipe_->temporal_words.find(atoms_[lower_atom(word)]) != none;
    if (fact == closed_word) holds = profile_.is_closed_word(atoms_[lower_atom(word)]);
    if (fact == punctuation_word) {
      holds = true;
      for (std::size_t at = 0; at < words_[word].size() && holds;)
        holds = !is_alphanumeric(next_code_point(words_[word], at));
    }
    word_facts_[word].known |= fact;
    if (holds) word_facts_[word].facts |= fact;
  }
  return (word_facts_[word].facts & fact) != 0;
}

std::uint8_t TreeWorker::number_class(std::uint32_t word) {
  std::uint8_t& known = word_facts_[word].number_class;
  if (known == 255) known = classify_number(words_[word]);
  return known;
}

bool TreeWorker::is_closed(std::uint32_t preterminal) {
  const WorkingTree::Node& node = tree_.nodes[preterminal];
  return node.punctuation || (node.flags & is_closed_tag) != 0 ||
         ((node.flags & has_closed_prefix) != 0 && word_fact(node.word, closed_word));
}

// Index of the first node that is not ROOT: a tree given without one has no node to leave alone.
std::uint32_t TreeWorker::first_inner() const { return root_ + (tree_.nodes[root_].base == profile_.root() ? 1 : 0); }

// T1
void TreeWorker::retag_temporal_nouns() {
  if (recipe_->temporal_words.size() == 0) return;
  for (WorkingTree::Node& node : tree_.nodes)
    if (!node.dead && node.word != none) retag_temporal_noun(node);
}

void TreeWorker::retag_temporal_noun(WorkingTree::Node& node) {
  if ((node.flags & is_temporal_source) && word_fact(node.word, temporal_word))
    set_base(node, profile_.temporal_tag(node.base));
}

// T2
void TreeWorker::annotate_heads() {
  find_lexical_heads();
  for (std::uint32_t at = first_inner(); at < tree_.nodes.size(); ++at)
    if (!tree_.nodes[at].dead) annotate_head(at);
}

void TreeWorker::annotate_head(std::uint32_t at) {
  const std::uint32_t head = lexical_head_[at];
  const bool closed = is_closed(head);
  if (tree_.is_phrase(at)) {
    tree_.nodes[at].head = closed ? lower_atom(tree_.nodes[head].word) : tree_.nodes[head].base;
  } else if (closed && words_[tree_.nodes[at].word] != atoms_[tree_.nodes[at].base]) {
    tree_.nodes[at].head = lower_atom(tree_.nodes[at].word);
  }
}

// Whether the nearest sibling of children_[child] that is not punctuation, on either side, coordinates.
bool TreeWorker::beside_coordinator(std::size_t child) const {
  for (std::size_t i = child; i-- > 0;) {
    const WorkingTree::Node& node = tree_.nodes[children_[i]];
    if (node.punctuation) continue;
    if (node.flags & is_coordinator) return true;
    break;
  }
  for (std::size_t i = child + 1; i < children_.size(); ++i) {
    const WorkingTree::Node& node = tree_.nodes[children_[i]];
    if (node.punctuation) continue;
    return (node.flags & is_coordinator) != 0;
  }
  return false;
}

// T3: coordinated and apposed noun phrases are kept.
bool TreeWorker::keeps_noun_phrase(std::size_t child) const {
  if (beside_coordinator(child)) return true;
  const std::uint32_t base = tree_.nodes[children_[child]].base;
  const auto linked = [&](auto step) {
    bool mark = false;
    for (std::size_t i = child + step; i < children_.size(); i += step) {
      const WorkingTree::Node& node = tree_.nodes[children_[i]];
      if (node.base == base && node.word == none) return mark;
      if (!node.punctuation && !(node.flags & (is_separator | is_coordinator))) return false;
      mark |= (node.flags & (is_coordinator | is_apposition_mark)) != 0;
    }
    return false;
  };
  return linked(std::size_t{1}) || linked(~std::size_t{0});  // adding ~0 is subtracting 1
}

bool TreeWorker::gives_way_in_noun_phrase(const WorkingTree::Node& node, std::size_t i) const {
  const WorkingTree::Node& child = tree_.nodes[children_[i]];
  return child.base == node.base && child.word == none && !keeps_noun_phrase(i);
}

void TreeWorker::flatten_noun_phrases() {
  for (auto at = static_cast<std::uint32_t>(tree_.nodes.size()); at-- > root_;) {
    const WorkingTree::Node& node = tree_.nodes[at];
    if (node.dead || node.word != none || !(node.flags & is_noun_phrase)) continue;
    list_children(at);
    rewritten_.clear();
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (gives_way_in_noun_phrase(node, i)) {
        splice_children_of(children_[i]);
      } else {
        rewritten_.push_back(children_[i]);
      }
    }
    if (rewritten_ != children_) relink_children(at);
  }
}

// T4
void TreeWorker::classify_numbers() {
  for (WorkingTree::Node& node : tree_.nodes)
    if (!node.dead && node.word != none && (node.flags & is_number_tag))
      node.head = profile_.number_class(number_class(node.word));
}

// T5: one pass, decided on the children as they were.
void TreeWorker::flatten_clauses() {
  for (auto at = static_cast<std::uint32_t>(tree_.nodes.size()); at-- > root_;) {
    const WorkingTree::Node& node = tree_.nodes[at];
    if (node.dead || node.word != none || !(node.flags & splices_children)) continue;
    rewritten_.clear();
    bool changed = false;
    for (std::uint32_t child = node.first; child != none; child = tree_.nodes[child].next) {
      if (tree_.is_phrase(child) && profile_.splices(node.base, tree_.nodes[child].base)) {
        splice_children_of(child);
        changed = true;
      } else {
        rewritten_.push_back(child);
      }
    }
    if (changed) relink_children(at);
  }
}

// T6: the place of the verb phrase below `node` that gives way, or the number of children.
std::size_t TreeWorker::flattened_verb_phrase(const WorkingTree::Node& node) const {
  std::size_t found = children_.size(), verb_phrases = 0;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (tree_.nodes[children_[i]].base != node.base || !tree_.is_phrase(children_[i])) continue;
    found = i;
    ++verb_phrases;
  }
  return verb_phrases == 1 && !beside_coordinator(found) ? found : children_.size();
}

void TreeWorker::flatten_verb_phrases() {
  for (auto at = static_cast<std::uint32_t>(tree_.nodes.size()); at-- > root_;) {
    WorkingTree::Node& node = tree_.nodes[at];
    if (node.dead || node.word != none || !(node.flags & is_verb_phrase)) continue;
    list_children(at);
    const std::size_t found = flattened_verb_phrase(node);
    if (found == children_.size()) continue;
    rewritten_.clear();
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (i == found) {
        splice_children_of(children_[i]);
      } else {
        rewritten_.push_back(children_[i]);
      }
    }
    if (recipe_->lowest_verb_label) node.head = tree_.nodes[children_[found]].head;
    relink_children(at);
  }
}

// T7: a verb phrase comes before any noun phrase.
bool TreeWorker::lacks_subject() const {
  for (const std::uint32_t child : children_) {
    if (tree_.nodes[child].flags & is_noun_phrase) return false;
    if (tree_.nodes[child].flags & is_verb_phrase) return true;
  }
  return false;
}

void TreeWorker::mark_gaps() {
  for (std::uint32_t at = root_; at < tree_.nodes.size(); ++at) {
    WorkingTree::Node& node = tree_.nodes[at];
    if (node.dead || node.word != none || !(node.flags & may_be_gapped)) continue;
    list_children(at);
    if (lacks_subject()) node.gap = true;
  }
}

// T8
void TreeWorker::annotate_parents() {
  for (std::uint32_t at = root_; at < tree_.nodes.size(); ++at) {
    const WorkingTree::Node& node = tree_.nodes[at];
    if (node.dead || node.word != none) continue;
    for (std::uint32_t child = node.first; child != none; child = tree_.nodes[child].next) {
      WorkingTree::Node& below = tree_.nodes[child];
      if (at < first_inner() || (below.word == none && (below.flags & takes_parent))) below.parent_mark = node.base;
    }
  }
}

// T9: a phrase with one child gives way to it; the root's own unary stays.
void TreeWorker::delete_unaries() {
  for (auto at = static_cast<std::uint32_t>(tree_.nodes.size()); at-- > first_inner();) {
    if (tree_.nodes[at].dead || !tree_.is_phrase(at) || !tree_.has_one_child(at)) continue;
    const std::uint32_t child = tree_.nodes[at].first, next = tree_.nodes[at].next;
    tree_.nodes[at] = tree_.nodes[child];
    tree_.nodes[at].next = next;
    tree_.nodes[child].dead = true;
  }
}

}  // namespace treelm
