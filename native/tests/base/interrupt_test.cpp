#include "base/interrupt.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/thread_pool.h"
#include "base/workspace_pool.h"
#include "tests/harness.h"

using namespace treelm;

namespace {

struct Wish : std::runtime_error {
  Wish() : std::runtime_error("stop") {}
};

std::atomic<int> asked{0};
std::atomic<bool> wished{false};
std::atomic<bool> asked_elsewhere{false};
std::thread::id asker;

void check_wish() {
  ++asked;
  if (std::this_thread::get_id() != asker) asked_elsewhere = true;
  if (wished) throw Wish();
}

void begin(bool wish) {
  asked = 0;
  wished = wish;
  asked_elsewhere = false;
  asker = std::this_thread::get_id();
}

// Would run for ever.
void endless(std::size_t, std::size_t) {
  for (;;) poll_interrupt();
}

}  // namespace

TEST("interrupt: loops outside of any scope are never stopped") {
  begin(true);
  for (int i = 0; i < 1000; ++i) poll_interrupt();
  CHECK_EQ(asked.load(), 0);
  CHECK(!InterruptPoll::is_stopped());
}

TEST("interrupt: a loop stops with what the check throws, and the next scope is fresh") {
  for (int round = 0; round < 2; ++round) {
    begin(true);
    bool stopped = false;
    try {
      const Interruptible scope(check_wish);
      endless(0, 0);
    } catch (const Wish&) {
      stopped = true;
    }
    CHECK(stopped);
    CHECK_EQ(asked.load(), 1);
    CHECK(!InterruptPoll::is_stopped());
  }
}

TEST("interrupt: short work never asks") {
  begin(true);
  const Interruptible scope(check_wish);
  for (int i = 0; i < 100; ++i) poll_interrupt();
  CHECK_EQ(asked.load(), 0);
}

TEST("interrupt: scopes nest, and the outer one asks again after the inner one") {
  begin(false);
  const Interruptible outer(check_wish);
  {
    const Interruptible inner(check_wish);
    while (asked < 2) poll_interrupt();
  }
  while (asked < 4) poll_interrupt();
  CHECK(!asked_elsewhere);
}

TEST("interrupt: bodies of a pool stop with the caller, who alone asks, and no more are begun") {
  for (const std::size_t threads : {1, 2, 4}) {
    begin(true);
    ThreadPool pool(threads);
    std::atomic<std::size_t> begun{0};
    bool stopped = false;
    try {
      const Interruptible scope(check_wish);
      pool.map(1000, [&](std::size_t index, std::size_t worker) {
        ++begun;
        endless(index, worker);
      });
    } catch (const Wish&) {
      stopped = true;
    }
    CHECK(stopped);
    CHECK(begun.load() <= threads);
    CHECK(!asked_elsewhere);
    std::atomic<int> ran{0};
    pool.map(10, [&](std::size_t, std::size_t) { ++ran; });  // the pool stays usable
    CHECK_EQ(ran.load(), 10);
  }
}

TEST("interrupt: pools within pools stop too") {
  begin(true);
  bool stopped = false;
  try {
    const Interruptible scope(check_wish);
    ThreadPool pool(2);
    pool.map(4, [&](std::size_t, std::size_t) {
      ThreadPool inner(2);
      inner.map(4, endless);
    });
  } catch (const Wish&) {
    stopped = true;
  }
  CHECK(stopped);
}

TEST("interrupt: a workspace that was left in the middle of work is not lent again") {
  WorkspacePool<std::vector<int>> pool;
  try {
    auto borrowed = pool.borrow();
    borrowed.work().push_back(1);
    throw Wish();
  } catch (const Wish&) {
  }
  {
    auto borrowed = pool.borrow();
    CHECK(borrowed.work().empty());
    borrowed.work().push_back(2);
  }
  auto borrowed = pool.borrow();
  CHECK_EQ(borrowed.work().size(), 1);
}
