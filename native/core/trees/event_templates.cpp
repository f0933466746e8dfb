#include "trees/event_templates.h"

#include <algorithm>

namespace treelm {

namespace {

constexpr std::string_view reserved_names[] = {"<none>", "<top>", "START", "STOP"};
constexpr std::string_view unknown_symbol = "<usym>";
// Words before the open vocabulary's own: unknown, end, start.
constexpr std::string_view reserved_words[] = {"<unk>", "</s>", "<s>"};

bool has(Site site, Attribute attribute) {
  switch (attribute) {
    case Attribute::word: return site == Site::word || site == Site::tag;
    case Attribute::symbol: return site == Site::child;
    case Attribute::yield:
    case Attribute::rule: return site == Site::phrase || site == Site::child;
    default: return site != Site::word;
  }
}

}  // namespace

void check_template(const EventTemplate& wanted) {
  if (wanted.columns.empty()) throw Error(ErrorCode::argument, "a template needs an outcome");
  for (const EventColumn& column : wanted.columns)
    if (!has(wanted.site, column.attribute))
      throw Error(ErrorCode::argument, "a template asks for an attribute that its site does not have");
}

EventExtractor::EventExtractor(std::vector<EventTemplate> templates, std::shared_ptr<const WordEncoder> encoder,
                               bool training, const std::vector<std::string>& marked_tags)
    : templates_(std::move(templates)), encoder_(std::move(encoder)), training_(training) {
  for (const EventTemplate& wanted : templates_) check_template(wanted);
  for (const std::string& tag : marked_tags) marked_tags_.intern(tag);
  for (const std::string_view name : reserved_names) {
    labels_.intern(name);
    label_bases_.emplace_back(name);
  }
  if (!encoder_)
    for (const std::string_view word : reserved_words) words_.intern(word);
  rules_.intern({});  // above a root
}

// Gives the labels of a batch their ids, and its words, where there is no vocabulary.
void EventExtractor::name_symbols(const PackedTrees& trees, Batch& batch) {
  std::string text;
  for (const LabelParts& parts : trees.labels) {
    text.clear();
    render_label(trees.atoms, parts, text);
    const std::uint32_t id = labels_.intern(text);
    if (id < reserved_labels || text == unknown_symbol) throw Error(ErrorCode::reserved_symbol, text);
    if (id == label_bases_.size()) label_bases_.emplace_back(trees.atoms[parts.base]);
    batch.label_of.push_back(id);
    batch.tag_of.push_back(id);
    if (marked_tags_.find(text) == none) continue;
    batch.tag_of.back() = labels_.intern(text.append(tag_mark));
    if (batch.tag_of.back() == label_bases_.size()) label_bases_.emplace_back(trees.atoms[parts.base]);
  }
  batch.first_sentence = sentences_;
  sentences_ += trees.tree_count();
  tokens_ += trees.tokens;
  batch.word_of.assign(trees.words.size(), none);
  if (encoder_) return;
  for (const std::uint32_t word : trees.word) {
    if (word == none || batch.word_of[word] != none) continue;
    batch.word_of[word] = words_.intern(trees.words[word]);
    if (batch.word_of[word] == sentence_end() || batch.word_of[word] == sentence_start())
      throw reserved_word_error(trees.words[word]);
  }
}

void EventExtractor::find_rules(const PackedTrees& trees, Batch& batch) const {
  // Words that are always the same symbol are looked up once.
  if (encoder_)
    for (std::size_t word = 0; word < trees.words.size(); ++word)
      batch.word_of[word] = encoder_->find_settled(trees.words[word], training_);
  batch.content.resize(trees.label.size());
  std::vector<std::uint32_t> rule;
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    std::uint32_t position = 0;
    for (std::uint32_t node = trees.start[tree]; node < trees.start[tree + 1]; ++node) {
      const std::uint32_t word = trees.word[node];
      if (word != none) {
        std::uint32_t id = batch.word_of[word];
        if (id == none) {
          const std::string_view text = trees.words[word];
          id = training_ ? encoder_->encode_training(text, batch.first_sentence + tree + 1, position)
                         : encoder_->encode(text, position);
        }
        batch.content[node] = id;
        ++position;
        continue;
      }
      rule.assign(1, batch.label(trees, node));
      for (std::uint32_t child = node + 1, end = node + trees.size[node]; child < end; child += trees.size[child])
        rule.push_back(batch.label(trees, child));
      batch.content[node] = batch.rules.intern(rule);
      ++batch.phrases;
      batch.children += rule.size() - 1;
    }
  }
}

void EventExtractor::name_rules(Batch& batch) {
  for (std::uint32_t number = 0; number < batch.rules.size(); ++number) {
    const auto rule = batch.rules[number];
    batch.yield_of.push_back(yields_.intern(rule.subspan(1)));
    const std::uint32_t parts[] = {rule[0], batch.yield_of.back()};
    batch.rule_of.push_back(rules_.intern(parts));
  }
}

