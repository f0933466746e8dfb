// The search of a structured language model as Python holds it; shared by the files that bind it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "bindings/bindings.h"
#include "slm/search.h"

namespace treelm::bindings {

struct SlmBeamHandle {
  std::shared_ptr<const SlmBeam> beam;
};

// A search, and workspaces for as many threads as use it at once.
class SlmSearcher {
 public:
  SlmSearcher(const SlmShape& shape, SlmParts parts, const SlmOptions& options, std::size_t topics)
      : search_(shape, std::move(parts), options, topics) {}

  const SlmSearch& search() const { return search_; }
  const SlmBeam& checked(const SlmBeamHandle& state) const {
    if (!state.beam->fits(search_.shape())) throw Error(ErrorCode::argument, "the state does not fit the model");
    return *state.beam;
  }

  class Borrowed {
   public:
    explicit Borrowed(const SlmSearcher& owner) : owner_(owner) {
      {
        const std::lock_guard lock(owner_.mutex_);
        if (!owner_.idle_.empty()) {
          work_ = std::move(owner_.idle_.back());
          owner_.idle_.pop_back();
        }
      }
      if (!work_) work_ = std::make_unique<SlmSearch::Workspace>();
    }
    ~Borrowed() {
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(std::move(work_));
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    SlmSearch::Workspace& work() { return *work_; }

   private:
    const SlmSearcher& owner_;
    std::unique_ptr<SlmSearch::Workspace> work_;
  };

 private:
  SlmSearch search_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<SlmSearch::Workspace>> idle_;
};

// Adds the methods that take many sentences at once.
void bind_slm_shape(nb::module_& module);
void bind_slm_batches(nb::class_<SlmSearcher>& searcher);

}  // namespace treelm::bindings
