// How long work says how far it is.
#pragma once

#include <cstdint>
#include <functional>

namespace treelm {

// `progress(done, all)` is called now and then; it may throw to stop the work.
using ProgressCallback = std::function<void(std::uint64_t, std::uint64_t)>;

inline void no_progress(std::uint64_t, std::uint64_t) {}

}  // namespace treelm
