#include "base/symbols.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/error.h"
#include "base/random.h"

namespace treelm {

namespace {
constexpr std::size_t first_slots = 1024;
}

std::uint64_t hash_seed() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return mix64((std::uint64_t{device()} << 32 | device()) ^ now);
  }();
  return seed;
}

Symbols::Symbols() : seed_(hash_seed()), start_{0}, slots_(first_slots, Slot{0, none}) {}

void Symbols::clear() {
  bytes_.clear();
  start_.resize(1);
  std::fill(slots_.begin(), slots_.end(), Slot{0, none});
}

std::uint32_t Symbols::intern(std::string_view text) {
  const std::uint64_t key = key_of(text);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = place_of(key) & mask;
  for (;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == none) break;
    if (is(slot, key, text)) return slot.id;
  }
  if (bytes_.size() + text.size() >= none || size() + 1 >= none)
    throw Error(ErrorCode::too_large, "a symbol table would exceed 4 GiB of text");
  const std::uint32_t id = size();
  slots_[at] = Slot{key, id};
  bytes_.append(text);
  start_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  if (start_.size() * 2 > slots_.size()) grow();
  return id;
}

void Symbols::grow() {
  std::vector<Slot> bigger(slots_.size() * 2, Slot{0, none});
  const std::size_t mask = bigger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id == none) continue;
    std::size_t at = place_of(slot.key) & mask;
    while (bigger[at].id != none) at = (at + 1) & mask;
    bigger[at] = slot;
  }
  slots_.swap(bigger);
}

}  // namespace treelm
