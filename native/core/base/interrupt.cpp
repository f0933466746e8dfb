#include "base/interrupt.h"

namespace treelm {

Interruptible::Interruptible(void (*check)())
    : check_(check), before_(InterruptPoll::scope_), asked_before_(InterruptPoll::asks_) {
  InterruptPoll::enter(this, true);
}

Interruptible::~Interruptible() { InterruptPoll::enter(before_, asked_before_); }

void InterruptPoll::look(std::chrono::steady_clock::time_point now) {
  left_ = polls_per_look;
  if (scope_->stopped_) throw Stopped();
  if (!asks_) return;
  // Short work never asks: the clock starts with the first look.
  if (next_ == std::chrono::steady_clock::time_point{}) {
    next_ = now + pause;
  } else if (now >= next_) {
    next_ = now + pause;
    ask();
  }
}

void InterruptPoll::ask() {
  if (!asks()) return;
  Interruptible& scope = *scope_;
  try {
    scope.check_();
  } catch (...) {
    scope.stopped_ = true;
    throw;
  }
}

}  // namespace treelm
