#include "base/interrupt.h"

namespace treelm {

Interruptible::Interruptible(void (*check)())
    : check_(check), before_(InterruptPoll::state_.scope), asked_before_(InterruptPoll::state_.asks) {
  InterruptPoll::enter(this, true);
}

Interruptible::~Interruptible() { InterruptPoll::enter(before_, asked_before_); }

void InterruptPoll::look() {
  State& state = state_;
  state.left = polls_per_look;
  if (state.scope->stopped_) throw Stopped();
  if (!state.asks) return;
  const auto now = std::chrono::steady_clock::now();
  // Short work never asks: the clock starts with the first look.
  if (state.next == std::chrono::steady_clock::time_point{}) {
    state.next = now + pause;
  } else if (now >= state.next) {
    state.next = now + pause;
    ask();
  }
}

void InterruptPoll::ask() {
  if (!asks()) return;
  Interruptible& scope = *state_.scope;
  try {
    scope.check_();
  } catch (...) {
    scope.stopped_ = true;
    throw;
  }
}

}  // namespace treelm
