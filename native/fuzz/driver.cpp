// Runs a fuzz target without libFuzzer, with its arguments:
//
//   treelm_fuzz_X -runs=20000 -seed=1 -max_len=4096 -artifact_prefix=FOLDER/ [FOLDER or FILE ...]
//
// Folders hold inputs to start from, beside those of the target; what reaches something new is added
// to the first. Files are run once each, and nothing else is. Findings are crashes, what a sanitizer
// reports, exceptions other than treelm::Error, and inputs that take more than two seconds of the
// processor or a minute of waiting. The input is then written to FOLDER/, and the exit code is not 0.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "coverage.h"
#include "mutator.h"
#include "target.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1  // as GCC says it
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// The undefined-behaviour sanitizer of GCC knows of no callback; a signal says that it ended us.
__attribute__((visibility("default"))) const char* __ubsan_default_options();
const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
}

namespace {

using namespace treelm::fuzz;
using treelm::mix64;

constexpr int finding = 77;
constexpr double processor_seconds = 2, waiting_seconds = 60;
// Inputs that reached something new; without this limit hash tables, which do, would add to it for ever.
constexpr std::size_t largest_corpus = 1 << 14;

struct Options {
  std::uint64_t runs = 20000, seed = 1;
  std::size_t max_length = 4096;
  std::string artifact_prefix = "./";
  std::vector<std::string> folders, files;
};

// The input under way. Whoever ends the process writes it to a file.
struct UnderWay {
  std::mutex mutex;  // held while it changes
  std::uint64_t execution = 0;
  bool running = false;
  const char* data = nullptr;
  std::size_t size = 0;
  char path[4096] = {};
};
UnderWay under_way;

// Only what a signal handler may call.
void keep_input() {
  if (!under_way.running) return;
  under_way.running = false;
  const int file = open(under_way.path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  for (std::size_t at = 0; at < under_way.size;) {
    const ssize_t done = write(file, under_way.data + at, under_way.size - at);
    if (done <= 0) break;
    at += static_cast<std::size_t>(done);
  }
  close(file);
  const auto say = [](const char* text) { return write(STDERR_FILENO, text, std::strlen(text)); };
  if (say("a finding, kept in ") < 0 || say(under_way.path) < 0 || say("\n") < 0) return;
}

void on_signal(int number) {
  keep_input();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

[[noreturn]] void report(const char* what) {
  std::fprintf(stderr, "%s: %s\n", target_name, what);
  keep_input();
  std::_Exit(finding);
}

void run_one(const std::string& input, std::uint64_t execution) {
  // A copy of its own, so that the address sanitizer sees a read behind the end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  {
    const std::lock_guard lock(under_way.mutex);
    under_way.execution = execution;
    under_way.data = input.data();
    under_way.size = input.size();
    under_way.running = true;
  }
  try {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("an unknown exception");
  }
  const std::lock_guard lock(under_way.mutex);
  under_way.running = false;
}

// Looks again and again whether an input takes too long.
class Watchdog {
 public:
  Watchdog()
      : thread_([this] {
          std::unique_lock lock(mutex_);
          while (!stop_.wait_for(lock, std::chrono::milliseconds(200), [this] { return stopped_; })) look();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stop_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void look() {
    const std::lock_guard lock(under_way.mutex);
    const double used = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    const auto now = std::chrono::steady_clock::now();
    if (!under_way.running || under_way.execution != execution_) {
      execution_ = under_way.execution;
      used_ = used;
      since_ = now;
    } else if (used - used_ > processor_seconds ||
               std::chrono::duration<double>(now - since_).count() > waiting_seconds) {
      report("an input takes too long");
    }
  }

  std::uint64_t execution_ = 0;
  double used_ = 0;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, equals);
    const std::string value = equals < argument.size() ? argument.substr(equals + 1) : std::string();
    if (name == "-runs") {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-max_len") {
      options.max_length = std::max<std::size_t>(1, std::strtoull(value.c_str(), nullptr, 10));
    } else if (name == "-artifact_prefix") {
      options.artifact_prefix = value;
    } else if (argument.starts_with('-')) {
      std::fprintf(stderr, "%s: there is no option %s\n", target_name, argument.c_str());
      return false;
    } else if (std::filesystem::is_directory(argument)) {
      options.folders.push_back(argument);
    } else {
      options.files.push_back(argument);
    }
  }
  return true;
}

// Under a name that follows from the content.
void save(const std::string& folder, const std::string& input) {
  std::uint64_t name = 0;
  for (const char byte : input) name = mix64(name ^ static_cast<unsigned char>(byte));
  std::ofstream(std::filesystem::path(folder) / std::to_string(name), std::ios::binary) << input;
}

std::vector<std::string> first_corpus(const Options& options) {
  std::vector<std::string> corpus = seeds();
  for (const std::string& folder : options.folders) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_regular_file()) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) corpus.push_back(content(path));
  }
  for (std::string& input : corpus) input.resize(std::min(input.size(), options.max_length));
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) return 2;
  std::snprintf(under_way.path, sizeof under_way.path, "%s%s-finding-%llu", options.artifact_prefix.c_str(),
                target_name, static_cast<unsigned long long>(options.seed));
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(keep_input);
#else
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, on_signal);
#endif
  std::signal(SIGABRT, on_signal);

  const Watchdog watchdog;
  const auto started = std::chrono::steady_clock::now();
  std::uint64_t execution = 0;
  std::vector<std::string> corpus;
  if (!options.files.empty()) {
    for (const std::string& file : options.files) run_one(content(file), ++execution);
  } else {
    corpus = first_corpus(options);
    const std::size_t given = corpus.size();
    const Mutator mutator(tokens(), options.max_length);
    while (execution < options.runs) {
      std::string input;
      if (execution < given) {
        input = corpus[execution];
      } else {
        Random random(options.seed, execution);
        input = mutator.mutate(random, corpus);
      }
      ++execution;
      start_noting();
      run_one(input, execution);
      if (!stop_noting() || execution <= given || corpus.size() >= largest_corpus) continue;
      if (!options.folders.empty()) save(options.folders.front(), input);
      corpus.push_back(std::move(input));
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::printf("%s: %llu executions in %.1f s (%.0f a second), %zu inputs kept, no finding\n", target_name,
              static_cast<unsigned long long>(execution), seconds, static_cast<double>(execution) / seconds,
              corpus.size());
  return 0;
}
