// What a model said about phrases after states, within one sentence: many hypotheses ask the same.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "translation/model_reader.h"

namespace treelm {

// A state after a phrase.
struct ModelPart {
  ModelState state = 0;
  std::uint64_t key = 0;
  double log_prob = 0;  // of the words of the phrase
};

class PhraseMemo {
 public:
  // Forgets everything.
  void clear() {
    used_ = 0;
    if (++generation_ != 0) return;
    slots_.assign(slots_.size(), {});  // the numbers of generations begin anew
    generation_ = 1;
  }
  // What is known of a phrase after a state, or nothing; `add` may follow.
  ModelPart* find(ModelState state, std::uint32_t target) {
    const std::size_t mask = slots_.size() - 1;
    for (at_ = hash(state, target) & mask;; at_ = (at_ + 1) & mask) {
      Slot& slot = slots_[at_];
      if (slot.generation != generation_) return nullptr;
      if (slot.before == state && slot.target == target) return &slot.part;
    }
  }
  const ModelPart* add(ModelState state, std::uint32_t target, const ModelPart& part) {
    if (2 * ++used_ > slots_.size()) {
      grow();
      find(state, target);
    }
    slots_[at_] = {state, part, target, generation_};
    return &slots_[at_].part;
  }
  std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    ModelState before = 0;
    ModelPart part;
    std::uint32_t target = 0, generation = 0;
  };
  static std::size_t hash(ModelState state, std::uint32_t target) {
    return static_cast<std::size_t>(mix64(state ^ (std::uint64_t{target} << 40 | target >> 24)));
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.generation == generation_) {
        find(slot.before, slot.target);
        slots_[at_] = slot;
      }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::size_t used_ = 0, at_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace treelm
