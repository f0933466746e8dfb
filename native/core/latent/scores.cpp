#include "latent/scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <string>

#include "base/error.h"

namespace treelm {

namespace {

Lanes* room(std::vector<Lanes>& lines, std::size_t size) {
  if (lines.size() < size) lines.resize(size);
  return lines.data();
}

void prefetch([[maybe_unused]] const double* from, [[maybe_unused]] std::size_t size) {
#if defined(__GNUC__)
  for (std::size_t i = 0; i < size; i += lanes) __builtin_prefetch(from + i);
#endif
}

// The exponent of a positive number, so that value * 2^-exponent is near 1.
std::int32_t exponent_of(double value) {
  const auto biased = static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7FF);
  return std::clamp(biased - 1023, -1000, 1000);
}

double power_of_two(std::int32_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace

void LatentScores::begin(const ActiveBlocks& blocks, const TreePiece& piece) {
  blocks_ = &blocks;
  piece_ = &piece;
  const RuleBlocks& shapes = blocks_->shapes();
  const auto slots = static_cast<std::uint32_t>(piece.rule.size());
  place_.resize(slots);
  children_.resize(slots - piece.words);
  scale_.assign(slots - piece.words, 1.0);
  exponent_.assign(slots - piece.words, 0);
  // All instances of a lexical rule have the same inside scores, which are kept once.
  std::size_t end = 1;
  std::size_t largest = 1;
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const std::size_t size = shapes.rows(piece.rule[slot]);
    largest = std::max(largest, size);
    const bool kept = slot < piece.words && slot > 0 && piece.rule[slot] == piece.rule[slot - 1];
    if (kept) {
      place_[slot].inside = place_[slot - 1].inside;
    } else {
      place_[slot].inside = static_cast<std::uint32_t>(end);
      end += size;
    }
    place_[slot].outside = static_cast<std::uint32_t>(end);
    end += size;
    if (end > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::too_large, "the scores of a few thousand trees do not fit into memory");
    if (slot < piece.words) continue;
    const std::uint32_t right = piece.right[slot];
    children_[slot - piece.words] = {place_[piece.left[slot]], right == no_child ? Place{0, 0} : place_[right]};
  }
  if (values_.size() < end + lanes) values_.resize(end + lanes);
  values_[0] = 1;  // the score of the right child that a unary rule does not have
  nothing_.assign(largest, 0.0);
  for (std::uint32_t slot = 0; slot < piece.words; ++slot) {
    if (slot > 0 && piece.rule[slot] == piece.rule[slot - 1]) continue;
    const double* from = blocks_->lexical(piece.rule[slot]);
    std::copy(from, from + shapes.rows(piece.rule[slot]), values_.data() + place_[slot].inside);
  }
}

// Calls body(slot, count) for groups of at most eight slots of one rule.
template <typename Body>
void LatentScores::for_each_group(std::uint32_t first, std::uint32_t last, const Body& body) const {
  const std::vector<std::uint32_t>& rule = piece_->rule;
  for (std::uint32_t slot = first; slot < last;) {
    std::uint32_t end = slot + 1;
    while (end < last && end - slot < lanes && rule[end] == rule[slot]) ++end;
    if (end < last) prefetch_children(rule[end], end, std::min<std::uint32_t>(last, end + lanes));
    body(slot, end - slot);
    slot = end;
  }
}

template <typename Body>
void LatentScores::run_level(const std::vector<std::uint32_t>& cuts, ThreadPool& pool, std::span<LatentScratch> scratch,
                             const Body& body) {
  const auto work = [&](std::size_t i, std::size_t worker) {
    for_each_group(cuts[i], cuts[i + 1],
                   [&](std::uint32_t slot, std::size_t count) { body(slot, count, scratch[worker]); });
  };
  const std::size_t pieces = cuts.size() - 1;
  if (pieces > 1 && pool.size() > 1) return pool.map(pieces, work);
  for (std::size_t i = 0; i < pieces; ++i) work(i, 0);
}

void LatentScores::prefetch_children(std::size_t rule, std::uint32_t first, std::uint32_t last) const {
  const std::size_t left = blocks_->shapes().left(rule), right = blocks_->shapes().right(rule);
  for (std::uint32_t slot = first; slot < last; ++slot) {
    prefetch(values_.data() + children(slot).left.inside, left);
    prefetch(values_.data() + children(slot).right.inside, right);
  }
}

void LatentScores::gather_children(std::size_t rule, std::uint32_t first, std::size_t count, Lanes* left,
                                   Lanes* right) const {
  const double *lefts[lanes], *rights[lanes];
  for (std::size_t n = 0; n < lanes; ++n) {
    lefts[n] = rights[n] = nothing_.data();
    if (n >= count) continue;
    const Children& below = children(first + static_cast<std::uint32_t>(n));
    lefts[n] = values_.data() + below.left.inside;
    rights[n] = values_.data() + below.right.inside;
  }
  gather(lefts, blocks_->shapes().left(rule), left);
  gather(rights, blocks_->shapes().right(rule), right);
}

// Outside scores at the parents, times the scale that was taken out of their inside scores.
void LatentScores::gather_parents(const ActiveBlock& block, std::uint32_t first, std::size_t count,
                                  Lanes* parents) const {
  const double* scores[lanes];
  Lanes scale{};
  for (std::size_t n = 0; n < lanes; ++n) {
    const std::uint32_t slot = first + static_cast<std::uint32_t>(n);
    scores[n] = n < count ? outside_of(slot) : nothing_.data();
    if (n < count) scale.value[n] = scale_[slot - piece_->words];
  }
  gather_rows(scores, block.rows, scale, parents);
}

void LatentScores::inside_group(std::uint32_t first, std::size_t count, LatentScratch& scratch) {
  const std::size_t rule = piece_->rule[first];
  const RuleBlocks& shapes = blocks_->shapes();
  const ActiveBlock block = blocks_->active(rule);
  Lanes* left = room(scratch.left, shapes.left(rule));
  Lanes* right = room(scratch.right, shapes.right(rule));
  Lanes* pairs = room(scratch.pairs, block.columns());
  Lanes* parents = room(scratch.parents, block.rows.size());
  gather_children(rule, first, count, left, right);
  multiply_children(block, left, right, pairs);
  const Lanes largest = contract_children(block, pairs, parents);
  const std::size_t rows = shapes.rows(rule);
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint32_t slot = first + static_cast<std::uint32_t>(n);
    double* to = values_.data() + place_[slot].inside;
    if (block.rows.size() < rows) std::fill(to, to + rows, 0.0);
    // An impossible node has scores of 0; a scale of 0 keeps it and all around it out of the counts.
    const double most = largest.value[n];
    const std::int32_t exponent = most > 0 ? exponent_of(most) : 0;
    const double scale = most > 0 ? power_of_two(-exponent) : 0;
    exponent_[slot - piece_->words] = exponent;
    scale_[slot - piece_->words] = scale;
    for (std::size_t i = 0; i < block.rows.size(); ++i) to[block.rows[i]] = parents[i].value[n] * scale;
  }
}

