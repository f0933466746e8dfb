#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <numeric>

#include "tests/harness.h"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace treelm;

namespace {

std::vector<std::size_t> squares(ThreadPool& pool, std::size_t count) {
  std::vector<std::size_t> result(count, 0);
  pool.map(count, [&](std::size_t index, std::size_t) { result[index] += index * index; });
  return result;
}

bool squares_are_right(ThreadPool& pool, std::size_t count) {
  const std::vector<std::size_t> result = squares(pool, count);
  for (std::size_t i = 0; i < count; ++i)
    if (result[i] != i * i) return false;
  return true;
}

}  // namespace

TEST("thread pool: map runs every index once, for any number of threads") {
  for (const std::size_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK_EQ(pool.size(), threads);
    for (const std::size_t count : {0, 1, 2, 7, 1000}) CHECK(squares_are_right(pool, count));
  }
}

TEST("thread pool: workers are numbered below the size and do not overlap") {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> busy(3);
  std::atomic<int> wrong{0};
  pool.map(2000, [&](std::size_t, std::size_t worker) {
    if (worker >= 3 || busy[worker]++ != 0) ++wrong;
    std::this_thread::yield();
    --busy[worker];
  });
  CHECK_EQ(wrong.load(), 0);
}

TEST("thread pool: no threads is one, and one runs in the caller") {
  for (const std::size_t threads : {0, 1}) {
    ThreadPool pool(threads);
    CHECK_EQ(pool.size(), 1);
    std::vector<std::size_t> order;
    bool elsewhere = false;
    pool.map(5, [&, caller = std::this_thread::get_id()](std::size_t index, std::size_t worker) {
      elsewhere |= std::this_thread::get_id() != caller || worker != 0;
      order.push_back(index);
    });
    CHECK(!elsewhere);
    CHECK(order == std::vector<std::size_t>({0, 1, 2, 3, 4}));
    bool ran = false;
    pool.submit([&](std::size_t) { ran = true; });
    CHECK(ran);
  }
}

TEST("thread pool: the exception of the smallest index is thrown, and the pool stays usable") {
  for (const std::size_t threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> ran{0};
      std::string caught;
      try {
        pool.map(100, [&](std::size_t index, std::size_t) {
          ++ran;
          if (index % 30 == 17) throw Error(ErrorCode::argument, std::to_string(index));
        });
      } catch (const Error& error) {
        caught = error.what();
      }
      CHECK_EQ(caught, "17");
      CHECK_EQ(ran.load(), 100);
    }
    CHECK(squares_are_right(pool, 500));
  }
}

TEST("thread pool: submitted tasks all run") {
  constexpr int count = 500;
  ThreadPool pool(4);
  std::atomic<int> left{count};
  std::promise<void> done;
  for (int i = 0; i < count; ++i)
    pool.submit([&](std::size_t) {
      if (--left == 0) done.set_value();
    });
  CHECK(done.get_future().wait_for(std::chrono::seconds(300)) == std::future_status::ready);
}

TEST("thread pool: an unused pool ends, and many short lives are fine") {
  for (int i = 0; i < 100; ++i) {
    ThreadPool unused(4);
    ThreadPool used(2);
    CHECK(squares_are_right(used, 10));
  }
}

TEST("thread pool: destruction finishes what runs and drops what waits") {
  std::atomic<bool> gate{false};
  std::atomic<int> begun{0}, finished{0}, queued{0};
  std::thread opener;
  {
    ThreadPool pool(2);
    for (int i = 0; i < 2; ++i)
      pool.submit([&](std::size_t) {
        ++begun;
        while (!gate) std::this_thread::yield();
        ++finished;
      });
    for (int i = 0; i < 1000; ++i) pool.submit([&](std::size_t) { ++queued; });
    while (begun != 2) std::this_thread::yield();
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      gate = true;
    });
  }
  opener.join();
  CHECK_EQ(finished.load(), 2);
  CHECK_EQ(queued.load(), 0);  // both threads were held until long after the queue was cleared
}

#ifndef _WIN32

namespace {

// Runs `body` in a forked child, which is killed if it hangs; true if it returned true.
template <class Body>
bool child_succeeds(Body body) {
#ifdef __SANITIZE_ADDRESS__
  // A thread that is just done may hold the sanitizer's allocator, which the child would then wait for in vain.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
#endif
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST("thread pool: a forked child gets fresh threads") {
  for (const std::size_t threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    CHECK(child_succeeds([&] { return squares_are_right(pool, 100); }));  // before any thread was started
    CHECK(squares_are_right(pool, 100));
    CHECK(child_succeeds([&] { return squares_are_right(pool, 100) && squares_are_right(pool, 100); }));
    CHECK(squares_are_right(pool, 100));  // the parent's threads are as before
  }
}

TEST("thread pool: a child may fork from a busy parent, and drop the pool unused") {
  auto pool = std::make_unique<ThreadPool>(3);
  std::atomic<bool> stop{false};
  for (int i = 0; i < 3; ++i)
    pool->submit([&](std::size_t) {
      while (!stop) std::this_thread::yield();
    });
  for (int i = 0; i < 10; ++i) {
    CHECK(child_succeeds([&] { return squares_are_right(*pool, 100); }));
    CHECK(child_succeeds([&] {
      pool.reset();
      return true;
    }));
    CHECK(child_succeeds([&] {
      if (!squares_are_right(*pool, 10)) return false;
      pool.reset();
      return true;
    }));
  }
  stop = true;
}

TEST("thread pool: a child tells its process from its parent's") {
  CHECK_EQ(current_process(), static_cast<long>(getpid()));
  const long parent = current_process();
  CHECK(child_succeeds([&] { return current_process() != parent; }));
}

#endif
