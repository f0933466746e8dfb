#include "text/signature.h"

#include "tests/harness.h"

using namespace treelm;

namespace {

SignatureRules english_rules() {
  return {
      .suffixes = {"ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al"}, .plural = "s", .plural_blocked = "siu"};
}

struct Example {
  const char* word;
  std::uint64_t position;
  bool known_lower;
  const char* expected;
};

}  // namespace

TEST("signature: the examples of the specification") {
  const Example examples[] = {
      {"vexing", 3, false, "UNK-LC-ing"},
      {"Vexing", 2, false, "UNK-CAPS-ing"},
      {"Vexing", 2, true, "UNK-CAPS-ing"},
      {"Vexing", 0, true, "UNK-INITC-KNOWNLC-ing"},
      {"Vexing", 0, false, "UNK-INITC-ing"},
      {"80s", 2, false, "UNK-LC-NUM-s"},
      {"B-52", 1, false, "UNK-CAPS-NUM-DASH"},
      {"1,234", 1, false, "UNK-NUM"},
      {"U.S.", 3, false, "UNK-CAPS"},
      {"abacus", 1, false, "UNK-LC"},
      {"glass", 1, false, "UNK-LC"},
      {"dogs", 1, false, "UNK-LC-s"},
      {"ability", 1, false, "UNK-LC-ity"},
      {"co-founder", 1, false, "UNK-LC-DASH"},
      {"McDonald", 0, false, "UNK-CAPS"},
      {"iPod", 1, false, "UNK-LC"},
      {"%", 1, false, "<unk>"},
      {"", 0, false, "<unk>"},
  };
  for (const Example& e : examples) CHECK_EQ(signature(english_rules(), e.word, e.position, e.known_lower), e.expected);
}

TEST("signature: borders of the rules") {
  const Example examples[] = {
      {"is", 1, false, "UNK-LC"},              // too short for a plural
      {"x's", 1, false, "UNK-LC-s"},           // exactly three characters
      {"taxis", 1, false, "UNK-LC"},           // blocked by i, and no other suffix is tried
      {"used", 1, false, "UNK-LC"},            // four letters: no suffix
      {"asked", 1, false, "UNK-LC-ed"},        // five
      {"KINGED", 1, false, "UNK-CAPS-ed"},     // suffixes are compared in lower case
      {"4Xing", 1, false, "UNK-CAPS-NUM"},     // digit and capital: no suffix
      {"44xing", 1, false, "UNK-LC-NUM-ing"},  // digit without capital
      {"'Tis", 1, false, "UNK-CAPS"},          // first is no letter, some capital
      {"--", 0, false, "UNK-DASH"},
      {"A", 0, true, "UNK-INITC-KNOWNLC"},
      {"a", 0, true, "UNK-LC"},
      {"\u00C9t\u00E9s", 1, false, "UNK-CAPS-s"},  // É is upper case, and characters count, not bytes
      {"\u00E9ed", 1, false, "UNK-LC"},            // three characters, four bytes
      {"\u01C5x", 0, false, "UNK-INITC"},          // title case ǅ counts as capital
      {"\u65E5\u672C", 1, false, "<unk>"},         // letters without case
      {"3\u65E5", 1, false, "UNK-CAPS-NUM"},       // capital = a letter that is not lower case
      {"\u0663", 1, false, "<unk>"},               // only ASCII digits are digits
  };
  for (const Example& e : examples) CHECK_EQ(signature(english_rules(), e.word, e.position, e.known_lower), e.expected);
}

TEST("signature: the style of the paper drops the mark of lower case") {
  SignatureRules rules = english_rules();
  rules.lower_case_mark = false;
  CHECK_EQ(signature(rules, "vexing", 3, false), "UNK-ing");
  CHECK_EQ(signature(rules, "glass", 3, false), "<unk>");
  CHECK_EQ(signature(rules, "Vexing", 0, false), "UNK-INITC-ing");
}

TEST("signature: language-neutral mode ends with the last character") {
  SignatureRules rules;
  rules.last_character = true;
  CHECK_EQ(signature(rules, "vexing", 3, false), "UNK-LC-g");
  CHECK_EQ(signature(rules, "B-52", 1, false), "UNK-CAPS-NUM-DASH-2");
  CHECK_EQ(signature(rules, "Stra\u00DFe\u00E9", 1, false), "UNK-CAPS-\u00E9");
  CHECK_EQ(signature(rules, "%", 1, false), "UNK-%");
  CHECK_EQ(signature(rules, "", 1, false), "<unk>");
}

TEST("signature: without rules only the shape is left") {
  CHECK_EQ(signature({}, "vexings", 3, false), "UNK-LC");
  CHECK_EQ(signature({}, "%", 3, false), "<unk>");
}

TEST("signature: malformed UTF-8 is harmless") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string word = {static_cast<char>(byte), 's', static_cast<char>(byte)};
    CHECK(!signature(english_rules(), word, 0, false).empty());
  }
}