void LatentScores::inside(ThreadPool& pool, std::span<LatentScratch> scratch) {
  for (const std::vector<std::uint32_t>& cuts : piece_->levels)
    run_level(cuts, pool, scratch,
              [&](std::uint32_t slot, std::size_t count, LatentScratch& own) { inside_group(slot, count, own); });
}

void LatentScores::roots(std::span<double> log_prob) {
  std::vector<std::int64_t> exponent(piece_->root.size(), 0);
  for (std::size_t i = 0; i < exponent_.size(); ++i)
    exponent[piece_->tree[piece_->words + i] - piece_->first_tree] += exponent_[i];
  for (std::size_t t = 0; t < piece_->root.size(); ++t) {
    const std::uint32_t root = piece_->root[t];
    const std::size_t size = size_of(blocks_->shapes().rule(piece_->rule[root]).parent);
    const double score = inside_of(root)[0];
    double* to = values_.data() + place_[root].outside;
    std::fill(to, to + size, 0.0);
    // A tree that cannot be made has outside scores of 0, and so counts nowhere.
    to[0] = score > 0 ? 1 / score : 0.0;
    log_prob[piece_->first_tree + t] = score > 0
                                           ? std::log(score) + std::numbers::ln2 * static_cast<double>(exponent[t])
                                           : (score == 0 ? -std::numeric_limits<double>::infinity() : score);
  }
}

void LatentScores::outside_group(std::uint32_t first, std::size_t count, LatentScratch& scratch) {
  const std::size_t rule = piece_->rule[first];
  const RuleBlocks& shapes = blocks_->shapes();
  const ActiveBlock block = blocks_->active(rule);
  const std::size_t lefts = shapes.left(rule), rights = shapes.right(rule);
  Lanes *left = room(scratch.left, lefts), *right = room(scratch.right, rights);
  Lanes *to_left = room(scratch.to_left, lefts), *to_right = room(scratch.to_right, rights);
  Lanes* parents = room(scratch.parents, block.rows.size());
  gather_children(rule, first, count, left, right);
  gather_parents(block, first, count, parents);
  std::fill(to_left, to_left + lefts, Lanes{});
  std::fill(to_right, to_right + rights, Lanes{});
  contract_parent(block, parents, left, right, to_left, to_right);
  double *left_scores[lanes], *right_scores[lanes];
  for (std::size_t n = 0; n < count; ++n) {
    const Children& below = children(first + static_cast<std::uint32_t>(n));
    left_scores[n] = values_.data() + below.left.outside;
    right_scores[n] = values_.data() + below.right.outside;
  }
  scatter(to_left, lefts, count, left_scores);
  if (shapes.rule(rule).right != no_symbol) scatter(to_right, rights, count, right_scores);
}

