#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/interrupt.h"

#ifdef _WIN32
#include <process.h>
#else
#include <unistd.h>

#include <csignal>
#endif

namespace treelm {

long current_process() {
#ifdef _WIN32
  return _getpid();
#else
  return static_cast<long>(getpid());
#endif
}

namespace {

// Threads started meanwhile never take a signal: Ctrl-C must interrupt the thread that reads.
class SignalsBlocked {
 public:
#ifdef _WIN32
  SignalsBlocked() = default;
#else
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#endif
};

}  // namespace

ThreadPool::ThreadPool(std::size_t threads) : size_(std::max<std::size_t>(threads, 1)) {}

ThreadPool::~ThreadPool() {
  abandon_after_fork();
  stop();
}

void ThreadPool::stop() {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->tasks.clear();
  }
  state_->wake.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  state_.reset();
}

// In a forked child the threads do not exist and their mutex may be held for ever: leave both behind.
void ThreadPool::abandon_after_fork() {
  if (!state_ || owner_ == current_process()) return;
  // Never freed: the mutex may be locked, and a thread that is not there can neither be joined nor
  // detached.
  new std::shared_ptr<State>(std::move(state_));
  new std::vector<std::thread>(std::move(threads_));
  state_.reset();
  threads_.clear();
}

void ThreadPool::start() {
  abandon_after_fork();
  if (state_) return;
  state_ = std::make_shared<State>();
  owner_ = current_process();
  const auto work = [state = state_](std::size_t worker) {
    for (;;) {
      std::function<void(std::size_t)> task;
      {
        std::unique_lock lock(state->mutex);
        state->wake.wait(lock, [&] { return state->stop || !state->tasks.empty(); });
        if (state->tasks.empty()) return;
        task = std::move(state->tasks.front());
        state->tasks.pop_front();
      }
      task(worker);
    }
  };
  const SignalsBlocked blocked;
  try {
    for (std::size_t worker = 0; worker < size_; ++worker) threads_.emplace_back(work, worker);
  } catch (const std::system_error&) {  // leave nothing half-started behind
    stop();
    throw Error(ErrorCode::threads, std::to_string(size_) + " threads could not be started; ask for fewer");
  }
}

void ThreadPool::submit(std::function<void(std::size_t)> task) {
  if (size_ == 1) {
    task(0);
    return;
  }
  start();
  {
    const std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
  }
  state_->wake.notify_one();
}

void ThreadPool::map(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body) {
  std::mutex mutex;
  std::condition_variable finished;
  std::size_t running = std::min(size_, count), failed = count;
  std::exception_ptr failure, interruption;
  std::atomic<std::size_t> next{0};
  Interruptible* const scope = InterruptPoll::scope();
  for (std::size_t i = std::min(size_, count); i-- > 0;) {
    submit([&](std::size_t worker) {
      std::optional<InterruptPoll::Follow> follow;
      if (size_ > 1) follow.emplace(scope);
      for (std::size_t index = next++; index < count && !InterruptPoll::is_stopped(); index = next++) {
        try {
          body(index, worker);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (index < failed) {
            failed = index;
            failure = std::current_exception();
          }
        }
      }
      const std::lock_guard lock(mutex);
      if (--running == 0) finished.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  const auto is_finished = [&] { return running == 0; };
  while (InterruptPoll::asks() && !interruption && !finished.wait_for(lock, InterruptPoll::pause, is_finished)) {
    lock.unlock();
    try {
      InterruptPoll::ask();
    } catch (...) {
      interruption = std::current_exception();
    }
    lock.lock();
  }
  finished.wait(lock, is_finished);
  if (interruption) std::rethrow_exception(interruption);
  if (failure) std::rethrow_exception(failure);
  // Work that stopped before it began threw nothing.
  if (InterruptPoll::is_stopped()) throw Stopped();
}

}  // namespace treelm
