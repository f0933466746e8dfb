#include "trees/stream.h"

namespace treelm {

namespace {
constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
}

TreeStream::TreeStream(std::shared_ptr<const TreeRecipe> recipe, std::size_t threads, bool as_text)
    : recipe_(std::move(recipe)), as_text_(as_text), owner_(current_process()), pool_(threads) {
  for (std::size_t i = 0; i < pool_.size(); ++i) workers_.push_back(std::make_unique<TreeWorker>(recipe_));
}

TreeStream::~TreeStream() = default;

void TreeStream::check_process() const {
  if (owner_ != current_process()) throw Error(ErrorCode::forked);
}

void TreeStream::feed(std::string_view bytes, bool flush) {
  check_process();
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    segmenter_.feed(bytes.substr(at, chunk_bytes), pending_);
    if (pending_.text.size() >= chunk_bytes) dispatch();
  }
  if (flush) dispatch();
}

void TreeStream::finish() {
  check_process();
  segmenter_.finish(pending_);
  dispatch();
}

void TreeStream::dispatch() {
  if (pending_.spans.empty() && pending_.problems.empty()) return;
  auto slot = std::make_shared<Slot>();
  auto segments = std::make_shared<Segments>(std::move(pending_));
  pending_ = {};
  pool_.submit([this, slot, segments](std::size_t worker) {
    TreeBatch batch;
    std::exception_ptr failure;
    try {
      batch.trees = workers_[worker]->process(*segments);
      if (as_text_) {
        batch.text = write_brackets(batch.trees);
        batch.written = batch.trees.tree_count();
        PackedTrees rest;
        rest.problems = std::move(batch.trees.problems);
        rest.dropped = batch.trees.dropped;
        rest.many_rooted = batch.trees.many_rooted;
        batch.trees = std::move(rest);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(slot->mutex);
    slot->batch = std::move(batch);
    slot->failure = failure;
    slot->ready = true;
    slot->changed.notify_all();
  });
  queue_.push_back(std::move(slot));  // only what was really handed on is waited for
}

std::optional<TreeBatch> TreeStream::take(bool wait) {
  check_process();
  if (queue_.empty()) return std::nullopt;
  const std::shared_ptr<Slot> slot = queue_.front();
  std::unique_lock lock(slot->mutex);
  if (!slot->ready && !wait) return std::nullopt;
  slot->changed.wait(lock, [&] { return slot->ready; });
  queue_.pop_front();
  if (slot->failure) std::rethrow_exception(slot->failure);
  return std::move(slot->batch);
}

}  // namespace treelm
