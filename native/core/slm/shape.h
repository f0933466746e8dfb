// The sizes of a structured language model, and how words, heads and moves become numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace treelm {

// Moves are numbered: null, then adjoin-left, adjoin-right and (where allowed) unary, one per phrase.
// Labels of heads are numbered: tags, phrases, and the label of <s> last.
struct SlmShape {
  std::uint32_t words = 0;  // without </s> and <s>, whose ids follow
  std::uint32_t tags = 0;
  std::uint32_t phrases = 0;
  std::uint32_t order = 1;  // words of the predictor, the predicted one included
  std::uint32_t heads = 0;  // 0: no parses at all
  bool head_labels = true;  // whether the predictor sees the labels of heads
  bool unary_moves = false;

  static constexpr std::uint32_t null_move = 0;
  static constexpr std::uint32_t most_unaries = 2;  // in a row

  std::uint32_t end() const { return words; }
  std::uint32_t start() const { return words + 1; }
  std::uint32_t labels() const { return tags + phrases + 1; }
  std::uint32_t boundary() const { return tags + phrases; }
  std::uint32_t moves() const { return 1 + (unary_moves ? 3 : 2) * phrases; }
  bool is_left(std::uint32_t move) const { return move >= 1 && move <= phrases; }
  bool is_right(std::uint32_t move) const { return move > phrases && move <= 2 * phrases; }
  bool is_unary(std::uint32_t move) const { return move > 2 * phrases; }
  // Of a move that is not null: the label of what it makes.
  std::uint32_t label_of(std::uint32_t move) const { return tags + (move - 1) % phrases; }
  // A head as one column of the predictor.
  std::uint32_t head_value(std::uint32_t word, std::uint32_t label) const {
    return head_labels ? word * labels() + label : word;
  }
  std::uint32_t predictor_columns() const { return order - 1 + heads; }
  std::uint32_t tagger_columns() const { return 1 + heads; }
  std::uint32_t constructor_columns() const { return 2 * heads; }

  void check() const {
    if (words < 1 || words > (1U << 28)) throw Error(ErrorCode::argument, "the number of words is out of range");
    if (order < 1 || order > 64) throw Error(ErrorCode::argument, "the order must lie between 1 and 64");
    if (heads > 16) throw Error(ErrorCode::argument, "there must be at most 16 heads");
    if (heads > 0 && (tags < 1 || phrases < 1)) throw Error(ErrorCode::argument, "heads need tags and phrases");
    if (tags > 16384 || moves() > 65535) throw Error(ErrorCode::argument, "there are too many labels");
    if (head_labels && (words + 2ULL) * labels() > 0xFFFFFFFFULL)
      throw Error(ErrorCode::argument, "words times labels do not fit into 32 bits");
  }
};

// Which moves are open to a hypothesis; those that are not have no share of the distribution.
enum class MoveChoice : std::uint8_t {
  all,
  no_unary,     // after two unaries in a row
  unary_only,   // over the first word nothing can be adjoined
  null_forced,  // nothing but null: certain, and never counted
};

inline MoveChoice move_choice(const SlmShape& shape, std::size_t depth, std::uint32_t unaries) {
  const bool more_unaries = shape.unary_moves && unaries < SlmShape::most_unaries;
  if (depth < 2) return more_unaries ? MoveChoice::unary_only : MoveChoice::null_forced;
  return !shape.unary_moves || more_unaries ? MoveChoice::all : MoveChoice::no_unary;
}

inline bool is_open(const SlmShape& shape, MoveChoice choice, std::uint32_t move) {
  if (move == SlmShape::null_move) return true;
  if (choice == MoveChoice::null_forced) return false;
  return shape.is_unary(move) ? choice != MoveChoice::no_unary : choice != MoveChoice::unary_only;
}

}  // namespace treelm
