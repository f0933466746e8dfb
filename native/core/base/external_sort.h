// Sorts more records than fit into memory: sorted runs in temporary files, merged when they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_arena.h"
#include "base/large_vector.h"
#include "base/radix_sort.h"
#include "base/thread_pool.h"

namespace treelm {

// Records come out in the order of their keys, which differ from each other; see radix_sort for what a
// Record is.
template <class Record>
class ExternalSorter {
 public:
  // By the first `bits` bits of the keys, with so many bytes of memory; those of merged runs included.
  ExternalSorter(unsigned bits, std::size_t memory, std::string folder, ThreadPool& pool)
      : bits_(bits),
        folder_(std::move(folder)),
        pool_(pool),
        capacity_(std::max<std::size_t>(memory / sizeof(Record), 64)),
        piece_(std::clamp<std::size_t>(memory / (2 * fan_in) / sizeof(Record), 1, largest_piece / sizeof(Record))) {}

  std::uint64_t size() const { return size_; }
  void add(const Record& record) {
    if (buffer_.empty()) buffer_.reserve(capacity_);
    if (buffer_.size() == capacity_) spill();
    buffer_.push_back(record);
    ++size_;
  }
  // From now on records are read.
  void finish() {
    if (runs_.empty()) {
      radix_sort(std::span(buffer_), bits_, pool_);
      return;
    }
    spill();
    LargeVector<Record>().swap(buffer_);
    while (runs_.size() > fan_in) {
      // The oldest runs become one.
      std::vector<std::unique_ptr<TemporaryFile>> first(std::make_move_iterator(runs_.begin()),
                                                        std::make_move_iterator(runs_.begin() + fan_in));
      runs_.erase(runs_.begin(), runs_.begin() + fan_in);
      open(std::move(first));
      auto merged = std::make_unique<TemporaryFile>(folder_);
      LargeVector<Record> piece;
      piece.reserve(piece_);
      for (Record record; next_merged(record);) {
        piece.push_back(record);
        if (piece.size() < piece_) continue;
        merged->write(piece.data(), piece.size() * sizeof(Record));
        piece.clear();
      }
      merged->write(piece.data(), piece.size() * sizeof(Record));
      runs_.push_back(std::move(merged));
    }
    open(std::move(runs_));
    merging_ = true;
  }
  // Nothing more is read.
  void clear() {
    LargeVector<Record>().swap(buffer_);
    readers_.clear();
    heads_.clear();
    at_ = 0;
  }
  bool next(Record& record) {
    if (merging_) return next_merged(record);
    if (at_ == buffer_.size()) {
      LargeVector<Record>().swap(buffer_);
      at_ = 0;
      return false;
    }
    record = buffer_[at_++];
    return true;
  }

 private:
  static constexpr std::size_t fan_in = 64;
  static constexpr std::size_t largest_piece = std::size_t{1} << 18;

  struct Reader {
    std::unique_ptr<TemporaryFile> file;
    std::size_t most = 1;  // records of a piece
    std::uint64_t place = 0;
    std::vector<Record> piece;
    std::size_t at = 0;

    bool fill() {
      at = 0;
      piece.resize(most);
      const std::size_t bytes = file->read(piece.data(), piece.size() * sizeof(Record), place);
      piece.resize(bytes / sizeof(Record));
      place += bytes;
      return !piece.empty();
    }
    const Record& head() const { return piece[at]; }
    bool advance() { return ++at < piece.size() || fill(); }
  };

  void spill() {
    radix_sort(std::span(buffer_), bits_, pool_);
    runs_.push_back(std::make_unique<TemporaryFile>(folder_));
    runs_.back()->write(buffer_.data(), buffer_.size() * sizeof(Record));
    buffer_.clear();
  }
  static bool later(const Reader* a, const Reader* b) { return b->head() < a->head(); }
  void open(std::vector<std::unique_ptr<TemporaryFile>> files) {
    readers_.clear();
    heads_.clear();
    readers_.reserve(files.size());
    for (auto& file : files) {
      readers_.push_back({std::move(file), piece_, 0, {}, 0});
      if (readers_.back().fill()) heads_.push_back(&readers_.back());
    }
    std::make_heap(heads_.begin(), heads_.end(), later);
  }
  bool next_merged(Record& record) {
    if (heads_.empty()) {
      readers_.clear();
      return false;
    }
    std::pop_heap(heads_.begin(), heads_.end(), later);
    record = heads_.back()->head();
    if (heads_.back()->advance())
      std::push_heap(heads_.begin(), heads_.end(), later);
    else
      heads_.pop_back();
    return true;
  }

  unsigned bits_;
  std::string folder_;
  ThreadPool& pool_;
  std::size_t capacity_, piece_;
  LargeVector<Record> buffer_;
  std::vector<std::unique_ptr<TemporaryFile>> runs_;
  std::vector<Reader> readers_;
  std::vector<Reader*> heads_;
  std::uint64_t size_ = 0;
  std::size_t at_ = 0;
  bool merging_ = false;
};

}  // namespace treelm
