// What a fuzz target consists of, beside LLVMFuzzerTestOneInput.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace treelm::fuzz {

extern const char* const target_name;
// Good inputs to start from.
std::vector<std::string> seeds();
// What stands in such inputs.
std::vector<std::string> tokens();

// A promise of the reader that did not hold: a finding, as is any exception but treelm::Error.
struct BrokenPromise : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const char* promise) {
  if (!holds) throw BrokenPromise(promise);
}

}  // namespace treelm::fuzz
