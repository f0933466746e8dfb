#include "backoff/estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "backoff/sequence_counts.h"
#include "backoff/streamed_counts.h"

namespace treelm {

namespace {

// The masses of one level, and the weights of its contexts.
class Masses {
 public:
  Masses(const ChainCounts& counts, std::size_t j, const LevelPlan& plan, const LevelContexts& contexts)
      : counts_(counts), j_(j), plan_(plan), contexts_(contexts) {
    weight_.resize(contexts.counts.size());
    for (std::size_t g = 0; g < weight_.size(); ++g) weight_[g] = plan.weight(contexts.counts[g]);
    if (plan.min_count > 1) prune();
  }

  // Lets go of what only `weight` looks at.
  void forget_contexts() { LargeVector<double>().swap(weight_); }
  bool kept(std::size_t entry) const { return plan_.min_count <= 1 || counts_.tokens(j_, entry) >= plan_.min_count; }
  double weight(std::size_t context) const { return weight_[context]; }
  double divisor(std::size_t context) const { return plan_.divisor(contexts_.counts[context]); }
  // Whether a context has any entry left.
  bool extended(std::size_t context) const { return left_.empty() || left_[context] != 0; }

 private:
  // What is left out goes to the lower level, so that everything still sums to one.
  void prune() {
    std::vector<PrunedContext> pruned(weight_.size());
    left_.assign(weight_.size(), 0);
    for (std::size_t i = 0; i < counts_.size(j_); ++i) {
      const std::uint32_t g = contexts_.context_of[i];
      pruned[g].add(plan_, counts_.level(j_).count[i], divisor(g), kept(i));
    }
    for (std::size_t g = 0; g < weight_.size(); ++g) {
      weight_[g] = pruned[g].weight(weight_[g]);
      left_[g] = pruned[g].left;
    }
  }

  const ChainCounts& counts_;
  std::size_t j_;
  const LevelPlan& plan_;
  const LevelContexts& contexts_;
  LargeVector<double> weight_;
  std::vector<std::uint32_t> left_;  // entries kept, per context
};

}  // namespace

template <class Counts>
void check_plan(const Counts& counts, const EstimatePlan& plan) {
  if (plan.levels.size() != counts.levels() || plan.shape.widths != counts.shape().widths)
    throw Error(ErrorCode::argument, "the plan does not fit the levels of the counts");
  const std::size_t last = counts.levels() - 1;
  if (!plan.base.empty() && plan.base.size() != counts.size(last))
    throw Error(ErrorCode::argument, "the base needs one probability for every entry of the last level");
  for (const double value : plan.base)
    if (!(value >= 0 && value <= 1)) throw Error(ErrorCode::argument, "a base probability lies outside [0, 1]");
  std::uint32_t above = 0;
  for (std::size_t j = 0; j < counts.levels(); ++j) {
    const LevelPlan& level = plan.levels[j];
    if (level.min_count > 1 && !counts.has_tokens())
      throw Error(ErrorCode::argument, "entries can be left out by their token counts only, and these were not kept");
    for (std::size_t r = 0; r < 3; ++r)
      if (!(level.discounts[r] >= 0 && level.discounts[r] <= static_cast<double>(r + 1)))
        throw Error(ErrorCode::argument, "a discount for counts of " + std::to_string(r + 1) + " lies outside [0, " +
                                             std::to_string(r + 1) + "]");
    for (const double weight : level.weights)
      if (!(weight >= 0 && weight <= 1)) throw Error(ErrorCode::argument, "a weight lies outside [0, 1]");
    if (j > 0 && level.min_count > above)
      throw Error(ErrorCode::argument, "the smallest count kept must not fall with the order");
    above = level.min_count;
  }
  if (plan.shape.sequence) {
    for (std::size_t j = 0; j < counts.levels(); ++j)
      if (counts.shape().widths[j] != counts.levels() - 1 - j)
        throw Error(ErrorCode::chain, "a sequence chain drops one word per level, down to none");
  }
}

template void check_plan(const ChainCounts&, const EstimatePlan&);
template void check_plan(const SequenceCounts&, const EstimatePlan&);
template void check_plan(const StreamedCounts&, const EstimatePlan&);

namespace {

// The contexts of a level with their masses and numbers. It stays where it is: the masses look at the
// contexts.
struct PreparedLevel {
  PreparedLevel(const ChainCounts& counts, std::size_t j, const LevelPlan& plan)
      : contexts(counts.contexts(j)), masses(counts, j, plan, contexts), number(contexts.counts.size(), none) {}
  PreparedLevel(const PreparedLevel&) = delete;
  PreparedLevel& operator=(const PreparedLevel&) = delete;

