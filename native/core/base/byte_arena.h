// Bytes that are written once, one behind the other, and then read anywhere: in memory, or in a file
// without a name that is gone when the process is, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/large_vector.h"

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
  int descriptor() const { return descriptor_; }
  const std::string& folder() const { return folder_; }

 private:
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string folder_;
};

// Bytes that lie still: in memory, or mapped from a file.
class StoredBytes {
 public:
  explicit StoredBytes(LargeVector<std::uint8_t> bytes);
  explicit StoredBytes(std::unique_ptr<TemporaryFile> file);
  StoredBytes(const StoredBytes&) = delete;
  StoredBytes& operator=(const StoredBytes&) = delete;
  ~StoredBytes();

  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool mapped() const { return file_ != nullptr; }
  // These bytes are not needed for now; they may leave the memory and come back from the file.
  void forget(std::size_t from, std::size_t to) const;

 private:
  LargeVector<std::uint8_t> memory_;
  std::unique_ptr<TemporaryFile> file_;
  const std::uint8_t* data_;
  std::size_t size_;
};

class ByteArena {
 public:
  // An empty folder name keeps everything in memory.
  explicit ByteArena(const std::string& folder = {}, std::size_t buffer = std::size_t{1} << 20);

  void reserve(std::size_t bytes);
  void append(const void* bytes, std::size_t count);
  // Room for so many bytes more, in memory, for the caller to fill; it stays in its place as long as no more is asked
  // for than was reserved.
  std::uint8_t* extend(std::size_t count);
  std::uint64_t size() const { return written_ + buffer_.size(); }

  // What was written; nothing more can be.
  std::shared_ptr<const StoredBytes> finish();

 private:
  std::unique_ptr<TemporaryFile> file_;
  std::size_t buffer_size_;
  std::uint64_t written_ = 0;
  LargeVector<std::uint8_t> buffer_;
};

// Numbers in stored bytes, read from the first to the last: what lies behind leaves the memory.
template <class T>
class StoredArray {
 public:
  StoredArray() = default;
  explicit StoredArray(std::shared_ptr<const StoredBytes> bytes) : bytes_(std::move(bytes)) {}
  std::size_t size() const { return bytes_ ? bytes_->size() / sizeof(T) : 0; }
  const T& operator[](std::size_t i) const { return reinterpret_cast<const T*>(bytes_->data())[i]; }
  // Tells that only items from `i` on are needed.
  void pass(std::size_t i) const {
    constexpr std::size_t step = std::size_t{1} << 20;
    if (i * sizeof(T) < passed_) passed_ = 0;  // from the beginning again
    if (i * sizeof(T) < passed_ + step || !bytes_->mapped()) return;
    bytes_->forget(passed_, i * sizeof(T));
    passed_ = i * sizeof(T);
  }
  // Tells that nothing is needed for now.
  void leave() const {
    if (bytes_ && bytes_->mapped()) bytes_->forget(0, bytes_->size());
    passed_ = 0;
  }

 private:
  std::shared_ptr<const StoredBytes> bytes_;
  mutable std::size_t passed_ = 0;
};

// Collects numbers for a StoredArray.
template <class T>
class StoredArrayWriter {
 public:
  explicit StoredArrayWriter(const std::string& folder) : bytes_(folder) {}
  void add(const T& value) { bytes_.append(&value, sizeof value); }
  std::size_t size() const { return bytes_.size() / sizeof(T); }
  StoredArray<T> finish() { return StoredArray<T>(bytes_.finish()); }

 private:
  ByteArena bytes_;
};

}  // namespace treelm
