// A small test harness, and the fixtures that several test files share.
//
//   TEST("what holds") { CHECK(x); CHECK_EQ(x, y); CHECK_THROWS_CODE(f(), ErrorCode::argument); }
//
// A failed check is printed and the test goes on. Checks belong to the main thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "trees/packed_trees.h"
#include "trees/profile.h"
#include "trees/worker.h"

// How many megabytes the tests of linear time feed.
#ifndef TREELM_TEST_MEGABYTES
#define TREELM_TEST_MEGABYTES 8
#endif

namespace treelm::test {

inline constexpr std::size_t load_bytes = std::size_t{TREELM_TEST_MEGABYTES} << 20;

struct Case {
  const char* name;
  void (*body)();
};

struct State {
  std::vector<Case> cases;
  int failures = 0;  // of the running case
};

inline State& state() {
  static State only;
  return only;
}

struct Registration {
  Registration(const char* name, void (*body)()) { state().cases.push_back({name, body}); }
};

struct TooManyFailures {};

inline void fail(const char* file, int line, const std::string& what) {
  std::printf("%s:%d: %s\n", file, line, what.c_str());
  if (++state().failures == 20) throw TooManyFailures();
}

template <class T>
std::string show(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  if constexpr (std::is_same_v<T, ErrorCode>) return std::string(code_name(value));
  if constexpr (std::is_convertible_v<T, std::string_view>) return std::string(std::string_view(value));
  if constexpr (std::is_arithmetic_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, unsigned>))
    return std::to_string(value);
  return "(a value)";
}

template <class T>
inline constexpr bool is_number =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> && !std::is_same_v<T, char32_t>;

template <class A, class B>
bool same(const A& a, const B& b) {
  if constexpr (is_number<A> && is_number<B>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

template <class A, class B>
void check_same(const char* file, int line, const char* what, const A& a, const B& b) {
  if (!same(a, b)) fail(file, line, std::string(what) + "\n  left:  " + show(a) + "\n  right: " + show(b));
}

// Value-stable numbers for fuzzing: the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_bits(seed_, 0, next_++) % count); }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

 private:
  std::uint64_t seed_, next_ = 0;
};

// Processor seconds of all threads: a busy machine makes everything late, and no test depends on that.
class Clock {
 public:
  double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

// Fixtures; english* are in profile_test.cpp, the others in bracket_reader_test.cpp.
ProfileData english_data();
std::shared_ptr<const Profile> english();

// The default reader with the English profile.
TreeRecipe default_recipe();
// Keeps labels and words as they are.
TreeRecipe verbatim_recipe();
PackedTrees read(const TreeRecipe& recipe, std::string_view text);
// Reads and writes again; problems are appended as lines "CODE tree line:column excerpt".
std::string echo(const TreeRecipe& recipe, std::string_view text);
// A random tree on one line over the labels and words the transforms care about.
std::string random_tree(Random& random);

// The main function of the one file that asks for it.
inline int run_tests(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const Case& test : state().cases) {
    if (argc > 1 && std::string_view(test.name).find(argv[1]) == std::string_view::npos) continue;
    state().failures = 0;
    const Clock clock;
    try {
      test.body();
    } catch (const TooManyFailures&) {
    } catch (const std::exception& error) {
      std::printf("unexpected exception: %s\n", error.what());
      ++state().failures;
    } catch (...) {
      std::printf("unexpected exception\n");
      ++state().failures;
    }
    state().failures == 0 ? ++passed : ++failed;
    if (state().failures != 0) std::printf("FAILED %s\n", test.name);
    if (clock.seconds() > 2) std::printf("slow (%.1f s): %s\n", clock.seconds(), test.name);
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace treelm::test

#define TREELM_JOIN_NOW(a, b) a##b
#define TREELM_JOIN(a, b) TREELM_JOIN_NOW(a, b)
#define TREELM_TEST(name, id)                                                                            \
  static void TREELM_JOIN(test_, id)();                                                                  \
  static const ::treelm::test::Registration TREELM_JOIN(registered_, id)(name, &TREELM_JOIN(test_, id)); \
  static void TREELM_JOIN(test_, id)()
#define TEST(name) TREELM_TEST(name, __LINE__)

#define CHECK(condition) ((condition) ? void() : ::treelm::test::fail(__FILE__, __LINE__, "CHECK(" #condition ")"))
#define CHECK_EQ(a, b) ::treelm::test::check_same(__FILE__, __LINE__, "CHECK_EQ(" #a ", " #b ")", a, b)
#define CHECK_THROWS_CODE(statement, expected)                                                       \
  do {                                                                                               \
    bool thrown = false;                                                                             \
    try {                                                                                            \
      statement;                                                                                     \
    } catch (const ::treelm::Error& error) {                                                         \
      thrown = true;                                                                                 \
      ::treelm::test::check_same(__FILE__, __LINE__, "code of " #statement, error.code(), expected); \
    }                                                                                                \
    if (!thrown) ::treelm::test::fail(__FILE__, __LINE__, "nothing thrown by " #statement);          \
  } while (false)

#ifdef TREELM_TEST_MAIN
int main(int argc, char** argv) { return treelm::test::run_tests(argc, argv); }
#endif
