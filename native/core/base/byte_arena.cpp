#include "base/byte_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace treelm {

namespace {

[[noreturn]] void failed(const std::string& what, const std::string& folder, int code) {
  throw Error(ErrorCode::spill, what + " in " + folder + ": " + std::strerror(code));
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& folder) : folder_(folder) {
#if defined(O_TMPFILE)
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
#endif
  // Not every file system has files without a name: give it one, and take it away at once.
  std::string name = folder + "/treelm-XXXXXX";
  descriptor_ = mkstemp(name.data());
  if (descriptor_ < 0) failed("no temporary file can be made", folder, errno);
  unlink(name.c_str());
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

TemporaryFile::~TemporaryFile() { close(descriptor_); }

void TemporaryFile::write(const void* bytes, std::size_t count) {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = pwrite(descriptor_, from, count, static_cast<off_t>(size_));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) failed("a temporary file cannot be written", folder_, done < 0 ? errno : ENOSPC);
    from += done;
    count -= static_cast<std::size_t>(done);
    size_ += static_cast<std::uint64_t>(done);
  }
}

std::size_t TemporaryFile::read(void* bytes, std::size_t count, std::uint64_t at) const {
  auto* to = static_cast<char*>(bytes);
  std::size_t all = 0;
  while (all < count) {
    const ssize_t done = pread(descriptor_, to + all, count - all, static_cast<off_t>(at + all));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) failed("a temporary file cannot be read", folder_, errno);
    if (done == 0) break;
    all += static_cast<std::size_t>(done);
  }
  return all;
}

StoredBytes::StoredBytes(LargeVector<std::uint8_t> bytes)
    : memory_(std::move(bytes)), data_(memory_.data()), size_(memory_.size()) {}

StoredBytes::StoredBytes(std::unique_ptr<TemporaryFile> file)
    : file_(std::move(file)), data_(nullptr), size_(file_->size()) {
  if (size_ == 0) return;
  void* bytes = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_->descriptor(), 0);
  if (bytes == MAP_FAILED) failed("a temporary file cannot be mapped", file_->folder(), errno);
  data_ = static_cast<const std::uint8_t*>(bytes);
}

StoredBytes::~StoredBytes() {
  if (file_ && data_ != nullptr) munmap(const_cast<std::uint8_t*>(data_), size_);
}

void StoredBytes::forget(std::size_t from, std::size_t to) const {
  if (!file_ || data_ == nullptr) return;
  // Whole pages only, and what they hold stays in the file.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  from = (from + page - 1) / page * page;
  to = to == size_ ? size_ : to / page * page;
  if (from < to) madvise(const_cast<std::uint8_t*>(data_) + from, to - from, MADV_DONTNEED);
}

ByteArena::ByteArena(const std::string& folder, std::size_t buffer) : buffer_size_(buffer) {
  if (folder.empty()) return;
  file_ = std::make_unique<TemporaryFile>(folder);
  buffer_.reserve(buffer_size_);
}

void ByteArena::reserve(std::size_t bytes) {
  if (!file_) buffer_.reserve(bytes);
}

void ByteArena::append(const void* bytes, std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  if (file_ && buffer_.size() + count > buffer_size_) {
    file_->write(buffer_.data(), buffer_.size());
    written_ += buffer_.size();
    buffer_.clear();
    if (count >= buffer_size_) {
      file_->write(from, count);
      written_ += count;
      return;
    }
  }
  buffer_.insert(buffer_.end(), from, from + count);
}

std::uint8_t* ByteArena::extend(std::size_t count) {
  if (file_) throw Error(ErrorCode::argument, "a temporary file is written from its beginning to its end");
  const std::size_t before = buffer_.size();
  buffer_.resize(before + count);
  return buffer_.data() + before;
}

std::shared_ptr<const StoredBytes> ByteArena::finish() {
  if (!file_) return std::make_shared<StoredBytes>(std::move(buffer_));
  file_->write(buffer_.data(), buffer_.size());
  LargeVector<std::uint8_t>().swap(buffer_);
  return std::make_shared<StoredBytes>(std::move(file_));
}

}  // namespace treelm
