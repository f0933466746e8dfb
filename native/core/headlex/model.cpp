#include "headlex/model.h"

#include <cmath>

#include "base/id_sequences.h"
#include "trees/worker.h"

namespace treelm {

using headlex::Kind;
using headlex::Part;

namespace {

constexpr std::string_view reserved_names[] = {"START", "STOP", "<usym>"};

}  // namespace

HeadlexExtractor::HeadlexExtractor(std::shared_ptr<const Profile> profile, std::shared_ptr<const WordEncoder> encoder,
                                   bool training)
    : profile_(std::move(profile)), encoder_(std::move(encoder)), training_(training) {
  for (const std::string_view name : reserved_names) labels_.intern(name);
}

HeadlexExtractor::Rows HeadlexExtractor::read(const PackedTrees& trees, std::span<const std::uint32_t> label_of,
                                              std::uint64_t first_sentence) const {
  Rows rows;
  const std::vector<std::uint32_t> heads = find_heads(trees, *profile_);
  std::vector<std::uint32_t> head_word(trees.label.size()), parts_start;
  std::vector<Part> parts;
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    const std::uint32_t first = trees.start[tree], last = trees.start[tree + 1];
    std::uint32_t position = 0;
    for (std::uint32_t node = first; node < last; ++node)
      if (trees.word[node] != none) {
        const std::string_view text = trees.words[trees.word[node]];
        head_word[node] = training_ ? encoder_->encode_training(text, first_sentence + tree + 1, position)
                                    : encoder_->encode(text, position);
        ++position;
      }
    for (std::uint32_t node = last; node-- > first;) {
      if (trees.word[node] != none) continue;
      std::uint32_t child = node + 1;
      for (std::uint32_t i = 0; i < heads[node]; ++i) child += trees.size[child];
      head_word[node] = head_word[child];
    }
    for (std::uint32_t node = first; node < last; ++node) {
      if (trees.word[node] != none) continue;
      parts.clear();
      for (std::uint32_t child = node + 1, end = node + trees.size[node]; child < end; child += trees.size[child])
        parts.push_back({label_of[trees.label[child]], head_word[child]});
      headlex::each_event(label_of[trees.label[node]], parts, heads[node], node == first, no_word(),
                          [&](Kind kind, const std::uint32_t* row) {
                            rows[kind].insert(rows[kind].end(), row, row + headlex::columns[kind]);
                          });
    }
  }
  return rows;
}

void HeadlexExtractor::extract(std::span<const PackedTrees* const> batches, ThreadPool& pool,
                               std::vector<std::vector<std::uint32_t>>& rows) {
  std::vector<std::vector<std::uint32_t>> label_of(batches.size());
  std::vector<std::uint64_t> first_sentence;
  std::string text;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    for (const LabelParts& parts : batches[b]->labels) {
      text.clear();
      render_label(batches[b]->atoms, parts, text);
      label_of[b].push_back(labels_.intern(text));
      if (label_of[b].back() < headlex::reserved_labels) throw Error(ErrorCode::reserved_symbol, text);
    }
    first_sentence.push_back(sentences_);
    sentences_ += batches[b]->tree_count();
    tokens_ += batches[b]->tokens;
  }
  std::vector<Rows> found(batches.size());
  pool.map(batches.size(),
           [&](std::size_t b, std::size_t) { found[b] = read(*batches[b], label_of[b], first_sentence[b]); });
  for (const Rows& part : found)
    for (std::size_t kind = 0; kind < headlex::kinds; ++kind)
      rows[kind].insert(rows[kind].end(), part[kind].begin(), part[kind].end());
}

