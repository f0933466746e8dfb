// With libFuzzer: the inputs to start from are written into the first folder that is given.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "target.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::filesystem::path folder = (*argv)[i];
    if (!std::filesystem::is_directory(folder)) continue;
    int number = 0;
    for (const std::string& seed : treelm::fuzz::seeds()) {
      std::string name = "seed-";
      std::ofstream file(folder / name.append(std::to_string(number++)), std::ios::binary);
      file << seed;
    }
    break;
  }
  return 0;
}
