// How long loops hear that they should stop: what starts them says how to find out, and they ask now and then.
#pragma once

#include <atomic>
#include <chrono>

namespace treelm {

// While it lives, loops of this thread, and of pools that it hands work to, stop soon after `check` has thrown.
// `check` is called a few times per second, always by the thread that made this; what it throws reaches that thread.
class Interruptible {
 public:
  explicit Interruptible(void (*check)());
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  friend class InterruptPoll;
  void (*check_)();
  Interruptible* before_;
  bool asked_before_;
  std::atomic<bool> stopped_{false};
};

// The side of the loops. What they throw when they stop is for those who made them run, never for a caller.
struct Stopped {};

class InterruptPoll {
 public:
  // Call this every few microseconds or less often; it costs about a nanosecond.
  static void poll() {
    if (scope_ != nullptr && --left_ == 0) look(std::chrono::steady_clock::now());
  }
  // Asks at once; for those that wait for others.
  static void ask();
  static bool is_stopped() { return scope_ != nullptr && scope_->stopped_; }
  // Whether loops of this thread can be stopped, and whether it is the one that finds out.
  static Interruptible* scope() { return scope_; }
  static bool asks() { return scope_ != nullptr && asks_; }

  // Lets a thread of a pool stop with the thread that handed it work.
  class Follow {
   public:
    explicit Follow(Interruptible* scope) { enter(scope, false); }
    ~Follow() { enter(nullptr, false); }
    Follow(const Follow&) = delete;
    Follow& operator=(const Follow&) = delete;
  };

  static constexpr std::chrono::milliseconds pause{100};  // between two questions

 private:
  friend class Interruptible;
  static constexpr unsigned polls_per_look = 16;
  static void look(std::chrono::steady_clock::time_point now);
  static void enter(Interruptible* scope, bool asks) {
    scope_ = scope;
    asks_ = asks;
    left_ = polls_per_look;
    next_ = {};
  }

  static inline constinit thread_local Interruptible* scope_ = nullptr;
  static inline constinit thread_local bool asks_ = false;
  static inline constinit thread_local unsigned left_ = polls_per_look;
  static inline constinit thread_local std::chrono::steady_clock::time_point next_{};
};

inline void poll_interrupt() { InterruptPoll::poll(); }

}  // namespace treelm