void LatentScores::outside(ThreadPool& pool, std::span<LatentScratch> scratch) {
  for (auto cuts = piece_->levels.rbegin(); cuts != piece_->levels.rend(); ++cuts)
    run_level(*cuts, pool, scratch,
              [&](std::uint32_t slot, std::size_t count, LatentScratch& own) { outside_group(slot, count, own); });
}

void LatentScores::check_numbers(ThreadPool& pool) const {
  std::mutex mutex;
  std::uint32_t smallest = no_child;
  for_each_part(piece_->rule.size(), pool, [&](std::size_t first, std::size_t last) {
    std::uint32_t found = no_child;
    for (auto slot = static_cast<std::uint32_t>(first); slot < last; ++slot) {
      double sum = 0;
      const double *in = inside_of(slot), *out = outside_of(slot);
      for (std::size_t x = 0; x < blocks_->shapes().rows(piece_->rule[slot]); ++x) sum += in[x] * out[x];
      if (!std::isfinite(sum)) found = std::min(found, piece_->tree[slot]);
    }
    const std::lock_guard lock(mutex);
    smallest = std::min(smallest, found);
  });
  if (smallest != no_child)
    throw Error(ErrorCode::not_a_number,
                "an expected count of tree " + std::to_string(smallest + 1) + " is NaN or infinite");
}

void LatentScores::count_rows(std::span<const std::pair<std::uint32_t, std::uint32_t>> runs, std::size_t first_row,
                              std::size_t last_row, std::span<double> counts, LatentScratch& scratch) const {
  const std::size_t rule = piece_->rule[runs[0].first];
  const RuleBlocks& shapes = blocks_->shapes();
  double* to = counts.data() + shapes.start(rule);
  if (shapes.rule(rule).left == no_symbol) {
    const double* in = inside_of(runs[0].first);
    for (std::uint32_t slot = runs[0].first; slot < runs[0].second; ++slot) {
      const double* out = outside_of(slot);
      for (std::size_t x = first_row; x < last_row; ++x) to[x] += in[x] * out[x];
    }
    return;
  }
  const ActiveBlock block = blocks_->active(rule);
  const std::size_t rows = last_row - first_row, columns = block.columns(), all_rows = block.rows.size();
  Lanes *left = room(scratch.left, shapes.left(rule)), *right = room(scratch.right, shapes.right(rule));
  Lanes* parents = room(scratch.parents, product_groups * all_rows);
  Lanes* pairs = room(scratch.pairs, product_groups * columns);
  Lanes* sums = room(scratch.sums, rows * columns);
  std::fill(sums, sums + rows * columns, Lanes{});
  std::size_t groups = 0;
  const auto add = [&] {
    add_products(parents + first_row, all_rows, rows, pairs, columns, groups, sums);
    groups = 0;
  };
  for (const auto& [first, last] : runs)
    for_each_group(first, last, [&](std::uint32_t slot, std::size_t count) {
      gather_children(rule, slot, count, left, right);
      multiply_children(block, left, right, pairs + groups * columns);
      gather_parents(block, slot, count, parents + groups * all_rows);
      if (++groups == product_groups) add();
    });
  if (groups > 0) add();
  const std::size_t width = shapes.columns(rule), rights = shapes.right(rule);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      to[block.rows[first_row + i] * width + block.left[j] * rights + block.right[j]] +=
          total(sums[i * columns + j]) * block.weights[j * all_rows + first_row + i];
}

void LatentScores::count(const CountedRows& rows, std::span<double> counts, LatentScratch& scratch) const {
  const std::span<const std::pair<std::uint32_t, std::uint32_t>> runs(piece_->runs);
  const std::span<const std::uint32_t> starts(piece_->rule_runs);
  const auto rule_at = [&](std::uint32_t start) { return std::size_t{piece_->rule[runs[start].first]}; };
  const auto first = std::partition_point(starts.begin(), starts.end() - 1,
                                          [&](std::uint32_t start) { return rule_at(start) < rows.first_rule; });
  for (auto at = first; at != starts.end() - 1; ++at) {
    const std::size_t rule = rule_at(*at);
    if (rule > rows.last_rule) break;
    const std::size_t first_row = rule == rows.first_rule ? rows.first_row : 0;
    const std::size_t last_row = rule == rows.last_rule ? rows.last_row : blocks_->counted_rows(rule);
    if (first_row < last_row) count_rows(runs.subspan(*at, *(at + 1) - *at), first_row, last_row, counts, scratch);
  }
}

}  // namespace treelm
