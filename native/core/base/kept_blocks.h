// Memory that is used again. The system clears every page that it gives, which takes as long as half of what is done
// with it: while blocks are kept, large vectors take what others have let go of, and the rest goes back to the system
// as soon as something does not fit into it, so that no more is held than without.
#pragma once

namespace treelm {

// While one lives, blocks of large vectors are kept; when the last one goes, they go too.
class KeptBlocks {
 public:
  KeptBlocks();
  ~KeptBlocks();
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  // Gives back what is kept now: before memory is written that was reserved long ago.
  static void release();
};

}  // namespace treelm
