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

  bool kept(std::size_t entry) const { return plan_.min_count <= 1 || counts_.tokens(j_, entry) >= plan_.min_count; }
  double mass(std::size_t entry) const {
    const ContextCounts& context = contexts_.counts[contexts_.context_of[entry]];
    const std::uint32_t count = counts_.level(j_).count[entry];
    const auto total = static_cast<double>(context.total);
    if (!plan_.weights.empty()) return linear(context) * (static_cast<double>(count) / total);
    const double left = static_cast<double>(count) - plan_.discounts[std::min<std::uint32_t>(count, 3) - 1];
    return std::max(left, 0.0) / total;
  }
  double weight(std::size_t context) const { return weight_[context]; }
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

class Estimator {
 public:
  Estimator(const ChainCounts& counts, const EstimatePlan& plan, const ProgressCallback& progress)
      : counts_(counts),
        plan_(plan),
        progress_(progress),
        sequence_(plan.shape.sequence),
        builder_(plan.shape, expected_rows(), counts.threads()) {
    for (std::size_t j = 0; j < counts.levels(); ++j) {
      all_ += counts.size(j);
      largest_ = std::max(largest_, counts.size(j));
    }
  }

  std::shared_ptr<const BackoffTable> run() {
    with_key_words(counts_.events().layout.words(), [&]<std::size_t W>() {
      for (std::size_t j = counts_.levels(); j-- > 0;) {
        LevelContexts contexts = counts_.contexts(j);
        const Masses masses(counts_, j, plan_.levels[j], contexts);
        add_entries<W>(j, contexts, masses);
        LargeVector<std::uint32_t>().swap(contexts.context_of);
        if (counts_.shape().widths[j] == 0)
          builder_.set_empty_backoff(masses.weight(0));
        else if (sequence_)
          weigh_sequences<W>(j, contexts, masses);
        else
          keep_contexts(contexts, masses);
      }
      if (!sequence_) add_contexts<W>();
    });
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
  std::uint32_t width_below(std::size_t j) const {
    return j + 1 < counts_.levels() ? counts_.shape().widths[j + 1] : 0;
  }

  template <std::size_t W>
  void add_entries(std::size_t j, const LevelContexts& contexts, const Masses& masses) {
    const SortedEvents& events = counts_.events();
    const auto* keys = events.keys_as<W>();
    const LevelCounts& level = counts_.level(j);
    const bool last = j + 1 == counts_.levels();
    const LargeVector<std::uint32_t>* below = last ? nullptr : &counts_.level(j + 1).first_row;
    const double uniform = plan_.shape.base_size == 0 ? 0.0 : 1.0 / static_cast<double>(plan_.shape.base_size);
    const std::size_t entries = level.count.size();
    const std::uint32_t to = counts_.shape().widths[j] + 1;
    // The first level is nobody's lower level; and where one column is added, rows are made at once.
    const bool needed = j > 0, one_step = !last && to == width_below(j) + 2;
    LargeVector<double> p;
    LargeVector<std::uint32_t> slots;  // of the columns added so far
    LargeVector<TableBuilder::Row> rows;
    if (needed || !one_step) {
      p.resize(entries);
      slots.assign(entries, none);
    }
    if (one_step) rows.reserve(largest_);
    std::size_t parent = 0;
    for (std::size_t i = 0; i < entries; ++i) {
      if (!last)
        while (parent + 1 < below->size() && (*below)[parent + 1] <= level.first_row[i]) ++parent;
      const double lower = !last ? p_[parent] : plan_.base.empty() ? uniform : plan_.base[i];
      const bool kept = masses.kept(i);
      const double value = std::min(1.0, (kept ? masses.mass(i) : 0.0) + masses.weight(contexts.context_of[i]) * lower);
      if (!p.empty()) p[i] = value;
      if (kept && one_step)
        rows.push_back(TableBuilder::row(slots_[parent], events.layout.column(keys[level.first_row[i]], to - 1), value,
                                         static_cast<std::uint32_t>(i)));
      else if (kept)
        slots[i] = last ? entry_root : slots_[parent];
      if (i % 1000000 == 999999) progress_(done_ + i, all_);
    }
    if (one_step) {
      builder_.add_entries(std::move(rows), slots);
    } else {
      for (std::uint32_t columns = last ? 1 : width_below(j) + 2; columns <= to; ++columns)
        add_columns<W>(level, columns, columns == to, p, slots);
    }
    done_ += entries;
    progress_(done_, all_);
    p_ = std::move(p);
    slots_.swap(slots);
    slots_below_ = std::move(slots);
  }

  // Adds the rows of `columns` columns of a level's entries: those entries themselves, or, in between
  // two levels, rows without a probability.
  template <std::size_t W>
  void add_columns(const LevelCounts& level, std::uint32_t columns, bool entries, const LargeVector<double>& p,
                   LargeVector<std::uint32_t>& slots) {
    const SortedEvents& events = counts_.events();
    const auto* keys = events.keys_as<W>();
    const unsigned bits = events.layout.prefix(columns);
    LargeVector<TableBuilder::Row> rows;
    if (columns > 1) rows.reserve(slots.size());
    std::size_t before = slots.size();
    std::uint32_t count = 0;
    std::vector<std::uint32_t> row_of(columns > 1 && !entries ? slots.size() : 0);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] == none) continue;
      const Key<W>& key = keys[level.first_row[i]];
      const bool same = before < i && common_bits(keys[level.first_row[before]], key) >= bits;
      before = i;
      const std::uint32_t element = events.layout.column(key, columns - 1);
      if (columns == 1) {
        if (plan_.shape.base_size != 0 && element >= plan_.shape.base_size)
          throw Error(ErrorCode::argument, "an outcome was counted that the uniform base does not have");
        slots[i] = builder_.first_entry(element);
        if (entries) builder_.set_probability(slots[i], p[i]);
        continue;
      }
      if (!same)
        rows.push_back(TableBuilder::row(slots[i], element, entries ? p[i] : -0.0,
                                         entries ? static_cast<std::uint32_t>(i) : count++));
      if (!entries) row_of[i] = count - 1;
    }
    if (columns == 1) return;
    if (entries) {
      builder_.add_entries(std::move(rows), slots);
      return;
    }
    std::vector<std::uint32_t> found(count);
    builder_.add_entries(std::move(rows), found);
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i] != none) slots[i] = found[row_of[i]];
  }

  // Sequences: the weight of a context (e1..ew) goes to the row (e1; e2..ew) of the level below. Both
  // lists are in ascending order, so they are walked side by side.
  template <std::size_t W>
  void weigh_sequences(std::size_t j, const LevelContexts& contexts, const Masses& masses) {
    const std::uint32_t width = counts_.shape().widths[j];
    const KeyLayout& layout = counts_.events().layout;
    const auto* keys = counts_.events().keys_as<W>();
    const LevelCounts& below = counts_.level(j + 1);
    const auto compare = [&](const Key<W>& context, const Key<W>& row) {
      for (std::uint32_t c = 0; c < width; ++c) {
        const std::uint32_t a = layout.column(context, 1 + c), b = layout.column(row, c);
        if (a != b) return a < b ? -1 : 1;
      }
      return 0;
    };
    std::size_t at = 0;
    for (std::size_t g = 0; g < contexts.counts.size(); ++g) {
      if (!masses.extended(g)) continue;
      const Key<W>& context = keys[counts_.level(j).first_row[contexts.an_entry[g]]];
      int order = 1;
      while (at < below.count.size() && (order = compare(context, keys[below.first_row[at]])) > 0) ++at;
      std::uint32_t slot = order == 0 && at < below.count.size() ? slots_below_[at] : none;
      if (slot == none && width == 1) {
        // A word that is only ever a context: it carries a weight, and its share of the base.
        const std::uint32_t element = layout.column(context, 1);
        slot = builder_.first_entry(element);
        if (element < plan_.shape.base_size)
          builder_.set_probability(slot, -builder_.shape().empty_backoff / static_cast<double>(plan_.shape.base_size));
      }
      if (slot != none) builder_.set_backoff(slot, masses.weight(g));
    }
  }

  // Other chains: contexts get rows of their own, after all entries.
  struct KeptContexts {
    std::vector<std::uint32_t> an_entry;
    std::vector<double> weight;
  };
  void keep_contexts(const LevelContexts& contexts, const Masses& masses) {
    KeptContexts kept;
    for (std::size_t g = 0; g < contexts.counts.size(); ++g) {
      if (!masses.extended(g)) continue;
      kept.an_entry.push_back(contexts.an_entry[g]);
      kept.weight.push_back(masses.weight(g));
    }
    kept_.push_back(std::move(kept));
  }

  template <std::size_t W>
  void add_contexts() {
    const SortedEvents& events = counts_.events();
    const auto* keys = events.keys_as<W>();
    std::size_t next = 0;
    for (std::size_t j = counts_.levels(); j-- > 0;) {
      const std::uint32_t width = counts_.shape().widths[j];
      if (width == 0) continue;
      const KeptContexts& kept = kept_[next++];
      const auto key_of = [&](std::size_t g) { return keys[counts_.level(j).first_row[kept.an_entry[g]]]; };
      std::vector<std::uint32_t> slots(kept.weight.size(), context_root);
      for (std::uint32_t columns = 1; columns <= width; ++columns) {
        const bool own = columns == width, known = columns <= width_below(j);
        LargeVector<TableBuilder::Row> rows;
        std::vector<std::uint32_t> row_of(slots.size()), found;
        for (std::size_t g = 0; g < slots.size(); ++g) {
          const std::uint32_t element = events.layout.column(key_of(g), columns);
          if (columns == 1) {
            slots[g] = builder_.first_context(element);
            if (own) builder_.set_backoff(slots[g], kept.weight[g]);
          } else if (known) {
            slots[g] = builder_.context(columns, slots[g], element);
          } else {
            const unsigned from = events.layout.prefix(1), to = events.layout.prefix(1 + columns);
            const bool same = g > 0 && slice<W>(key_of(g - 1), from, to) == slice<W>(key_of(g), from, to);
            if (!same)
              rows.push_back(TableBuilder::row(slots[g], element, own ? kept.weight[g] : -1.0,
                                               static_cast<std::uint32_t>(rows.size())));
            row_of[g] = static_cast<std::uint32_t>(rows.size() - 1);
          }
        }
        if (columns == 1 || known) continue;
        found.resize(rows.size());
        builder_.add_contexts(std::move(rows), found);
        for (std::size_t g = 0; g < slots.size(); ++g) slots[g] = found[row_of[g]];
      }
    }
  }

  const ChainCounts& counts_;
  const EstimatePlan& plan_;
  const ProgressCallback& progress_;
  bool sequence_;
  TableBuilder builder_;
  LargeVector<double> p_;                   // of the level below
  LargeVector<std::uint32_t> slots_;        // of the level below
  LargeVector<std::uint32_t> slots_below_;  // of the level below that
  std::size_t largest_ = 0;                 // entries of the largest level
  std::vector<KeptContexts> kept_;          // from the last level up
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
  return Estimator(counts, plan, progress).run();
}

}  // namespace treelm
