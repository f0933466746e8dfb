#include "chain_sampler.h"

#include <algorithm>
#include <cmath>

#include "random.h"

namespace treelm {

namespace {

// A mass below zero by no more than rounding is none.
constexpr double rounding = 1e-6;

}  // namespace

ChainSampler::ChainSampler(std::shared_ptr<const BackoffTable> table, std::span<const double> base, std::uint32_t never)
    : table_(std::move(table)), never_(never) {
  const TableShape& shape = table_->shape();
  const std::uint64_t contexts = table_->contexts();
  start_.assign(contexts + 1, 0);
  for (std::size_t j = 0; j < shape.levels(); ++j)
    table_->each_entry(j, [&](std::uint64_t, std::uint32_t context, std::uint32_t, double p, std::uint32_t) {
      if (!std::signbit(p)) ++start_[context + 1];
    });
  for (std::size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
  outcome_.resize(start_.back());
  upto_.resize(start_.back());
  not_interpolated_.assign(contexts, false);
  std::vector<std::uint64_t> place(start_.begin(), start_.end() - 1);
  const ContextColumns columns_of(*table_);
  std::uint32_t row[max_columns + 1] = {};
  std::size_t last_rows = 0;
  for (std::size_t j = 0; j < shape.levels(); ++j) {
    const bool last = j + 1 == shape.levels();
    table_->each_entry(j,
                       [&](std::uint64_t, std::uint32_t context, std::uint32_t outcome, double stored, std::uint32_t) {
                         if (std::signbit(stored)) return;
                         double own_base = table_->uniform_base(outcome);
                         if (last && !base.empty()) own_base = last_rows < base.size() ? base[last_rows] : 0.0;
                         last_rows += last;
                         const double weight = usable_weight(table_->backoff(context));
                         const double p = usable_probability(stored);
                         double lower = own_base;
                         if (!last) {
                           row[0] = outcome;
                           if (columns_of.columns(context, row + 1) != shape.widths[j])
                             lower = 0;
                           else
                             lower = table_->probability_from(j + 1, row, own_base);
                         }
                         const double mass = p - weight * lower;
                         if (mass < -rounding * p) not_interpolated_[context] = true;
                         const std::uint64_t at = place[context]++;
                         outcome_[at] = outcome;
                         upto_[at] = std::max(mass, 0.0);
                       });
  }
  if (!base.empty() && last_rows != base.size())
    throw Error(ErrorCode::argument, "the base needs one probability for every row of the last level");
  for (std::size_t context = 0; context < contexts; ++context)
    for (std::uint64_t i = start_[context] + 1; i < start_[context + 1]; ++i) upto_[i] += upto_[i - 1];
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
    if (not_interpolated_[found] && shape.base_size != 0) return draw_by_inversion(j, context, uniform());
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
