// A pool sized by its owner. Results never depend on its size; a forked child gets fresh threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace treelm {

class ThreadPool {
 public:
  // With one thread (or none) everything runs in the caller.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return size_; }
  // Runs task(worker) soon, worker < size(); the task must not throw.
  void submit(std::function<void(std::size_t)> task);
  // Runs body(index, worker) for every index below `count` and waits; if some throw, the exception
  // of the smallest index is thrown here. Within an `Interruptible`, bodies that poll stop with the caller,
  // and no more are begun.
  void map(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void(std::size_t)>> tasks;
    bool stop = false;
  };
  void start();
  void stop();
  void abandon_after_fork();

  std::size_t size_;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
  long owner_ = 0;
};

// The process this code runs in; tells a forked child from its parent.
long current_process();

}  // namespace treelm
