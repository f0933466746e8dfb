#include "mutator.h"

#include <algorithm>
#include <iterator>

namespace treelm::fuzz {

namespace {

std::uint64_t edge(Random& random) {
  const std::uint64_t power = std::uint64_t{1} << random.below(64), step = random.below(3);
  return (random.chance(2) ? power : ~power + 1) + step - 1;
}

std::size_t block_length(Random& random) {
  constexpr std::size_t longest[] = {1, 2, 4, 16, 64, 256};
  return 1 + random.below(longest[random.below(std::size(longest))]);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Another number in the place of one that is written in digits.
void rewrite_number(Random& random, std::string& text, std::size_t at) {
  while (at < text.size() && !is_digit(text[at])) ++at;
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at) return;
  std::uint64_t value = 0;
  for (std::size_t i = at; i < end; ++i) value = value * 10 + static_cast<std::uint64_t>(text[i] - '0');
  const std::uint64_t values[] = {value + 1, value - 1, 2 * value, random.below(100), edge(random)};
  text.replace(at, end - at, std::to_string(values[random.below(std::size(values))]));
}

}  // namespace

Mutator::Mutator(std::vector<std::string> tokens, std::size_t max_length)
    : tokens_(std::move(tokens)), max_length_(max_length) {}

std::string Mutator::mutate(Random& random, const std::vector<std::string>& corpus) const {
  // The newer half of the corpus is where something was found last; of three inputs the shortest is
  // the quickest.
  const std::size_t older = random.chance(2) ? corpus.size() / 2 : 0;
  const std::string* source = nullptr;
  for (int i = 0; i < 3; ++i) {
    const std::string& drawn = corpus[older + random.below(corpus.size() - older)];
    if (source == nullptr || drawn.size() < source->size()) source = &drawn;
  }
  std::string text = *source;
  std::size_t changes = 1;
  while (changes < 16 && random.chance(2)) ++changes;
  for (; changes > 0; --changes) {
    change(random, corpus, text);
    if (text.size() > max_length_) text.resize(max_length_);
  }
  return text;
}

void Mutator::change(Random& random, const std::vector<std::string>& corpus, std::string& text) const {
  const std::size_t at = random.below(text.size() + 1), length = block_length(random);
  const std::size_t kind = random.below(11);
  if (text.empty() && kind < 3) return;
  switch (kind) {
    case 0: {
      char& byte = text[at % text.size()];
      byte = static_cast<char>(byte ^ 1 << random.below(8));
      break;
    }
    case 1: text[at % text.size()] = static_cast<char>(random.below(256)); break;
    case 2: {
      char& byte = text[at % text.size()];
      byte = static_cast<char>(byte + static_cast<int>(random.below(33)) - 16);
      break;
    }
    case 3: {
      const std::string& token = tokens_[random.below(tokens_.size())];
      text.replace(at, random.chance(2) ? token.size() : 0, token);
      break;
    }
    case 4: text.erase(at, length); break;
    case 5: {
      const std::string block = text.substr(random.below(text.size() + 1), length);
      text.replace(at, random.chance(2) ? block.size() : 0, block);
      break;
    }
    case 6: {
      const std::string block = text.substr(at, length);
      const std::size_t times = 1 + random.below(random.chance(30) ? 1000 : 4);
      std::string repeated;
      for (std::size_t i = 0; i < times && repeated.size() < max_length_; ++i) repeated += block;
      text.insert(at, repeated);
      break;
    }
    case 7: {
      const std::string& other = corpus[random.below(corpus.size())];
      text.replace(at, std::string::npos, other, random.below(other.size() + 1), std::string::npos);
      break;
    }
    case 8: {
      const std::string& other = corpus[random.below(corpus.size())];
      text.insert(at, other, random.below(other.size() + 1), length);
      break;
    }
    case 9: {
      const std::uint64_t value = edge(random);
      const std::size_t bytes = std::size_t{1} << random.below(4);
      std::string number;
      for (std::size_t i = 0; i < bytes; ++i) number.push_back(static_cast<char>(value >> (8 * i) & 255));
      text.replace(at, bytes, number);
      break;
    }
    default: rewrite_number(random, text, at);
  }
}

}  // namespace treelm::fuzz
