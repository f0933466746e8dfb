#include "byte_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "error.h"

namespace treelm {

namespace {

[[noreturn]] void failed(const std::string& what, const std::string& folder, int code) {
  throw Error(ErrorCode::spill, what + " in " + folder + ": " + std::strerror(code));
}

struct Mapping {
  void* bytes;
  std::size_t size;
  ~Mapping() { munmap(bytes, size); }
};

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

std::shared_ptr<const void> TemporaryFile::map() const {
  if (size_ == 0) return std::make_shared<std::uint64_t>(0);
  void* bytes = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (bytes == MAP_FAILED) failed("a temporary file cannot be mapped", folder_, errno);
  const std::shared_ptr<Mapping> mapping(new Mapping{bytes, size_});
  return {mapping, bytes};
}

ByteStore::ByteStore(const std::string& folder, std::size_t buffer) : buffer_size_(buffer) {
  if (folder.empty()) return;
  file_ = std::make_unique<TemporaryFile>(folder);
  buffer_.reserve(buffer_size_);
}

void ByteStore::reserve(std::size_t bytes) {
  if (!file_) buffer_.reserve(bytes);
}

void ByteStore::append(const void* bytes, std::size_t count) {
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

std::shared_ptr<const void> ByteStore::finish() {
  if (file_) {
    file_->write(buffer_.data(), buffer_.size());
    LargeVector<std::uint8_t>().swap(buffer_);
    return file_->map();
  }
  const auto kept = std::make_shared<LargeVector<std::uint8_t>>(std::move(buffer_));
  return {kept, kept->data()};
}

}  // namespace treelm
