#include "backoff/chain_sampler.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace treelm {

namespace {

// A mass below zero by no more than rounding is none.
constexpr double rounding = 1e-6;

// An entry of a table on its way to its context.
struct Entry {
  std::uint32_t context, outcome;
  double p;
  std::uint64_t at;
};

// Gives the entries of a level in blocks: they lie in the order of hashes, so that the memory of each context
// has to be asked for well before it is used.
template <class Visit>
void each_block(const BackoffTable& table, std::size_t level, const Visit& visit) {
  constexpr std::size_t block = 256;
  std::vector<Entry> entries;
  entries.reserve(block);
  table.each_entry(level, [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double p, std::uint32_t) {
    if (std::signbit(p)) return;
    entries.push_back({context, outcome, p, 0});
    if (entries.size() < block) return;
    visit(entries);
    entries.clear();
  });
  visit(entries);
}

}  // namespace

ChainSampler::ChainSampler(std::shared_ptr<const BackoffTable> table, std::span<const double> base, std::uint32_t never)
    : table_(std::move(table)), never_(never) {
  const TableShape& shape = table_->shape();
  const std::uint64_t contexts = table_->contexts();
  start_.assign(contexts + 1, 0);
  for (std::size_t j = 0; j < shape.levels(); ++j)
    each_block(*table_, j, [&](const std::vector<Entry>& entries) {
      for (const Entry& entry : entries) __builtin_prefetch(&start_[entry.context + 1], 1);
      for (const Entry& entry : entries) ++start_[entry.context + 1];
    });
  for (std::size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
  outcome_.resize(start_.back());
  upto_.resize(start_.back());
  states_ = std::make_unique<std::atomic<std::uint8_t>[]>(contexts);
  std::vector<std::uint64_t> place(start_.begin(), start_.end() - 1);
  std::size_t last_rows = 0;
  for (std::size_t j = 0; j < shape.levels(); ++j) {
    const bool last = j + 1 == shape.levels();
    each_block(*table_, j, [&](std::vector<Entry>& entries) {
      for (const Entry& entry : entries) __builtin_prefetch(&place[entry.context], 1);
      for (Entry& entry : entries) {
        entry.at = place[entry.context]++;
        __builtin_prefetch(&outcome_[entry.at], 1);
        __builtin_prefetch(&upto_[entry.at], 1);
      }
      for (const auto& [context, outcome, p, at] : entries) {
        outcome_[at] = outcome;
        upto_[at] = p;
        if (!last) continue;
        // The base of an entry is known by its order only.
        double own_base = table_->uniform_base(outcome);
        if (!base.empty()) own_base = last_rows < base.size() ? base[last_rows] : 0.0;
        ++last_rows;
        const State found = set_mass(at, usable_weight(table_->backoff(context)) * own_base);
        if (states_[context].load(std::memory_order_relaxed) != not_interpolated)
          states_[context].store(found, std::memory_order_relaxed);
      }
    });
  }
  if (!base.empty() && last_rows != base.size())
    throw Error(ErrorCode::argument, "the base needs one probability for every row of the last level");
  for (std::size_t context = 0; context < contexts; ++context)
    if (states_[context].load(std::memory_order_relaxed) != stored) add_up(context);
}

ChainSampler::State ChainSampler::set_mass(std::uint64_t at, double lower) const {
  const double p = usable_probability(upto_[at]);
  const double mass = p - lower;
  upto_[at] = std::max(mass, 0.0);
  return mass < -rounding * p ? not_interpolated : summed;
}

void ChainSampler::add_up(std::size_t context) const {
  for (std::uint64_t i = start_[context] + 1; i < start_[context + 1]; ++i) upto_[i] += upto_[i - 1];
}

ChainSampler::State ChainSampler::sum_masses(std::uint32_t context, std::size_t level,
                                             const std::uint32_t* columns) const {
  const std::lock_guard guard(mutexes_[context % mutexes_.size()]);
  State found = state(context);
  if (found != stored) return found;
  found = summed;
  std::uint32_t row[max_columns + 1] = {};
  std::copy_n(columns, context_columns(), row + 1);
  const double weight = usable_weight(table_->backoff(context));
  for (std::uint64_t i = start_[context]; i < start_[context + 1]; ++i) {
    row[0] = outcome_[i];
    const double lower = table_->probability_from(level + 1, row, table_->uniform_base(row[0]));
    if (set_mass(i, weight * lower) == not_interpolated) found = not_interpolated;
  }
  add_up(context);
  states_[context].store(found, std::memory_order_release);
  return found;
}

std::uint32_t ChainSampler::draw_by_inversion(std::size_t j, const std::uint32_t* context, double place) const {
  std::vector<std::uint32_t> row(context, context + table_->shape().widths.front());
  row.insert(row.begin(), 0);
  double sum = 0;
  const std::uint64_t size = table_->shape().base_size;
  std::vector<double> upto(size);
  for (std::uint64_t x = 0; x < size; ++x) {
    row[0] = static_cast<std::uint32_t>(x);
    sum += table_->probability_from(j, row.data(), table_->uniform_base(row[0]));
    upto[x] = sum;
  }
  const auto at = std::upper_bound(upto.begin(), upto.end(), place * sum);
  return at == upto.end() ? row[0] : static_cast<std::uint32_t>(at - upto.begin());
}

std::uint32_t ChainSampler::draw(const std::uint32_t* context, std::uint64_t seed, std::uint64_t stream,
                                 std::uint64_t counter) const {
  const TableShape& shape = table_->shape();
  std::uint64_t used = 0;
  const auto uniform = [&] { return random_uniform(seed, stream, counter << 8 | used++); };
  std::uint32_t contexts[max_columns + 1];
  table_->find_contexts(0, context, contexts);
  for (std::size_t j = 0; j < shape.levels(); ++j) {
    const std::uint32_t found = contexts[j];
    if (found == none || start_[found] == start_[found + 1]) continue;
    State known = state(found);
    if (known == stored && j + 1 < shape.levels()) known = sum_masses(found, j, context);
    if (known == not_interpolated && shape.base_size != 0) return draw_by_inversion(j, context, uniform());
    if (uniform() < usable_weight(table_->backoff(found))) continue;
    const auto from = upto_.begin() + static_cast<std::ptrdiff_t>(start_[found]);
    const auto to = upto_.begin() + static_cast<std::ptrdiff_t>(start_[found + 1]);
    const auto at = std::min(std::upper_bound(from, to, uniform() * *(to - 1)), to - 1);
    return outcome_[static_cast<std::size_t>(at - upto_.begin())];
  }
  if (shape.base_size == 0) return none;
  const bool leaves_out = never_ < shape.base_size && shape.base_size > 1;
  const auto drawn =
      static_cast<std::uint32_t>(uniform() * static_cast<double>(shape.base_size - (leaves_out ? 1 : 0)));
  return leaves_out && drawn >= never_ ? drawn + 1 : drawn;
}

}  // namespace treelm
