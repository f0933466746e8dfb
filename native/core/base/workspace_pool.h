// Workspaces for as many threads as work at once; each is made when it is first needed, and kept.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace treelm {

template <class Workspace>
class WorkspacePool {
 public:
  // A workspace that nobody else uses until this ends. One that an exception left half used is thrown away.
  class Borrowed {
   public:
    Borrowed(WorkspacePool& owner, std::unique_ptr<Workspace> work) : owner_(owner), work_(std::move(work)) {}
    ~Borrowed() {
      if (std::uncaught_exceptions() > exceptions_) return;
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(std::move(work_));
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Workspace& work() { return *work_; }

   private:
    WorkspacePool& owner_;
    std::unique_ptr<Workspace> work_;
    int exceptions_ = std::uncaught_exceptions();
  };

  // An idle workspace, or a new one made of `arguments`.
  template <class... Arguments>
  Borrowed borrow(const Arguments&... arguments) {
    std::unique_ptr<Workspace> found;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        found = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!found) found = std::make_unique<Workspace>(arguments...);
    return Borrowed(*this, std::move(found));
  }

  // Calls use(workspace) for all that are idle, while none is lent.
  template <class Use>
  void for_each_idle(const Use& use) {
    const std::lock_guard lock(mutex_);
    for (const auto& work : idle_) use(*work);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace treelm
