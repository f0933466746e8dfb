#include "backoff_estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace treelm {

namespace {

// The masses of one level, and the weights of its contexts.
class Masses {
 public:
  Masses(const ChainCounts& counts, std::size_t j, const LevelPlan& plan, const LevelContexts& contexts)
      : counts_(counts), j_(j), plan_(plan), contexts_(contexts) {
    weight_.resize(contexts.counts.size());
    for (std::size_t g = 0; g < weight_.size(); ++g) weight_[g] = whole_weight(contexts.counts[g]);
    if (plan.min_count > 1) prune();
  }

  // Lets go of what only `mass` and `weight` look at.
  void forget_contexts() { LargeVector<double>().swap(weight_); }
  bool kept(std::size_t entry) const { return plan_.min_count <= 1 || counts_.tokens(j_, entry) >= plan_.min_count; }
  double mass(std::size_t entry) const {
    return discounted(counts_.level(j_).count[entry]) / divisor(contexts_.context_of[entry]);
  }
  double weight(std::size_t context) const { return weight_[context]; }
  // What a count less its discount is divided by.
  double divisor(std::size_t context) const {
    const ContextCounts& counts = contexts_.counts[context];
    const auto total = static_cast<double>(counts.total);
    return plan_.weights.empty() ? total : total / linear(counts);
  }
  double discounted(std::uint32_t count) const {
    if (!plan_.weights.empty()) return static_cast<double>(count);
    return std::max(0.0, static_cast<double>(count) - plan_.discounts[std::min<std::uint32_t>(count, 3) - 1]);
  }
  // Whether a context has any entry left.
  bool extended(std::size_t context) const { return left_.empty() || left_[context] != 0; }

 private:
  double linear(const ContextCounts& context) const {
    const std::size_t bucket = count_bucket(context.total, plan_.bucket_by_ratio ? context.types() : 1);
    return plan_.weights[std::min(bucket, plan_.weights.size() - 1)];
  }
  double whole_weight(const ContextCounts& context) const {
    if (!plan_.weights.empty()) return 1.0 - linear(context);
    double taken = 0;
    for (std::size_t r = 0; r < 3; ++r) taken += plan_.discounts[r] * context.outcomes_of[r];
    return taken / static_cast<double>(context.total);
  }
  // What is left out goes to the lower level, so that everything still sums to one.
  void prune() {
    std::vector<double> kept_mass(weight_.size(), 0.0);
    std::vector<std::uint32_t> whole(weight_.size(), 0);
    left_.assign(weight_.size(), 0);
    for (std::size_t i = 0; i < counts_.size(j_); ++i) {
      const std::uint32_t g = contexts_.context_of[i];
      ++whole[g];
      if (!kept(i)) continue;
      ++left_[g];
      kept_mass[g] += mass(i);
    }
    for (std::size_t g = 0; g < weight_.size(); ++g)
      if (left_[g] != whole[g]) weight_[g] = left_[g] == 0 ? 1.0 : std::max(0.0, 1.0 - kept_mass[g]);
  }

