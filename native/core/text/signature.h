// Unknown-word signatures: the shape of a word in place of the word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treelm {

struct SignatureRules {
  std::vector<std::string> suffixes;  // the first that fits is appended
  std::string plural;                 // "s" in English; tried before the suffixes
  std::string plural_blocked;         // letters before the plural ending that speak against it
  bool lower_case_mark = true;        // -LC; false gives the style of Pauls & Klein's paper
  bool last_character = false;        // language-neutral: the last character instead of suffixes
};

// The signature of `word` at `position`, or "<unk>" when it has no shape to speak of. `known_lower`
// says whether the lower-cased word is in the vocabulary (asked only at the start of a sentence).
std::string signature(const SignatureRules& rules, std::string_view word, std::uint64_t position, bool known_lower);

}  // namespace treelm
