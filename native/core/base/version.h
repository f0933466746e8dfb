// The version of the native core, written by CMake from pyproject.toml.
#pragma once

namespace treelm {
inline constexpr const char* core_version = TREELM_VERSION;
}
