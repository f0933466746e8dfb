#include "treelet/scorer.h"

#include <cmath>
#include <limits>

namespace treelm {

TreeletModel::TreeletModel(const std::vector<std::string>& labels, std::span<const std::uint32_t> yield_labels,
                           std::span<const std::uint64_t> yield_starts, std::span<const std::uint32_t> rules,
                           std::shared_ptr<const BackoffTable> nonterminal,
                           std::shared_ptr<const BackoffTable> terminal, std::shared_ptr<const YieldModel> base,
                           std::shared_ptr<const WordEncoder> encoder, std::shared_ptr<const TreeRecipe> recipe,
                           const std::vector<std::string>& marked_tags)
    : nonterminal_(std::move(nonterminal)),
      terminal_(std::move(terminal)),
      base_(std::move(base)),
      encoder_(std::move(encoder)),
      recipe_(std::move(recipe)) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::table, what);
  };
  for (const std::string& tag : marked_tags) marked_tags_.intern(tag);
  for (const std::string& label : labels)
    require(labels_.intern(label) + 1 == labels_.size() && labels_.size() <= labels.size(), "a label occurs twice");
  require(labels_.size() == labels.size() && labels.size() > EventExtractor::reserved_labels, "labels are missing");
  require(!yield_starts.empty() && yield_starts.front() == 0 && yield_starts.back() == yield_labels.size(),
          "right-hand sides do not fit their labels");
  for (const std::uint32_t label : yield_labels)
    require(label >= EventExtractor::reserved_labels && label < labels.size(),
            "a label of a right-hand side is out of range");
  for (std::size_t i = 0; i + 1 < yield_starts.size(); ++i) {
    require(yield_starts[i] < yield_starts[i + 1] && yield_starts[i + 1] <= yield_labels.size(),
            "a right-hand side is empty");
    const std::uint32_t id =
        yields_.intern(yield_labels.subspan(yield_starts[i], yield_starts[i + 1] - yield_starts[i]));
    require(id == i, "a right-hand side occurs twice");
  }
  require(rules.size() >= 2 && rules.size() % 2 == 0, "every rule needs a label and a right-hand side");
  rules_.intern({});
  for (std::size_t i = 1; i < rules.size() / 2; ++i) {
    require(rules[2 * i] < labels.size() && rules[2 * i + 1] < yields_.size(),
            "a rule has a label or a right-hand side that is out of range");
    require(rules_.intern(rules.subspan(2 * i, 2)) == i, "a rule occurs twice");
  }
  const auto width = [](const BackoffTable& table) { return table.shape().widths.front(); };
  require(!nonterminal_->shape().sequence && (width(*nonterminal_) == 3 || width(*nonterminal_) == 1),
          "the table of phrases has the wrong columns");
  require(!terminal_->shape().sequence && (width(*terminal_) == 5 || width(*terminal_) == 3 || width(*terminal_) == 1),
          "the table of words has the wrong columns");
}

std::uint32_t TreeletModel::label(std::string_view text) const {
  const std::uint32_t found = labels_.find(text);
  return found == none || found < EventExtractor::reserved_labels ? none : found;
}

namespace {

// Scores the distinct subtrees of a sentence's trees, each when it is first seen.
class SentenceScorer : public SharedNodeVisitor {
 public:
  SentenceScorer(const TreeletModel& model, SharedTrees& trees) : model_(model), trees_(trees) {}

  void begin() {
    nodes_.clear();
    children_.clear();
    events_.clear();
    event_value_.clear();
    label_of_.clear();
    trees_.encode_words(model_.encoder(), words_);
  }

  void visit(const SharedNode& shared) override {
    Node node;
    node.label = label(shared.label, shared.position != none);
    node.position = shared.position;
    if (shared.position == none) {
      node.first = children_.size();
      children_.insert(children_.end(), shared.children.begin(), shared.children.end());
      node.last = children_.size();
      labels_.clear();
      bool known = true;
      for (const std::uint32_t child : shared.children) {
        labels_.push_back(nodes_[child].label);
        known = known && labels_.back() != none;
      }
      node.yield = known ? model_.yield(labels_) : none;
      node.rule = model_.rule(node.label, node.yield);
      node.inside = inside(node);
    }
    nodes_.push_back(node);
  }

