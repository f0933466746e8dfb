#include "translation/n_best.h"

#include <algorithm>
#include <unordered_set>

#include "base/interrupt.h"
#include "base/number_text.h"

namespace treelm {

namespace {

// Derivations looked at for each of the strings wanted.
constexpr std::size_t most_repeats = 1000;

}  // namespace

bool Derivations::worse(const Way& a, const Way& b) {
  if (a.score != b.score) return a.score < b.score;
  return a.arc != b.arc ? a.arc > b.arc : a.rank > b.rank;
}

void Derivations::push(Node& node, const Way& way) {
  node.waiting.push_back(way);
  std::push_heap(node.waiting.begin(), node.waiting.end(), worse);
}

Derivations::Derivations(const PhraseSearch& search) : search_(search), place_(search.size(), none) {
  for (const PhraseSearch::Final& end : search.finals()) ends_.push_back({end.score, end.hypothesis, 0});
  std::make_heap(ends_.begin(), ends_.end(), worse);
}

Derivations::Node& Derivations::node_of(std::uint32_t hypothesis) {
  std::uint32_t& place = place_[hypothesis];
  if (place == none) {
    place = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  }
  return nodes_[place];
}

bool Derivations::find(std::uint32_t hypothesis, std::uint32_t rank) {
  if (search_[hypothesis].option == nullptr) return rank == 0;  // the start
  const auto score_of = [&](std::uint32_t node, std::uint32_t at) {
    return search_[node].option == nullptr ? 0.0 : node_of(node).best[at].score;
  };
  // The derivation of a rank before an arc, and the step of that arc.
  const auto add = [&](std::uint32_t arc, std::uint32_t at) {
    const std::uint32_t previous = search_[arc].previous;
    if (!find(previous, at)) return;
    const double step = search_[arc].score - search_[previous].score;
    push(node_of(hypothesis), {score_of(previous, at) + step, arc, at});
  };
  if (!node_of(hypothesis).begun) {
    node_of(hypothesis).begun = true;
    for (std::uint32_t arc = hypothesis; arc != none; arc = search_[arc].alternative) add(arc, 0);
  }
  for (;;) {
    poll_interrupt();
    const std::size_t known = node_of(hypothesis).best.size();
    if (known > rank) return true;
    if (known > 0) {
      const Way last = node_of(hypothesis).best.back();
      add(last.arc, last.rank + 1);
    }
    Node& node = node_of(hypothesis);
    if (node.waiting.empty()) return false;
    std::pop_heap(node.waiting.begin(), node.waiting.end(), worse);
    node.best.push_back(node.waiting.back());
    node.waiting.pop_back();
  }
}

bool Derivations::next(std::vector<std::uint32_t>& steps) {
  if (has_last_ && find(last_end_.arc, last_end_.rank + 1)) {
    const auto& best = node_of(last_end_.arc).best;
    const double gain = best[last_end_.rank + 1].score - best[last_end_.rank].score;
    ends_.push_back({last_end_.score + gain, last_end_.arc, last_end_.rank + 1});
    std::push_heap(ends_.begin(), ends_.end(), worse);
  }
  has_last_ = !ends_.empty();
  if (!has_last_) return false;
  std::pop_heap(ends_.begin(), ends_.end(), worse);
  last_end_ = ends_.back();
  ends_.pop_back();
  last_ = last_end_.arc;
  steps.clear();
  std::uint32_t hypothesis = last_end_.arc, rank = last_end_.rank;
  find(hypothesis, rank);
  while (search_[hypothesis].option != nullptr) {
    const Way way = node_of(hypothesis).best[rank];
    steps.push_back(way.arc);
    hypothesis = search_[way.arc].previous;
    rank = way.rank;
  }
  return true;
}

// -- what is told -------------------------------------------------------------------------------

namespace {

TranslationEntry entry_of(PhraseSearch& search, std::uint32_t end, const std::vector<std::uint32_t>& steps,
                          bool alignments) {
  const SearchSetup& setup = search.setup();
  TranslationEntry entry;
  entry.features.assign(setup.places.size, 0.0);
  std::size_t target = 0;
  const auto align = [&](std::size_t source, std::size_t to) {
    if (!entry.alignment.empty()) entry.alignment.push_back(' ');
    entry.alignment += std::to_string(source) + '-' + std::to_string(to);
  };
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const SearchHypothesis& each = search[*step];
    search.add_features(*step, entry.features);
    for (const std::uint32_t word : each.option->words) {
      if (!entry.words.empty()) entry.words.push_back(' ');
      entry.words += search.word(word);
    }
    if (alignments) {
      if (each.option->row == none)
        align(each.first, target);
      else
        for (const AlignmentPoint& point : setup.table->alignment(each.option->row))
          align(each.first + point.source, target + point.target);
    }
    target += each.option->words.size();
  }
  search.add_end_features(end, entry.features);
  for (std::size_t i = 0; i < entry.features.size(); ++i) entry.score += setup.weights[i] * entry.features[i];
  return entry;
}

std::string words_of(const PhraseSearch& search, const std::vector<std::uint32_t>& steps) {
  std::string words;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    for (const std::uint32_t word : search[*step].option->words) words.append(search.word(word)).push_back(' ');
  return words;
}

}  // namespace

