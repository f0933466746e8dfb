// Collects events with fixed-point counts: rows in any order go in, sorted distinct rows come out.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/large_vector.h"
#include "base/packed_keys.h"
#include "base/thread_pool.h"
#include "lattice/shape.h"

namespace treelm {

template <std::size_t W>
struct CountedKey {
  Key<W> key;
  std::int64_t count;

  static constexpr bool has_ties = false;
  friend bool operator<(const CountedKey& a, const CountedKey& b) { return a.key < b.key; }
};

// The sum of two counts that are not negative, or Error(overflow).
std::int64_t add_counts(std::int64_t a, std::int64_t b);

// Sorts rows, and adds up those with the same key.
template <std::size_t W>
void sort_and_sum(LargeVector<CountedKey<W>>& rows, unsigned bits, ThreadPool& pool);

// Rows (stem columns, outcome, topic): bits of each, from how many ids a column may hold.
KeyLayout lattice_layout(const LatticeShape& shape, std::size_t stem, std::span<const std::uint32_t> limits);

// Distinct rows in order of the top stem: the columns of all, their outcomes and their counts.
struct EventRows {
  std::vector<std::uint32_t> columns, outcomes;
  std::vector<std::int64_t> counts;
};

class LatticeEvents {
 public:
  // `limits[c]`: ids of column c are below it.
  LatticeEvents(LatticeShape shape, std::vector<std::uint32_t> limits, std::size_t threads);
  ~LatticeEvents();

  // Adds rows of shape.columns() values; counts may be 0, which keeps a place for later.
  void add(const std::uint32_t* columns, const std::uint32_t* outcomes, const std::int64_t* counts, std::size_t rows);

  const LatticeShape& shape() const { return shape_; }
  const std::vector<std::uint32_t>& limits() const { return limits_; }
  ThreadPool& pool() { return *pool_; }

  // The distinct rows; nothing is left then. Added to another collection, they give the same sums.
  EventRows take();

  // The distinct rows in order of the top stem, as CountedKey<W>; nothing is left then.
  struct Runs;
  Runs& runs() { return *runs_; }

 private:
  LatticeShape shape_;
  std::vector<std::uint32_t> limits_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Runs> runs_;
};

struct LatticeEvents::Runs {
  virtual ~Runs() = default;
  virtual void add(const std::uint32_t* columns, const std::uint32_t* outcomes, const std::int64_t* counts,
                   std::size_t rows) = 0;
  virtual EventRows take() = 0;
  KeyLayout layout;
};

// Runs of keys of W words.
template <std::size_t W>
struct KeyRuns final : LatticeEvents::Runs {
  KeyRuns(const LatticeShape& shape, std::span<const std::uint32_t> limits, ThreadPool& pool);
  void add(const std::uint32_t* columns, const std::uint32_t* outcomes, const std::int64_t* counts,
           std::size_t rows) override;
  EventRows take() override;
  LargeVector<CountedKey<W>> finish();

 private:
  void close_run();
  void merge_last();

  LatticeShape shape_;
  std::vector<std::uint32_t> limits_;
  ThreadPool& pool_;
  LargeVector<CountedKey<W>> pending_;
  std::vector<LargeVector<CountedKey<W>>> runs_;
};

}  // namespace treelm
