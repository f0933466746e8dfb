// Fuzz target: ARPA files. Input: options, the file. What is accepted can be scored, written, and read
// again with the same words and the same number of rows.
//
// Most changes of a file break one of its counts, so an option puts them right.
#include <algorithm>
#include <cmath>

#include "backoff/arpa.h"
#include "target.h"

using namespace treelm;

namespace treelm::fuzz {

const char* const target_name = "arpa";

std::vector<std::string> seeds() {
  const std::string texts[] = {
      "made by hand\n\n\\data\\\nngram 1=5\nngram 2=4\nngram 3=2\n\n"
      "\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.3\n-0.7\t</s>\n-0.5\tthe\t-0.25\n-0.6\tferry\t0\n\n"
      "\\2-grams:\n-0.2\t<s> the\t-0.1\n-0.4\tthe ferry\t-0.2\n-0.3\tferry </s>\n-1.5\tthe the\n\n"
      "\\3-grams:\n-0.1\t<s> the ferry\n-0.05\tthe ferry </s>\n\n\\end\\\n",
      "\\data\\\r\nngram 1=2\r\n\r\n\\1-grams:\r\n-inf <s>\r\n-1e-3 </s>\r\n\r\n\\end\\\r\n",
      "\\data\\\nngram 1=3\nngram 2=2\nngram 3=0\nngram 4=0\n\\1-grams:\n0 <s> 1.5\n-3 </s> -2\n-2 \xC3\xA9 30\n"
      "\\2-grams:\n-1 <s> \xC3\xA9\n-1 \xC3\xA9 \xC3\xA9 -1\n\\3-grams:\n\\4-grams:\n\\end\\",
  };
  std::vector<std::string> made;
  for (const char options : {'\0', '\2', '\3', '\x12'}) {
    for (const std::string& text : texts) made.push_back(options + text);
  }
  return made;
}

std::vector<std::string> tokens() {
  return {"\\data\\\n", "ngram 1=3\n", "ngram 2=2\n", "ngram 3=", "\\1-grams:\n", "\\2-grams:\n", "\\3-grams:\n",
          "\\end\\\n",  "<s>",         "</s>",        "<unk>",    "<s> ",         " </s>\n",      "\n",
          "\r\n",       "\r",          "\t",          " ",        "-99",          "-0",           "+0",
          "-inf",       "nan",         "1e-40",       "-1e38",    "30",           "-0.5\t",       "0\t",
          "the",        "ferry",       "=",           "\\",       "\xFF",         "\xC3\xA9",     std::string(1, '\0'),
          "-1\ta\n",    "-1\ta b\n",   "-1\ta\t-1\n", "\v",       "\xC2\xA0"};
}

namespace {

enum Option : std::uint8_t { double_precision = 1, right_counts = 2, block_shift = 2 };

// The sections of the file under a head that announces what is there.
std::string with_right_counts(std::string_view text) {
  std::string sections;
  std::vector<std::size_t> rows;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with('\\') && line.find("-grams:") != std::string_view::npos) rows.push_back(0);
    if (rows.empty()) continue;
    if (!line.starts_with('\\') && line.find_first_not_of(" \t\r") != std::string_view::npos) ++rows.back();
    sections.append(line).append("\n");
  }
  std::string made = "\\data\\\n";
  for (std::size_t i = 0; i < rows.size(); ++i)
    made.append("ngram ").append(std::to_string(i + 1)).append("=").append(std::to_string(rows[i])).append("\n");
  return made + sections;
}

void feed(ArpaReader& reader, std::string_view text, std::size_t block) {
  for (std::size_t at = 0; at < text.size(); at += block) reader.feed(text.substr(at, block));
  reader.finish();
}

void score(const BackoffTable& table) {
  const auto outcomes = static_cast<std::uint32_t>(table.shape().outcomes);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 24; ++i) ids.push_back(i % 7 == 6 ? none - i : i * i % (outcomes + 1));
  const std::vector<std::uint64_t> starts{0, 0, 1, 9, 24};
  std::vector<double> out(ids.size() + starts.size() - 1);
  table.score_sequences(ids, starts, outcomes - 1, outcomes - 2, out.data());
  for (const double log_probability : out) require(!std::isnan(log_probability), "a score is a number");
  const auto order = table.shape().columns();
  for (std::uint32_t i = 0; i + order < ids.size(); i += 3) {
    const BackoffTable::Advance step = table.advance(ids.data() + i + 1, order - 1, ids[i]);
    require(step.kept < order, "a state is shorter than the order");
    const double p = table.probability_from(0, ids.data() + i, table.uniform_base(ids[i]));
    require(p >= 0, "a probability is not negative");
  }
}

std::string written(const BackoffTable& table, std::vector<std::string> words) {
  words.emplace_back("</s>");
  words.emplace_back("<s>");
  require(words.size() == table.shape().outcomes, "every outcome is a word");
  std::string text;
  write_arpa(table, words, [&](std::string_view piece) { text += piece; });
  return text;
}

std::string counts(const std::string& text) { return text.substr(0, text.find("\n\n")); }

// What was written is read again, whatever the first file was.
void read_again(const std::string& text, const std::vector<std::string>& words, std::size_t order) {
  ArpaReader reader;
  try {
    feed(reader, text, text.size());
    require(reader.words() == words && reader.order() == order, "the words are written and read again");
    const auto table = reader.build(true, 1);
    require(counts(written(*table, words)) == counts(text), "all rows are written and read again");
  } catch (const Error& error) {
    throw BrokenPromise(std::string("what was written cannot be read: ") + error.what());
  }
}

}  // namespace

}  // namespace treelm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace treelm::fuzz;
  if (size < 1) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & right_counts) != 0) text = with_right_counts(text);
  ArpaReader reader;
  std::shared_ptr<const BackoffTable> table;
  std::vector<std::string> words;
  const std::size_t block = std::size_t{data[0]} >> block_shift;
  try {
    feed(reader, text, block == 0 ? text.size() : block);
    words = reader.words();
    table = reader.build((data[0] & double_precision) != 0, 1);
  } catch (const Error&) {
    return 0;
  }
  score(*table);
  read_again(written(*table, words), words, table->shape().columns());
  return 0;
}
