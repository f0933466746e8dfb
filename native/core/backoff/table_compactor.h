// From a table in the order of hashes to a compact one: the same rows with the same values, sorted,
// without links.
//
// Where a region has few different values, codes stand for them; what they stand for stays exact.
#pragma once

#include <memory>
#include <string>

#include "backoff/table.h"
#include "base/progress.h"

namespace treelm {

// Returns the compact table. `code_bits`: at least 4, of the codes of a table that has some: it has no more different
// ones than they can tell. `folder`: where the table is written; empty for memory. Beside the tables the work takes
// eight bytes for each row of a region, four if these are contexts, and eight for each context that they go on from.
// Progress is told in rows.
std::shared_ptr<const BackoffTable> make_compact(const BackoffTable& table, unsigned code_bits,
                                                 const std::string& folder, const ProgressCallback& progress);

}  // namespace treelm