  LevelContexts contexts;
  Masses masses;
  LargeVector<std::uint32_t> number;  // per context, `none` if nothing is kept of it
};

template <std::size_t W>
class Estimator {
 public:
  Estimator(const ChainCounts& counts, const EstimatePlan& plan, const ProgressCallback& progress)
      : counts_(counts),
        plan_(plan),
        progress_(progress),
        layout_(counts.events().layout()),
        keys_(counts.events().keys_as<W>()),
        builder_(plan.shape, expected_rows(), counts.threads()) {
    for (std::size_t j = 0; j < counts.levels(); ++j) {
      all_ += counts.size(j);
      largest_ = std::max(largest_, counts.size(j));
    }
  }

  std::shared_ptr<const BackoffTable> run() {
    const std::size_t last = counts_.levels() - 1;
    std::unique_ptr<PreparedLevel> here = prepare(last);
    if (width(last) == 0) {
      here->number[0] = empty_context;
      builder_.set_empty_weight(here->masses.weight(0));
    }
    add_contexts(last, *here, nullptr);
    for (std::size_t j = last + 1; j-- > 0;) {
      std::unique_ptr<PreparedLevel> above;
      if (j > 0) above = prepare(j - 1);
      add_entries(j, *here);
      if (above) add_contexts(j - 1, *above, here.get());
      here = std::move(above);
    }
    return builder_.finish();
  }

 private:
  std::uint64_t expected_rows() const {
    std::uint64_t rows = 0;
    for (std::size_t j = 0; j < counts_.levels(); ++j) {
      const std::uint32_t least = plan_.levels[j].min_count;
      if (least <= 1)
        rows += counts_.size(j);
      else
        for (std::size_t i = 0; i < counts_.size(j); ++i) rows += counts_.tokens(j, i) >= least;
    }
    return rows;
  }
  std::uint32_t width(std::size_t j) const { return counts_.shape().widths[j]; }
  const Key<W>& key(std::size_t j, std::size_t entry) const { return keys_[counts_.level(j).first_row[entry]]; }
  const Key<W>& context_key(std::size_t j, const LevelContexts& contexts, std::size_t g) const {
    return key(j, contexts.an_entry[g]);
  }
  // Compares columns [a_from, a_from + count) of one row with as many of another.
  int compare(const Key<W>& a, std::uint32_t a_from, const Key<W>& b, std::uint32_t b_from, std::uint32_t count) const {
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint32_t left = layout_.column(a, a_from + c), right = layout_.column(b, b_from + c);
      if (left != right) return left < right ? -1 : 1;
    }
    return 0;
  }

  // Groups the entries of a level by context, and weighs the contexts.
  std::unique_ptr<PreparedLevel> prepare(std::size_t j) {
    return std::make_unique<PreparedLevel>(counts_, j, plan_.levels[j]);
  }

  // Contexts are found column by column, also where a level drops several.
  void add_contexts(std::size_t j, PreparedLevel& level, const PreparedLevel* below) {
    if (width(j) == 0) return;
    const std::size_t contexts = level.contexts.an_entry.size();
    // Contexts are in ascending order, and so are those of the level below that they shorten to.
    LargeVector<std::uint32_t> prefix(contexts, empty_context);  // the number of the columns so far
    const std::uint32_t given = below == nullptr ? 0 : width(j + 1);
    if (given > 0) {
      std::size_t at = 0;
      for (std::size_t g = 0; g < contexts; ++g) {
        if (!level.masses.extended(g)) continue;
        const Key<W>& own = context_key(j, level.contexts, g);
        while (compare(own, 1, context_key(j + 1, below->contexts, at), 1, given) != 0) ++at;
        prefix[g] = below->number[at];
      }
    }
    for (std::uint32_t depth = given + 1; depth <= width(j); ++depth) {
      RowBatch rows = builder_.batch();
      LargeVector<std::uint32_t> rank(contexts, none);
      std::size_t before = contexts;
      std::uint32_t distinct = 0;
      for (std::size_t g = 0; g < contexts; ++g) {
        if (!level.masses.extended(g)) continue;
        const Key<W>& columns = context_key(j, level.contexts, g);
        if (before == contexts || compare(columns, 1, context_key(j, level.contexts, before), 1, depth) != 0) {
          const double weight = depth == width(j) ? level.masses.weight(g) : 1.0;
          rows.add(prefix[g] - builder_.start(depth - 1), layout_.column(columns, depth), 0.0, weight, 0, distinct++);
        }
        rank[g] = distinct - 1;
        before = g;
      }
      LargeVector<std::uint32_t> positions(distinct);
      builder_.add_contexts(depth, std::move(rows), &positions);
      for (std::size_t g = 0; g < contexts; ++g)
        prefix[g] = rank[g] == none ? none : static_cast<std::uint32_t>(builder_.start(depth) + positions[rank[g]]);
    }
    level.number = std::move(prefix);
  }

