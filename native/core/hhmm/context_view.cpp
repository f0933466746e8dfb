#include "hhmm/context_view.h"

#include <algorithm>

namespace treelm {

void ContextView::show(std::span<const std::uint32_t> before) {
  const HhmmContexts* contexts = grammar_.contexts();
  weighs_tags_ = contexts && contexts->weighs_tags();
  if (!contexts || (!before_.empty() && std::ranges::equal(before_, before))) return;
  before_.assign(before.begin(), before.end());
  if (!weighs_tags_) return;
  contexts->tag_factors(before_, factors_);
  next_tags_.weigh(factors_);
}

std::span<const Emission> ContextView::emissions(std::uint32_t word) {
  const std::span<const Emission> by_tag = grammar_.emissions(word);
  if (!grammar_.contexts()) return by_tag;
  emissions_.assign(by_tag.begin(), by_tag.end());
  for (Emission& each : emissions_) each.value = factor(each.tag) * word_probability(word, each);
  return emissions_;
}

double ContextView::word_probability(std::uint32_t word, Emission by_tag) const {
  const HhmmContexts* contexts = grammar_.contexts();
  if (!contexts) return by_tag.value;
  return contexts->word_probability(word, by_tag.tag - grammar_.phrasal(), before_, by_tag.value);
}

std::vector<std::uint32_t> words_before(std::span<const std::uint32_t> before, std::uint32_t word) {
  if (before.empty()) return {};
  std::vector<std::uint32_t> found{word};
  found.insert(found.end(), before.begin(), before.end() - 1);
  return found;
}

}  // namespace treelm
