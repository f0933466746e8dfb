// Exact draws from a back-off chain: a level is chosen by its weight, then an outcome seen there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backoff/table.h"

namespace treelm {

class ChainSampler {
 public:
  // Sorts the entries of the table by context; shares of outcomes are found when a context is first drawn
  // from, as most never are. `base`: where the base is not uniform, its probability for
  // every entry of the last level, in the order of BackoffTable::each_entry. `never`: an outcome that
  // the uniform base does not give.
  ChainSampler(std::shared_ptr<const BackoffTable> table, std::span<const double> base, std::uint32_t never = none);

  // The outcome that draw `counter` of `stream` gives after a context of all columns; `none` where
  // the draw falls to a base that is not uniform.
  std::size_t context_columns() const { return table_->shape().widths.front(); }
  std::uint32_t draw(const std::uint32_t* context, std::uint64_t seed, std::uint64_t stream,
                     std::uint64_t counter) const;

 private:
  // What is known of a context: its entries as stored, masses summed, or that a stored p is below its
  // share of the lower level.
  enum State : std::uint8_t { stored, summed, not_interpolated };

  State state(std::uint32_t context) const {
    return static_cast<State>(states_[context].load(std::memory_order_acquire));
  }
  // Sums the masses of the entries of a context, of which `columns` are all columns; safe in threads.
  State sum_masses(std::uint32_t context, std::size_t level, const std::uint32_t* columns) const;
  // Replaces a stored p by what it adds to its share of the lower level.
  State set_mass(std::uint64_t at, double lower) const;
  void add_up(std::size_t context) const;
  std::uint32_t draw_by_inversion(std::size_t j, const std::uint32_t* context, double place) const;

  std::shared_ptr<const BackoffTable> table_;
  std::uint32_t never_;
  // Outcomes by context.
  std::vector<std::uint64_t> start_;
  std::vector<std::uint32_t> outcome_;
  mutable std::vector<double> upto_;  // as stored, or masses summed within a context
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
  mutable std::array<std::mutex, 64> mutexes_;  // of contexts, by the last bits of their ids
};

}  // namespace treelm
