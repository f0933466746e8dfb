// Several threads add up what they have found in the order of their pieces of work, so that sums do not depend on who
// was first.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace treelm {

// Part k of a piece comes after part k of the piece before. Pieces must be begun in ascending order, as
// ThreadPool::map does, and each must be ended, see EndOfPiece.
class InOrder {
 public:
  explicit InOrder(std::size_t pieces) : done_(pieces, 0) {}

  // Waits until so many parts of the piece before this one are done.
  void wait_before(std::size_t piece, std::size_t parts) {
    if (piece == 0) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_[piece - 1] >= parts; });
  }
  void set_done(std::size_t piece, std::size_t parts) {
    {
      const std::lock_guard lock(mutex_);
      done_[piece] = parts;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> done_;
};

// A piece that fails, or is stopped, must not keep those behind it waiting: all its parts are done when this goes.
class EndOfPiece {
 public:
  EndOfPiece(InOrder& order, std::size_t piece, std::size_t parts) : order_(order), piece_(piece), parts_(parts) {}
  ~EndOfPiece() { order_.set_done(piece_, parts_); }
  EndOfPiece(const EndOfPiece&) = delete;
  EndOfPiece& operator=(const EndOfPiece&) = delete;

 private:
  InOrder& order_;
  std::size_t piece_, parts_;
};

}  // namespace treelm