HeadlexModel::HeadlexModel(const std::vector<std::string>& labels, std::vector<std::uint8_t> is_child,
                           std::vector<std::shared_ptr<const BackoffTable>> tables,
                           std::shared_ptr<const WordEncoder> encoder, std::shared_ptr<const TreeRecipe> recipe)
    : is_child_(std::move(is_child)),
      tables_(std::move(tables)),
      encoder_(std::move(encoder)),
      recipe_(std::move(recipe)) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::table, what);
  };
  for (const std::string& label : labels) labels_.intern(label);
  require(labels_.size() == labels.size() && labels.size() > headlex::reserved_labels, "a label occurs twice");
  require(is_child_.size() == labels.size(), "every label needs a mark that says whether it is a child");
  require(tables_.size() == headlex::kinds, "a table is missing");
  for (std::size_t kind = 0; kind < headlex::kinds; ++kind)
    require(!tables_[kind]->shape().sequence && tables_[kind]->shape().columns() == headlex::columns[kind],
            "a table has the wrong columns");
  double symbols = 1;  // <usym>
  for (std::size_t label = headlex::reserved_labels; label < is_child_.size(); ++label)
    symbols += is_child_[label] != 0;
  base_[headlex::top_label] = base_[headlex::head_label] = 1 / symbols;
  base_[headlex::modifier] = 1 / (symbols + 1);  // STOP
  base_[headlex::top_word] = base_[headlex::word] = 1 / static_cast<double>(encoder_->size());
}

double HeadlexModel::probability(Kind kind, const std::uint32_t* row) const {
  std::uint32_t copied[8];
  std::copy(row, row + headlex::columns[kind], copied);
  // A label that was never a child is drawn as <usym>.
  const bool is_label = kind == headlex::top_label || kind == headlex::head_label || kind == headlex::modifier;
  if (is_label && row[0] != headlex::after_modifiers && is_child_[row[0]] == 0) copied[0] = headlex::unknown_label;
  return tables_[kind]->probability_from(0, copied, base_[kind]);
}

namespace {

class HeadlexScorer : public SharedNodeVisitor {
 public:
  HeadlexScorer(const HeadlexModel& model, SharedTrees& trees) : model_(model), trees_(trees) {}

  void begin() {
    nodes_.clear();
    label_of_.clear();
    events_.clear();
    event_value_.clear();
    trees_.encode_words(model_.encoder(), words_);
  }

  void visit(const SharedNode& shared) override {
    Node node;
    node.own.label = label(shared.label);
    if (shared.position != none) {
      node.own.word = words_[shared.position];
    } else {
      parts_.clear();
      for (const std::uint32_t child : shared.children) {
        parts_.push_back(nodes_[child].own);
        node.inside += nodes_[child].inside;
      }
      node.own.word = parts_[shared.head].word;
      headlex::each_event(node.own.label, parts_, shared.head, shared.root, model_.no_word(),
                          [&](Kind kind, const std::uint32_t* row) { node.inside += log_probability(kind, row); });
    }
    nodes_.push_back(node);
  }

  double total(std::uint32_t root) const { return nodes_[root].inside; }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Part own{none, none};
    double inside = 0;
  };

  std::uint32_t label(std::uint32_t shared) {
    if (shared >= label_of_.size()) label_of_.resize(shared + 1, none);
    if (label_of_[shared] == none) {
      trees_.render(shared, text_);
      label_of_[shared] = model_.label(text_);
    }
    return label_of_[shared];
  }

  double log_probability(Kind kind, const std::uint32_t* row) {
    // Kinds differ in their number of columns, but for the first two.
    key_.assign(1, kind);
    key_.insert(key_.end(), row, row + headlex::columns[kind]);
    const std::uint32_t id = events_.intern(key_);
    if (id == event_value_.size()) event_value_.push_back(std::log(model_.probability(kind, row)));
    return event_value_[id];
  }

  const HeadlexModel& model_;
  SharedTrees& trees_;
  std::vector<Node> nodes_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> words_, label_of_, key_;
  IdSequences events_;
  std::vector<double> event_value_;
  std::string text_;
};

}  // namespace

ListScores score_headlex(const HeadlexModel& model, const PackedTrees& trees, std::span<const std::uint64_t> starts,
                         std::size_t threads) {
  TreeRecipe recipe = model.recipe();
  recipe.treelet = 0;
  return score_lists<HeadlexScorer>(model, recipe, trees, starts, threads);
}

}  // namespace treelm
