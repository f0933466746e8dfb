// Bytes of brackets in, batches of finished trees out, in order, by any number of threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "trees/bracket_segmenter.h"
#include "trees/worker.h"

namespace treelm {

struct TreeBatch {
  PackedTrees trees;  // without nodes when text was asked for
  std::string text;
  std::size_t written = 0;  // trees in `text`
};

class TreeStream {
 public:
  TreeStream(std::shared_ptr<const TreeRecipe> recipe, std::size_t threads, bool as_text);
  ~TreeStream();

  // Takes more input; `flush` hands on every complete tree at once.
  void feed(std::string_view bytes, bool flush);
  void finish();
  // The next batch in input order; nothing if none is there, or none is ready and `wait` is false.
  std::optional<TreeBatch> take(bool wait);
  // Batches fed but not taken.
  std::size_t in_flight() const { return queue_.size(); }

 private:
  struct Slot {
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;
    TreeBatch batch;
    std::exception_ptr failure;
  };
  void dispatch();
  void check_process() const;

  std::shared_ptr<const TreeRecipe> recipe_;
  bool as_text_;
  BracketSegmenter segmenter_;
  Segments pending_;
  std::deque<std::shared_ptr<Slot>> queue_;
  std::vector<std::unique_ptr<TreeWorker>> workers_;
  long owner_;
  ThreadPool pool_;  // last: its threads end before anything they use
};

}  // namespace treelm
