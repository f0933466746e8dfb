// What an input reached, where the core is built to tell (-fsanitize-coverage=trace-pc).
#pragma once

namespace treelm::fuzz {

// Begins to note what is reached.
void start_noting();
// Ends it, and returns whether something was reached for the first time, or more often than before.
bool stop_noting();

}  // namespace treelm::fuzz