void EventExtractor::read_tree(const PackedTrees& trees, std::size_t tree, Batch& batch) const {
  const std::uint32_t first = trees.start[tree], count = trees.start[tree + 1] - first;
  batch.nodes.assign(count, {});
  batch.sentence.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    Node& node = batch.nodes[i];
    node.label = batch.label(trees, first + i);
    const std::uint32_t content = batch.content[first + i];
    if (trees.word[first + i] != none) {
      node.position = static_cast<std::uint32_t>(batch.sentence.size());
      batch.sentence.push_back(content);
      continue;
    }
    node.yield = batch.yield_of[content];
    node.rule = batch.rule_of[content];
    const auto labels = batch.rules[content].subspan(1);
    std::uint32_t child = i + 1;
    for (std::size_t at = 0; at < labels.size(); ++at, child += trees.size[first + child]) {
      batch.nodes[child].parent = i;
      if (at > 0) batch.nodes[child].left = labels[at - 1];
      if (at + 1 < labels.size()) batch.nodes[child].right = labels[at + 1];
    }
  }
}

// `position`: at a word its place in the sentence, at a child its place below `node`.
std::uint32_t EventExtractor::value(const EventColumn& column, const Batch& batch, std::uint32_t index,
                                    std::uint32_t position) const {
  const Node& node = batch.nodes[index];
  const auto parent_label = [&](std::uint32_t of) {
    return of == none || batch.nodes[of].parent == none ? std::uint32_t{no_parent}
                                                        : batch.nodes[batch.nodes[of].parent].label;
  };
  switch (column.attribute) {
    case Attribute::word: {
      if (column.back > position) return sentence_start();
      const std::uint32_t at = position - column.back;
      return at < batch.sentence.size() ? batch.sentence[at] : sentence_end();
    }
    case Attribute::symbol: {
      if (column.back > position) return before_children;
      const auto children = yields_[node.yield];
      const std::uint32_t at = position - column.back;
      return at < children.size() ? children[at] : std::uint32_t{after_children};
    }
    case Attribute::label: return node.label;
    case Attribute::parent: return parent_label(index);
    case Attribute::grandparent: return parent_label(node.parent);
    case Attribute::left: return node.left;
    case Attribute::right: return node.right;
    case Attribute::yield: return node.yield;
    case Attribute::rule: return node.rule;
    case Attribute::parent_rule: return node.parent == none ? 0 : batch.nodes[node.parent].rule;
  }
  return none;
}

std::size_t EventExtractor::row_count(const PackedTrees& trees, const Batch& batch, Site site) const {
  switch (site) {
    case Site::word: return trees.tokens + trees.tree_count();
    case Site::tag: return trees.tokens;
    case Site::phrase: return batch.phrases;
    case Site::child: return batch.children + batch.phrases;
  }
  return 0;
}

void EventExtractor::write_rows(const PackedTrees& trees, Batch& batch, std::vector<std::uint32_t*>& places) const {
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    read_tree(trees, tree, batch);
    for (std::size_t t = 0; t < templates_.size(); ++t) {
      const EventTemplate& wanted = templates_[t];
      std::uint32_t*& out = places[t];
      const auto add = [&](std::uint32_t node, std::uint32_t position) {
        for (const EventColumn& column : wanted.columns) *out++ = value(column, batch, node, position);
      };
      if (wanted.site == Site::word) {
        for (std::uint32_t at = 0; at <= batch.sentence.size(); ++at) add(0, at);
        continue;
      }
      for (std::uint32_t i = 0; i < batch.nodes.size(); ++i) {
        const bool tag = batch.nodes[i].position != none;
        if (tag != (wanted.site == Site::tag)) continue;
        if (wanted.site != Site::child) {
          add(i, batch.nodes[i].position);
          continue;
        }
        const auto children = static_cast<std::uint32_t>(yields_[batch.nodes[i].yield].size());
        for (std::uint32_t at = 0; at <= children; ++at) add(i, at);
      }
    }
  }
}

void EventExtractor::extract(const PackedTrees& trees, std::vector<std::vector<std::uint32_t>>& rows) {
  ThreadPool pool(1);
  const PackedTrees* const batch = &trees;
  extract({&batch, 1}, pool, rows);
}

void EventExtractor::extract(std::span<const PackedTrees* const> trees, ThreadPool& pool,
                             std::vector<std::vector<std::uint32_t>>& rows) {
  std::vector<Batch> batches(trees.size());
  for (std::size_t b = 0; b < trees.size(); ++b) name_symbols(*trees[b], batches[b]);
  pool.map(trees.size(), [&](std::size_t b, std::size_t) { find_rules(*trees[b], batches[b]); });
  for (Batch& batch : batches) name_rules(batch);
  std::vector<std::vector<std::size_t>> first(trees.size(), std::vector<std::size_t>(templates_.size()));
  for (std::size_t t = 0; t < templates_.size(); ++t) {
    std::size_t size = rows[t].size();
    for (std::size_t b = 0; b < trees.size(); ++b) {
      first[b][t] = size;
      size += row_count(*trees[b], batches[b], templates_[t].site) * templates_[t].columns.size();
    }
    rows[t].resize(size);
  }
  pool.map(trees.size(), [&](std::size_t b, std::size_t) {
    std::vector<std::uint32_t*> places;
    for (std::size_t t = 0; t < templates_.size(); ++t) places.push_back(rows[t].data() + first[b][t]);
    write_rows(*trees[b], batches[b], places);
  });
}

}  // namespace treelm
