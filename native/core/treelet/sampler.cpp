#include "treelet/sampler.h"

#include <cmath>

namespace treelm {

namespace {

// Probabilities of the right-hand sides of the last level, in the order of its entries.
std::vector<double> base_of_entries(const TreeletModel& model) {
  const BackoffTable& table = model.nonterminal();
  const std::size_t last = table.shape().levels() - 1;
  const ContextColumns columns_of(table);
  std::vector<double> base;
  std::vector<std::uint32_t> symbols;
  std::uint32_t columns[max_columns + 1] = {};
  table.each_entry(last, [&](std::uint64_t, std::uint32_t context, std::uint32_t yield, double p, std::uint32_t) {
    if (std::signbit(p)) return;
    base.push_back(0);
    if (yield >= model.yields() || columns_of.columns(context, columns) != table.shape().widths[last]) return;
    symbols.clear();
    for (const std::uint32_t label : model.yield_labels(yield)) symbols.push_back(model.base()->symbol(label));
    base.back() = model.base()->probability(columns[0], symbols);
  });
  return base;
}

}  // namespace

TreeletSampler::TreeletSampler(std::shared_ptr<const TreeletModel> model, std::vector<std::uint8_t> is_tag)
    : model_(std::move(model)),
      is_tag_(std::move(is_tag)),
      root_(model_->label(model_->recipe().profile->atoms()[model_->recipe().profile->root()])),
      nonterminal_(model_->shared_nonterminal(), base_of_entries(*model_)),
      terminal_(model_->shared_terminal(), {}),
      yields_(model_->base()) {
  if (is_tag_.size() != model_->labels())
    throw Error(ErrorCode::table, "every label needs a mark that says whether it is a tag");
  if (root_ == none) throw Error(ErrorCode::table, "the model has no root label");
  for (std::uint32_t label = EventExtractor::reserved_labels; label < is_tag_.size(); ++label)
    if (is_tag_[label] == 0 && !model_->base()->is_parent(label))
      throw Error(ErrorCode::table, "a label is neither a tag nor a parent");
}

namespace {

// Sizes of the subtrees of nodes in preorder: a subtree ends where a node comes that is no deeper.
std::vector<std::uint32_t> subtree_sizes(const std::vector<std::size_t>& depth) {
  std::vector<std::uint32_t> sizes(depth.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i <= depth.size(); ++i) {
    while (!open.empty() && (i == depth.size() || depth[open.back()] >= depth[i])) {
      sizes[open.back()] = static_cast<std::uint32_t>(i - open.back());
      open.pop_back();
    }
    open.push_back(i);
  }
  return sizes;
}

}  // namespace

TreeletSampler::Drawn TreeletSampler::draw_one(std::uint64_t seed, std::uint64_t number, std::size_t max_words,
                                               std::size_t max_depth) const {
  struct Waiting {
    std::uint32_t label, parent, rule, right;
    std::size_t depth;
  };
  Drawn drawn;
  std::uint64_t counter = 0;
  std::vector<Waiting> waiting{
      {root_, EventExtractor::no_parent, 0, EventExtractor::no_sibling, 1}};  // the leftmost on top
  std::vector<std::size_t> depth;                                             // of every node
  std::uint32_t before[2] = {model_->sentence_start(), model_->sentence_start()};
  std::size_t words = 0;
  std::vector<std::uint32_t> children;
  while (!waiting.empty()) {
    const Waiting here = waiting.back();
    waiting.pop_back();
    drawn.label.push_back(here.label);
    depth.push_back(here.depth);
    if (is_tag_[here.label] != 0) {
      const std::uint32_t context[] = {here.label, here.right, here.rule, before[0], before[1]};
      const std::uint32_t word = terminal_.draw(context, seed, number, counter++);
      if (word >= model_->encoder().size()) throw Error(ErrorCode::table, "a sampled word is out of range");
      const std::uint32_t row[] = {word, here.label, here.right, here.rule, before[0], before[1]};
      drawn.log_probability += std::log(model_->word_probability(row));
      before[1] = before[0];
      before[0] = word;
      drawn.word.push_back(word);
      if (++words <= max_words) continue;
      drawn.outcome = SampledTrees::too_long;
      return drawn;
    }
    drawn.word.push_back(none);
    if (here.depth >= max_depth) {
      drawn.outcome = SampledTrees::too_deep;
      return drawn;
    }
    const std::uint32_t context[] = {here.label, here.parent, here.rule};
    std::uint32_t yield = nonterminal_.draw(context, seed, number, counter++);
    children.clear();
    if (yield == none) {
      yields_.draw(here.label, seed, number, counter, children);
      yield = model_->yield(children);
    } else if (yield < model_->yields()) {
      const auto known = model_->yield_labels(yield);
      children.assign(known.begin(), known.end());
    } else {
      throw Error(ErrorCode::table, "a sampled right-hand side is out of range");
    }
    const std::uint32_t row[] = {yield, here.label, here.parent, here.rule};
    drawn.log_probability += model_->phrase_log_probability(row, [&] {
      std::vector<std::uint32_t> symbols;
      for (const std::uint32_t label : children) symbols.push_back(model_->base()->symbol(label));
      return model_->base()->log_probability(here.label, symbols);
    });
    // A phrase waits for at least one word, so a tree of too many children is too long at once.
    if (waiting.size() + children.size() > max_words + max_depth) {
      drawn.outcome = SampledTrees::too_long;
      return drawn;
    }
    const std::uint32_t rule = model_->rule(here.label, yield);
    for (std::size_t i = children.size(); i-- > 0;)
      waiting.push_back({children[i], here.label, rule,
                         i + 1 < children.size() ? children[i + 1] : std::uint32_t{EventExtractor::no_sibling},
                         here.depth + 1});
  }
  drawn.size = subtree_sizes(depth);
  return drawn;
}

SampledTrees TreeletSampler::draw(std::uint64_t seed, std::uint64_t first, std::size_t count, std::size_t max_words,
                                  std::size_t max_depth, std::size_t threads) const {
  std::vector<Drawn> drawn(count);
  ThreadPool pool(threads);
  pool.map(count, [&](std::size_t i, std::size_t) { drawn[i] = draw_one(seed, first + i, max_words, max_depth); });
  SampledTrees out;
  Symbols atoms;
  std::vector<std::uint32_t> label_of(model_->labels(), none), word_of(model_->encoder().size(), none);
  for (const Drawn& tree : drawn) {
    out.outcome.push_back(tree.outcome);
    if (tree.outcome != SampledTrees::complete) continue;
    out.log_probability.push_back(tree.log_probability);
    for (std::size_t i = 0; i < tree.label.size(); ++i) {
      std::uint32_t& label = label_of[tree.label[i]];
      if (label == none) {
        label = static_cast<std::uint32_t>(out.trees.labels.size());
        out.trees.labels.push_back({atoms.intern(model_->label_text(tree.label[i])), none, none, 0});
      }
      out.trees.label.push_back(label);
      out.trees.size.push_back(tree.size[i]);
      if (tree.word[i] == none) {
        out.trees.word.push_back(none);
        continue;
      }
      std::uint32_t& word = word_of[tree.word[i]];
      if (word == none) {
        word = static_cast<std::uint32_t>(out.trees.words.size());
        out.trees.words.push_back(model_->encoder().symbol(tree.word[i]));
      }
      out.trees.word.push_back(word);
      ++out.trees.tokens;
    }
    out.trees.start.push_back(static_cast<std::uint32_t>(out.trees.label.size()));
  }
  out.trees.atoms = StringTable(atoms);
  return out;
}

}  // namespace treelm
