// Head-lexicalised productions: a phrase draws its head child, then modifiers outward on either side with
// their head words, then STOP. Events for training, and ln p of trees.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backoff/table.h"
#include "base/symbols.h"
#include "base/thread_pool.h"
#include "text/word_encoder.h"
#include "trees/list_scores.h"
#include "trees/packed_trees.h"
#include "trees/profile.h"

namespace treelm {

namespace headlex {

// What is drawn; columns of its rows, the outcome first.
enum Kind : std::uint8_t {
  top_label,   // label below ROOT | ROOT
  top_word,    // its head word | label
  head_label,  // label of the head child | label, head word
  modifier,    // label or STOP | label, head label, side, head word, label and head word of the one before
  word,        // head word of a modifier | label of the modifier, then as for the modifier
  kinds
};
inline constexpr std::array<std::size_t, kinds> columns = {2, 2, 3, 7, 8};

// Reserved labels; a corpus that uses one is refused.
enum Reserved : std::uint32_t { before_modifiers, after_modifiers, unknown_label, reserved_labels };

struct Part {
  std::uint32_t label, word;  // word: of the head
};

// Calls sink(kind, row) for everything drawn at one phrase. `no_word` stands for the head word before the
// first modifier. Below ROOT (`top`) the label comes first, then its head word.
template <class Sink>
void each_event(std::uint32_t label, std::span<const Part> parts, std::size_t head, bool top, std::uint32_t no_word,
                Sink&& sink) {
  const Part& own = parts[head];
  if (top) {
    const std::uint32_t first[] = {own.label, label};
    sink(top_label, first);
    const std::uint32_t second[] = {own.word, own.label};
    sink(top_word, second);
  } else {
    const std::uint32_t row[] = {own.label, label, own.word};
    sink(head_label, row);
  }
  for (const std::uint32_t side : {0u, 1u}) {
    Part before{before_modifiers, no_word};
    const std::size_t count = side == 0 ? head : parts.size() - head - 1;
    for (std::size_t i = 0; i <= count; ++i) {
      const bool stop = i == count;
      const Part here = stop ? Part{after_modifiers, no_word} : parts[side == 0 ? head - 1 - i : head + 1 + i];
      const std::uint32_t row[] = {here.word, here.label, label, own.label, side, own.word, before.label, before.word};
      sink(modifier, row + 1);
      if (!stop) sink(word, row);
      before = here;
    }
  }
}

}  // namespace headlex

// Turns trees into rows of ids; labels get ids by first occurrence.
class HeadlexExtractor {
 public:
  HeadlexExtractor(std::shared_ptr<const Profile> profile, std::shared_ptr<const WordEncoder> encoder, bool training);

  // Appends the rows of each kind; results do not depend on the threads of the pool.
  void extract(std::span<const PackedTrees* const> batches, ThreadPool& pool,
               std::vector<std::vector<std::uint32_t>>& rows);

  const Symbols& labels() const { return labels_; }
  std::uint32_t no_word() const { return encoder_->size(); }
  std::uint64_t sentences() const { return sentences_; }
  std::uint64_t tokens() const { return tokens_; }

 private:
  using Rows = std::array<std::vector<std::uint32_t>, headlex::kinds>;
  Rows read(const PackedTrees& trees, std::span<const std::uint32_t> label_of, std::uint64_t first_sentence) const;

  std::shared_ptr<const Profile> profile_;
  std::shared_ptr<const WordEncoder> encoder_;
  bool training_;
  Symbols labels_;
  std::uint64_t sentences_ = 0, tokens_ = 0;
};

class HeadlexModel {
 public:
  // `is_child`: whether each label was seen as a child. Throws Error(table) if parts do not fit together.
  HeadlexModel(const std::vector<std::string>& labels, std::vector<std::uint8_t> is_child,
               std::vector<std::shared_ptr<const BackoffTable>> tables, std::shared_ptr<const WordEncoder> encoder,
               std::shared_ptr<const TreeRecipe> recipe);

  // The id of a label, that of <usym> for one that was never seen.
  std::uint32_t label(std::string_view text) const {
    const std::uint32_t found = labels_.find(text);
    return found == none || found < headlex::reserved_labels ? std::uint32_t{headlex::unknown_label} : found;
  }
  // p of an event.
  double probability(headlex::Kind kind, const std::uint32_t* row) const;
  const WordEncoder& encoder() const { return *encoder_; }
  const TreeRecipe& recipe() const { return *recipe_; }
  std::uint32_t no_word() const { return encoder_->size(); }

 private:
  Symbols labels_;
  std::vector<std::uint8_t> is_child_;
  std::vector<std::shared_ptr<const BackoffTable>> tables_;
  std::shared_ptr<const WordEncoder> encoder_;
  std::shared_ptr<const TreeRecipe> recipe_;
  std::array<double, headlex::kinds> base_{};
};

ListScores score_headlex(const HeadlexModel& model, const PackedTrees& trees, std::span<const std::uint64_t> starts,
                         std::size_t threads);

}  // namespace treelm
