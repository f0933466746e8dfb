// Probabilities of trees under a treelet model (Pauls & Klein 2012): what a phrase consists of given its
// label, its parent's label and its parent's rule; a word given its tag, the sibling to the right, the
// rule around it, and the two words before it.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backoff/table.h"
#include "base/symbols.h"
#include "text/word_encoder.h"
#include "treelet/yield_model.h"
#include "trees/event_templates.h"
#include "trees/list_scores.h"
#include "trees/packed_trees.h"

namespace treelm {

// Everything a trained model knows; never changed, and shared by all threads.
class TreeletModel {
 public:
  // Labels, right-hand sides and rules are those of EventExtractor, reserved ones included. The recipe says
  // how trees are transformed; `marked_tags` as in EventExtractor. Throws Error(table) if parts do not fit.
  TreeletModel(const std::vector<std::string>& labels, std::span<const std::uint32_t> yield_labels,
               std::span<const std::uint64_t> yield_starts, std::span<const std::uint32_t> rules,
               std::shared_ptr<const BackoffTable> nonterminal, std::shared_ptr<const BackoffTable> terminal,
               std::shared_ptr<const YieldModel> base, std::shared_ptr<const WordEncoder> encoder,
               std::shared_ptr<const TreeRecipe> recipe, const std::vector<std::string>& marked_tags);

  // The id of a label seen in training, or `none`.
  std::uint32_t label(std::string_view text) const;
  // The same of a label over a word.
  std::uint32_t tag(std::string& text) const {
    if (marked_tags_.find(text) != none) text.append(tag_mark);
    return label(text);
  }
  std::string_view label_text(std::uint32_t label) const { return labels_[label]; }
  std::uint32_t labels() const { return labels_.size(); }
  std::uint32_t yield(std::span<const std::uint32_t> labels) const { return yields_.find(labels); }
  std::span<const std::uint32_t> yield_labels(std::uint32_t yield) const { return yields_[yield]; }
  std::uint32_t yields() const { return yields_.size(); }
  std::uint32_t rule(std::uint32_t label, std::uint32_t yield) const {
    const std::uint32_t parts[] = {label, yield};
    return label == none || yield == none ? none : rules_.find(parts);
  }
  // ln p of a phrase: (right-hand side or none, label, parent, rule of the parent); `log_base` gives ln p
  // of a right-hand side that was never seen below this label. A long one has a p that no double holds.
  template <class LogBase>
  double phrase_log_probability(const std::uint32_t* row, LogBase log_base) const {
    if (row[0] != none) {
      const double p = nonterminal_->probability_from(0, row, 0);
      if (p > 0) return std::log(p);
    }
    return std::log(nonterminal_->probability_from(0, row, 1)) + log_base();
  }
  // p of a word: (word, tag, sibling to the right, rule around it, two words before).
  double word_probability(const std::uint32_t* row) const {
    return terminal_->probability_from(0, row, terminal_->uniform_base(row[0]));
  }
  std::uint32_t sentence_start() const { return encoder_->size() + 1; }
  const BackoffTable& nonterminal() const { return *nonterminal_; }
  const BackoffTable& terminal() const { return *terminal_; }
  const std::shared_ptr<const BackoffTable>& shared_nonterminal() const { return nonterminal_; }
  const std::shared_ptr<const BackoffTable>& shared_terminal() const { return terminal_; }
  const std::shared_ptr<const YieldModel>& base() const { return base_; }
  const WordEncoder& encoder() const { return *encoder_; }
  const TreeRecipe& recipe() const { return *recipe_; }

 private:
  Symbols labels_, marked_tags_;
  IdSequences yields_, rules_;
  std::shared_ptr<const BackoffTable> nonterminal_, terminal_;
  std::shared_ptr<const YieldModel> base_;
  std::shared_ptr<const WordEncoder> encoder_;
  std::shared_ptr<const TreeRecipe> recipe_;
};

// ln p of trees in lists; `transform`: apply the model's transforms first.
ListScores score_treelets(const TreeletModel& model, const PackedTrees& trees, std::span<const std::uint64_t> starts,
                          bool transform, std::size_t threads);

}  // namespace treelm
