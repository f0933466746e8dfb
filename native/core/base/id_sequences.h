// Sequences of ids <-> dense ids in order of first occurrence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/symbols.h"

namespace treelm {

class IdSequences {
 public:
  IdSequences() : start_{0}, slots_(1024, none) {}
  std::uint32_t intern(std::span<const std::uint32_t> sequence);
  // The id of `sequence`, or `none`.
  std::uint32_t find(std::span<const std::uint32_t> sequence) const;
  void clear();
  std::uint32_t size() const { return static_cast<std::uint32_t>(start_.size() - 1); }
  std::span<const std::uint32_t> operator[](std::uint32_t id) const {
    return {data_.data() + start_[id], data_.data() + start_[id + 1]};
  }
  const std::vector<std::uint32_t>& data() const { return data_; }
  const std::vector<std::uint64_t>& starts() const { return start_; }

 private:
  void grow();
  std::vector<std::uint32_t> data_;
  std::vector<std::uint64_t> start_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace treelm
