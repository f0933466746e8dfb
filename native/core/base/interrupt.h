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
    unsigned& left = state_.left;
    if (left != 0 && --left == 0) [[unlikely]]
      look();
  }
  // Asks at once; for those that wait for others.
  static void ask();
  static bool is_stopped() { return state_.scope != nullptr && state_.scope->stopped_; }
  // Whether loops of this thread can be stopped, and whether it is the one that finds out.
  static Interruptible* scope() { return state_.scope; }
  static bool asks() { return state_.scope != nullptr && state_.asks; }

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
  struct State {
    unsigned left;  // polls before the next look; 0 if nothing can stop this thread
    bool asks;
    Interruptible* scope;
    std::chrono::steady_clock::time_point next;
  };
  static void look();
  static void enter(Interruptible* scope, bool asks) {
    state_ = {scope == nullptr ? 0 : polls_per_look, asks, scope, {}};
  }

  static inline constinit thread_local State state_{};
};

inline void poll_interrupt() { InterruptPoll::poll(); }

}  // namespace treelm
