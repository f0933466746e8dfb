// The search of a structured language model as Python holds it; shared by the files that bind it.
#pragma once

#include <memory>

#include "base/workspace_pool.h"
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

  auto borrow() const { return workspaces_.borrow(); }

 private:
  SlmSearch search_;
  mutable WorkspacePool<SlmSearch::Workspace> workspaces_;
};

// Topics and their shares, checked; for a model with so many topics.
TopicShares mixture_of(std::size_t topics, const Array<std::uint32_t>& chosen, const Array<double>& shares);

// Adds the methods that take many sentences at once.
void bind_slm_shape(nb::module_& module);
void bind_slm_batches(nb::class_<SlmSearcher>& searcher);

}  // namespace treelm::bindings