  const ChainCounts& counts_;
  std::size_t j_;
  const LevelPlan& plan_;
  const LevelContexts& contexts_;
  LargeVector<double> weight_;
  std::vector<std::uint32_t> left_;  // entries kept, per context
};

void check_plan(const ChainCounts& counts, const EstimatePlan& plan) {
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
        throw Error(ErrorCode::chain, "a sequence chain drops one word a level, down to none");
  }
}

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
        layout_(counts.events().layout),
        keys_(counts.events().keys_as<W>()),
        builder_(plan.shape, expected_rows(), counts.threads()) {
    for (std::size_t j = 0; j < counts.levels(); ++j) {
      all_ += counts.size(j);
      largest_ = std::max(largest_, counts.size(j));
    }
    if (!plan.shape.sequence) context_rows_.resize(plan.shape.widths.front());
  }

  std::shared_ptr<const BackoffTable> run() {
    const std::size_t last = counts_.levels() - 1;
    if (counts_.shape().widths[last] > 0) builder_.add_context(0, 1.0, empty_context);
    std::unique_ptr<PreparedLevel> here = prepare(last, nullptr);
    for (std::size_t j = last + 1; j-- > 0;) {
      std::unique_ptr<PreparedLevel> above;
      if (j > 0) above = prepare(j - 1, here.get());
      add_entries(j, *here, plan_.shape.sequence ? above.get() : nullptr);
      here = std::move(above);
    }
    for (std::size_t depth = 1; depth <= context_rows_.size(); ++depth)
      builder_.add_context_rows(static_cast<std::uint32_t>(depth), std::move(context_rows_[depth - 1]));
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

  // Groups the entries of a level by context, and gives the contexts their numbers and weights.
  std::unique_ptr<PreparedLevel> prepare(std::size_t j, const PreparedLevel* below) {
    auto prepared = std::make_unique<PreparedLevel>(counts_, j, plan_.levels[j]);
    PreparedLevel& level = *prepared;
    const std::size_t contexts = level.contexts.counts.size();
    if (width(j) == 0) {
      level.number[0] = empty_context;
      builder_.add_context(0, level.masses.weight(0), empty_context);
      return prepared;
    }
    // Contexts are in ascending order, and so are those of the level below that they shorten to.
    LargeVector<std::uint32_t> shorter(contexts, empty_context);
    if (below != nullptr && width(j + 1) > 0) {
      std::size_t at = 0;
      for (std::size_t g = 0; g < contexts; ++g) {
        if (!level.masses.extended(g)) continue;
        const Key<W>& own = context_key(j, level.contexts, g);
        while (compare(own, 1, context_key(j + 1, below->contexts, at), 1, width(j + 1)) != 0) ++at;
        shorter[g] = below->number[at];
      }
    }
    if (plan_.shape.sequence) {
      for (std::size_t g = 0; g < contexts; ++g) {
        if (!level.masses.extended(g)) continue;
        level.number[g] = static_cast<std::uint32_t>(builder_.contexts());
        builder_.add_context(width(j), level.masses.weight(g), shorter[g]);
      }
      return prepared;
    }
    // Other chains: contexts are found column by column, also where a level drops several.
    LargeVector<std::uint32_t> prefix(shorter);  // the number of the columns so far
    for (std::uint32_t depth = (below == nullptr ? 0 : width(j + 1)) + 1; depth <= width(j); ++depth) {
      const bool own = depth == width(j);
      std::size_t before = contexts;
      std::uint32_t parent = none;
      for (std::size_t g = 0; g < contexts; ++g) {
        if (!level.masses.extended(g)) continue;
        const Key<W>& columns = context_key(j, level.contexts, g);
        const bool same = before < g && compare(columns, 1, context_key(j, level.contexts, before), 1, depth) == 0;
        if (!same) {
          parent = static_cast<std::uint32_t>(builder_.contexts());
          builder_.add_context(depth, own ? level.masses.weight(g) : 1.0, shorter[g]);
          context_rows_[depth - 1].push_back(TableBuilder::row(prefix[g], layout_.column(columns, depth), 0.0, parent));
        }
        prefix[g] = parent;
        before = g;
      }
    }
    level.number = std::move(prefix);
    return prepared;
  }

  void add_entries(std::size_t j, PreparedLevel& here, const PreparedLevel* above) {
    const LevelCounts& level = counts_.level(j);
    const bool last = j + 1 == counts_.levels();
    const LargeVector<std::uint32_t>* below = last ? nullptr : &counts_.level(j + 1).first_row;
    const double uniform = plan_.shape.base_size == 0 ? 0.0 : 1.0 / static_cast<double>(plan_.shape.base_size);
    const std::size_t entries = level.count.size();
    LargeVector<double> p(j > 0 ? entries : 0);
    LargeVector<std::uint32_t> next(j > 0 && plan_.shape.sequence ? entries : 0);
    LargeVector<TableBuilder::Row> rows;
    rows.reserve(largest_ + (last ? plan_.shape.outcomes : 0));
    // Entries come in the order of their outcomes, so their contexts lie anywhere: all that is needed
    // of one stands side by side, and is asked for early.
    struct Use {
      double divisor, weight;
      std::uint32_t number;
    };
    LargeVector<Use> uses(here.contexts.counts.size());
    for (std::size_t g = 0; g < uses.size(); ++g)
      uses[g] = {here.masses.divisor(g), here.masses.weight(g), here.number[g]};
    LargeVector<ContextCounts>().swap(here.contexts.counts);
    here.masses.forget_contexts();
    const LargeVector<std::uint32_t>& context_of = here.contexts.context_of;
    constexpr std::size_t early = 24;
    std::size_t parent = 0, context = 0;
    for (std::size_t i = 0; i < entries; ++i) {
#if defined(__GNUC__)
      if (i + early < entries) __builtin_prefetch(uses.data() + context_of[i + early]);
#endif
      if (!last)
        while (parent + 1 < below->size() && (*below)[parent + 1] <= level.first_row[i]) ++parent;
      const Use& use = uses[context_of[i]];
      const double lower = !last ? p_[parent] : plan_.base.empty() ? uniform : plan_.base[i];
      const bool kept = here.masses.kept(i);
      const double mass = kept ? here.masses.discounted(level.count[i]) / use.divisor : 0.0;
      const double value = std::min(1.0, mass + use.weight * lower);
      if (j > 0) p[i] = value;
      if (i % 1000000 == 999999) progress_(done_ + i, all_);
      const Key<W>& row = key(j, i);
      const std::uint32_t outcome = layout_.column(row, 0);
      if (last && plan_.shape.base_size != 0 && outcome >= plan_.shape.base_size)
        throw Error(ErrorCode::argument, "an outcome was counted that the uniform base does not have");
      std::uint32_t leads_to = last || next_.empty() ? empty_context : next_[parent];
      if (above != nullptr) {
        if (const std::uint32_t own = own_context(j, row, *above, context, rows); own != none) leads_to = own;
      }
      if (!next.empty()) next[i] = leads_to;
      if (kept) rows.push_back(TableBuilder::row(use.number, outcome, value, leads_to));
    }
    if (above != nullptr) pass_contexts(j, *above, context, above->contexts.counts.size(), rows);
    builder_.add_entries(j, std::move(rows));
    done_ += entries;
    progress_(done_, all_);
    p_ = std::move(p);
    next_ = std::move(next);
  }

  // The number of the context that a row of level j is for level j - 1, or `none`. Both are in
  // ascending order; `context` walks along.
  std::uint32_t own_context(std::size_t j, const Key<W>& row, const PreparedLevel& above, std::size_t& context,
                            LargeVector<TableBuilder::Row>& rows) {
    const std::uint32_t columns = width(j) + 1;
    const std::size_t contexts = above.contexts.counts.size();
    std::size_t to = context;
    int order = 1;
    while (to < contexts && (order = compare(context_key(j - 1, above.contexts, to), 1, row, 0, columns)) < 0) ++to;
    pass_contexts(j, above, context, to, rows);
    context = to;
    if (to == contexts || order != 0) return none;
    ++context;
    return above.number[to];
  }

  // Contexts of level j - 1 that are no row of level j: only a first word can be one, such as <s>.
  void pass_contexts(std::size_t j, const PreparedLevel& above, std::size_t from, std::size_t to,
                     LargeVector<TableBuilder::Row>& rows) {
    for (std::size_t g = from; g < to; ++g) {
      if (above.number[g] == none) continue;
      if (width(j) != 0) throw Error(ErrorCode::chain, "the events are no n-grams of sequences");
      const std::uint32_t word = layout_.column(context_key(j - 1, above.contexts, g), 1);
      // It leads on, and has its share of the base.
      const double share = word < plan_.shape.base_size
                               ? builder_.backoff(empty_context) / static_cast<double>(plan_.shape.base_size)
                               : 0.0;
      rows.push_back(TableBuilder::row(empty_context, word, -share, above.number[g]));
    }
  }

  const ChainCounts& counts_;
  const EstimatePlan& plan_;
  const ProgressCallback& progress_;
  const KeyLayout& layout_;
  const Key<W>* keys_;
  TableBuilder builder_;
  LargeVector<double> p_;            // of the level below
  LargeVector<std::uint32_t> next_;  // of the level below
  std::vector<LargeVector<TableBuilder::Row>> context_rows_;
  std::size_t largest_ = 0;  // entries of the largest level
  std::uint64_t done_ = 0, all_ = 0;
};

}  // namespace

unsigned count_bucket(std::uint64_t total, std::uint64_t types) {
  const std::uint64_t rounded = types <= 1 ? total : (total + types - 1) / types;
  return rounded <= 1 ? 0 : static_cast<unsigned>(std::bit_width(rounded - 1));
}

std::shared_ptr<const BackoffTable> estimate(const ChainCounts& counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress) {
  check_plan(counts, plan);
  return with_key_words(counts.events().layout.words(),
                        [&]<std::size_t W>() { return Estimator<W>(counts, plan, progress).run(); });
}

}  // namespace treelm
