// ARPA files that fuzzing found: what was read could not be written and read again.
#include "backoff/arpa.h"

#include "tests/harness.h"

using namespace treelm;

namespace {

std::vector<std::string> words_of(std::string_view text) {
  ArpaReader reader;
  reader.feed(text);
  reader.finish();
  return reader.words();
}

}  // namespace

TEST("arpa: a carriage return ends a field, wherever it stands") {
  const std::string head = "\\data\\\r\nngram 1=3\r\n\r\n\\1-grams:\r\n-inf <s>\r\n-1 </s>\r\n";
  const std::string end = "\r\n\\end\\\r\n";
  const std::vector<std::string> expected{"<unk>", "a"};
  for (const char* row : {"-1\ta\t-1", "-1\ta\r\t-1", "-1 a\r", "\r-1\r\ra\r-1\r"})
    CHECK_EQ(words_of(head + row + end), expected);
  for (const char* row : {"-1\t\r\t", "-1 a\rb", "-1\r"})  // no word, or two
    CHECK_THROWS_CODE(words_of(head + row + end), ErrorCode::arpa);
}
