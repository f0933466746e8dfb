#include "base/in_order.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/thread_pool.h"
#include "tests/harness.h"

using namespace treelm;

namespace {

// What each part has heard from the pieces, in order; the first pieces take longest.
std::vector<std::string> told(std::size_t threads, std::size_t pieces, std::size_t parts, std::size_t failing) {
  ThreadPool pool(threads);
  InOrder order(pieces);
  std::vector<std::string> heard(parts);
  pool.map(pieces, [&](std::size_t piece, std::size_t) {
    const EndOfPiece end(order, piece, parts);
    if (piece % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (piece == failing) throw std::runtime_error("failed");
    for (std::size_t part = 0; part < parts; ++part) {
      order.wait_before(piece, part + 1);
      heard[part] += static_cast<char>('a' + piece);
      order.set_done(piece, part + 1);
    }
  });
  return heard;
}

}  // namespace

TEST("in order: every part hears of the pieces in their order, for any number of threads") {
  for (const std::size_t threads : {1, 2, 5})
    for (const std::size_t pieces : {1, 2, 20}) {
      const std::string all = std::string("abcdefghijklmnopqrst").substr(0, pieces);
      for (const std::string& heard : told(threads, pieces, 4, pieces)) CHECK_EQ(heard, all);
    }
}

TEST("in order: a piece that fails keeps nobody waiting") {
  for (const std::size_t threads : {1, 2, 5})
    for (const std::size_t failing : {0, 7, 19}) {
      bool failed = false;
      try {
        told(threads, 20, 4, failing);
      } catch (const std::runtime_error&) {
        failed = true;
      }
      CHECK(failed);
    }
}