  // ln p of the tree whose topmost node this is.
  double total(std::uint32_t root) { return phrase(root, EventExtractor::no_parent, 0) + nodes_[root].inside; }

  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::uint32_t label = none, yield = none, rule = none;
    std::uint32_t position = none;
    std::size_t first = 0, last = 0;  // in children_
    double inside = 0;                // ln p of everything below, given the node and what it consists of
    double log_base = std::numeric_limits<double>::quiet_NaN();  // of the right-hand side, once it is needed
  };

  std::uint32_t label(std::uint32_t shared, bool tag) {
    const std::size_t at = 2 * std::size_t{shared} + (tag ? 1 : 0);
    if (at >= label_of_.size()) label_of_.resize(at + 1, not_looked_up);
    if (label_of_[at] == not_looked_up) {
      trees_.render(shared, text_);
      label_of_[at] = tag ? model_.tag(text_) : model_.label(text_);
    }
    return label_of_[at];
  }

  double inside(const Node& node) {
    double sum = 0;
    for (std::size_t at = node.first; at < node.last; ++at) {
      const Node& child = nodes_[children_[at]];
      if (child.position == none) {
        sum += phrase(children_[at], node.label, node.rule) + child.inside;
      } else {
        const std::uint32_t right =
            at + 1 < node.last ? nodes_[children_[at + 1]].label : std::uint32_t{EventExtractor::no_sibling};
        sum += word(child, right, node.rule);
      }
    }
    return sum;
  }

  // ln p of an event, looked up once; `compute` gives it.
  template <class Compute>
  double cached(std::span<const std::uint32_t> event, Compute compute) {
    const std::uint32_t id = events_.intern(event);
    if (id == event_value_.size()) event_value_.push_back(compute());
    return event_value_[id];
  }

  double phrase(std::uint32_t id, std::uint32_t parent, std::uint32_t parent_rule) {
    Node& node = nodes_[id];
    const std::uint32_t row[] = {node.yield, node.label, parent, parent_rule};
    const auto compute = [&] { return model_.phrase_log_probability(row, [&] { return log_base(node); }); };
    // What was never seen has no id of its own.
    return node.yield == none ? compute() : cached(row, compute);
  }

  double log_base(Node& node) {
    if (std::isnan(node.log_base)) {
      const YieldModel& yields = *model_.base();
      labels_.clear();
      for (std::size_t at = node.first; at < node.last; ++at)
        labels_.push_back(yields.symbol(nodes_[children_[at]].label));
      node.log_base = yields.log_probability(node.label, labels_);
    }
    return node.log_base;
  }

  double word(const Node& node, std::uint32_t right, std::uint32_t rule) {
    const auto before = [&](std::uint32_t back) {
      return back > node.position ? model_.sentence_start() : words_[node.position - back];
    };
    const std::uint32_t row[] = {words_[node.position], node.label, right, rule, before(1), before(2)};
    return cached(row, [&] { return std::log(model_.word_probability(row)); });
  }

  static constexpr std::uint32_t not_looked_up = none - 1;

  const TreeletModel& model_;
  SharedTrees& trees_;
  std::vector<std::uint32_t> words_, label_of_, labels_, children_;
  std::vector<Node> nodes_;
  IdSequences events_;
  std::vector<double> event_value_;
  std::string text_;
};

}  // namespace

ListScores score_treelets(const TreeletModel& model, const PackedTrees& trees, std::span<const std::uint64_t> starts,
                          bool transform, std::size_t threads) {
  TreeRecipe recipe = model.recipe();
  if (!transform) recipe.treelet = 0;
  return score_lists<SentenceScorer>(model, recipe, trees, starts, threads);
}

}  // namespace treelm
