// Bytes that are written once, one behind the other, and then read anywhere: in memory, or in a file
// without a name that is gone when the process is, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "large_vector.h"

namespace treelm {

// A file without a name in a folder.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& folder);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(const void* bytes, std::size_t count);  // at the end
  std::size_t read(void* bytes, std::size_t count, std::uint64_t at) const;
  std::uint64_t size() const { return size_; }
  // The whole file in memory, read-only.
  std::shared_ptr<const void> map() const;

 private:
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string folder_;
};

class ByteStore {
 public:
  // An empty folder name keeps everything in memory.
  explicit ByteStore(const std::string& folder = {}, std::size_t buffer = std::size_t{1} << 20);

  void reserve(std::size_t bytes);
  void append(const void* bytes, std::size_t count);
  std::uint64_t size() const { return written_ + buffer_.size(); }

  // What was written; nothing more can be.
  std::shared_ptr<const void> finish();

 private:
  std::unique_ptr<TemporaryFile> file_;
  std::size_t buffer_size_;
  std::uint64_t written_ = 0;
  LargeVector<std::uint8_t> buffer_;
};

}  // namespace treelm