  void add_entries(std::size_t j, PreparedLevel& here) {
    const LevelCounts& level = counts_.level(j);
    const bool last = j + 1 == counts_.levels();
    const LargeVector<std::uint32_t>* below = last ? nullptr : &counts_.level(j + 1).first_row;
    const double uniform = plan_.shape.base_size == 0 ? 0.0 : 1.0 / static_cast<double>(plan_.shape.base_size);
    const std::size_t entries = level.count.size();
    const std::uint64_t first_number = builder_.start(width(j));
    LargeVector<double> p(j > 0 ? entries : 0);
    RowBatch rows = builder_.batch();
    rows.reserve(largest_ + (last ? plan_.shape.outcomes : 0));
    // Entries come in the order of their outcomes, so their contexts lie anywhere: all that is needed
    // of one stands side by side, and is asked for early.
    struct Use {
      double divisor, weight;
      std::uint32_t position;
    };
    LargeVector<Use> uses(here.contexts.counts.size());
    for (std::size_t g = 0; g < uses.size(); ++g)
      uses[g] = {here.masses.divisor(g), here.masses.weight(g),
                 static_cast<std::uint32_t>(here.number[g] - first_number)};
    LargeVector<ContextCounts>().swap(here.contexts.counts);
    here.masses.forget_contexts();
    const LargeVector<std::uint32_t>& context_of = here.contexts.context_of;
    constexpr std::size_t early = 24;
    std::size_t parent = 0;
    for (std::size_t i = 0; i < entries; ++i) {
#if defined(__GNUC__)
      if (i + early < entries) __builtin_prefetch(uses.data() + context_of[i + early]);
#endif
      if (!last)
        while (parent + 1 < below->size() && (*below)[parent + 1] <= level.first_row[i]) ++parent;
      const Use& use = uses[context_of[i]];
      const double lower = !last ? p_[parent] : plan_.base.empty() ? uniform : plan_.base[i];
      const bool kept = here.masses.kept(i);
      const double mass = kept ? plan_.levels[j].discounted(level.count[i]) / use.divisor : 0.0;
      const double value = std::min(1.0, mass + use.weight * lower);
      if (j > 0) p[i] = value;
      if (i % 1000000 == 999999) progress_(done_ + i, all_);
      const Key<W>& row = key(j, i);
      const std::uint32_t outcome = layout_.column(row, 0);
      if (last && plan_.shape.base_size != 0 && outcome >= plan_.shape.base_size)
        throw Error(ErrorCode::argument, "an outcome was counted that is outside the uniform base");
      if (kept) rows.add(use.position, outcome, value, not_a_context, empty_context, static_cast<std::uint32_t>(i));
    }
    builder_.add_entries(j, std::move(rows), nullptr);
    done_ += entries;
    progress_(done_, all_);
    p_ = std::move(p);
  }

  const ChainCounts& counts_;
  const EstimatePlan& plan_;
  const ProgressCallback& progress_;
  const KeyLayout& layout_;
  const Key<W>* keys_;
  TableBuilder builder_;
  LargeVector<double> p_;    // of the level below
  std::size_t largest_ = 0;  // entries of the largest level
  std::uint64_t done_ = 0, all_ = 0;
};

}  // namespace

unsigned count_bucket(std::uint64_t total, std::uint64_t types) {
  const std::uint64_t rounded = types <= 1 ? total : (total + types - 1) / types;
  return rounded <= 1 ? 0 : static_cast<unsigned>(std::bit_width(rounded - 1));
}

double LevelPlan::linear(const ContextCounts& context) const {
  const std::size_t bucket = count_bucket(context.total, bucket_by_ratio ? context.types() : 1);
  return weights[std::min(bucket, weights.size() - 1)];
}

double LevelPlan::discounted(std::uint32_t count) const {
  if (!weights.empty()) return static_cast<double>(count);
  return std::max(0.0, static_cast<double>(count) - discounts[std::min<std::uint32_t>(count, 3) - 1]);
}

double LevelPlan::divisor(const ContextCounts& context) const {
  const auto total = static_cast<double>(context.total);
  return weights.empty() ? total : total / linear(context);
}

double LevelPlan::weight(const ContextCounts& context) const {
  if (!weights.empty()) return 1.0 - linear(context);
  double taken = 0;
  for (std::size_t r = 0; r < 3; ++r) taken += discounts[r] * context.outcomes_of[r];
  return taken / static_cast<double>(context.total);
}

std::shared_ptr<const BackoffTable> estimate(const ChainCounts& counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress) {
  check_plan(counts, plan);
  if (plan.shape.sequence)
    return estimate(SequenceCounts(counts.events(), counts.shape(), plan.shape.outcomes, counts.counts_tokens(),
                                   counts.has_tokens(), counts.threads()),
                    plan, progress);
  return with_key_words(counts.events().layout().words(),
                        [&]<std::size_t W>() { return Estimator<W>(counts, plan, progress).run(); });
}

}  // namespace treelm