std::vector<TranslationEntry> best_translations(PhraseSearch& search, std::size_t count, bool distinct,
                                                bool alignments) {
  Derivations derivations(search);
  std::vector<TranslationEntry> entries;
  std::vector<std::uint32_t> steps;
  std::unordered_set<std::string> seen;
  std::size_t looked_at = 0;
  while (entries.size() < count && looked_at++ / most_repeats < count && derivations.next(steps)) {
    if (distinct && !seen.insert(words_of(search, steps)).second) continue;
    entries.push_back(entry_of(search, derivations.last_node(), steps, alignments));
  }
  // The sums of features may differ from those of the search in the last digit.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TranslationEntry& a, const TranslationEntry& b) { return a.score > b.score; });
  return entries;
}

std::string search_graph(const PhraseSearch& search, std::uint64_t sentence) {
  std::vector<bool> leads(search.size(), false);
  std::vector<std::uint32_t> waiting;
  const auto mark = [&](std::uint32_t hypothesis) {
    if (leads[hypothesis]) return;
    leads[hypothesis] = true;
    waiting.push_back(hypothesis);
  };
  for (const PhraseSearch::Final& end : search.finals()) mark(end.hypothesis);
  std::vector<std::uint32_t> winner(search.size(), none);
  while (!waiting.empty()) {
    const std::uint32_t node = waiting.back();
    waiting.pop_back();
    for (std::uint32_t arc = search[node].alternative; arc != none; arc = search[arc].alternative) {
      if (leads[arc]) continue;
      leads[arc] = true;
      winner[arc] = node;
      mark(search[arc].previous);
    }
    if (search[node].option != nullptr) mark(search[node].previous);
  }
  std::string text;
  for (std::uint32_t each = 0; each < search.size(); ++each) {
    poll_interrupt();
    if (!leads[each]) continue;
    const SearchHypothesis& hypothesis = search[each];
    const auto field = [&](const char* name, std::uint64_t value) { text += name + std::to_string(value); };
    text += std::to_string(sentence);
    field(" hyp=", each);
    field(" stack=", search.coverages().count(hypothesis.coverage));
    if (hypothesis.option != nullptr) {
      field(" back=", hypothesis.previous);
      text += " score=";
      append_number(text, hypothesis.score);
      text += " transition=";
      append_number(text, hypothesis.score - search[hypothesis.previous].score);
      if (winner[each] != none) field(" recombined=", winner[each]);
      text += " fscore=";
      append_number(text, hypothesis.score + search.coverages().future(hypothesis.coverage));
      field(" covered=", hypothesis.first);
      field("-", hypothesis.end - 1);
      text += " out=";
      for (std::size_t i = 0; i < hypothesis.option->words.size(); ++i) {
        if (i > 0) text.push_back(' ');
        text += search.word(hypothesis.option->words[i]);
      }
    }
    text.push_back('\n');
  }
  return text;
}

}  // namespace treelm
