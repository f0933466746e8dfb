#include "event_templates.h"

#include <algorithm>

#include "random.h"

namespace treelm {

namespace {

constexpr std::string_view reserved_names[] = {"<none>", "<top>", "START", "STOP"};
constexpr std::string_view unknown_symbol = "<usym>";
// Words before the open vocabulary's own: unknown, end, start.
constexpr std::string_view reserved_words[] = {"<unk>", "</s>", "<s>"};

std::uint64_t hash_ids(std::span<const std::uint32_t> ids) {
  std::uint64_t hash = mix64(hash_seed() ^ ids.size());
  for (const std::uint32_t id : ids) hash = (hash ^ id) * 0x9E3779B97F4A7C15ull ^ (hash >> 29);
  return mix64(hash);
}

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
  if (wanted.columns.empty()) throw Error(ErrorCode::argument, "a template has an outcome");
  for (const EventColumn& column : wanted.columns)
    if (!has(wanted.site, column.attribute))
      throw Error(ErrorCode::argument, "a template asks for an attribute that its places do not have");
}

std::uint32_t IdSequences::intern(std::span<const std::uint32_t> sequence) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_ids(sequence) & mask;; at = (at + 1) & mask) {
    const std::uint32_t id = slots_[at];
    if (id == none) {
      const std::uint32_t made = size();
      if (made + 1 >= none) throw Error(ErrorCode::too_large, "there are more than four billion distinct rules");
      slots_[at] = made;
      data_.insert(data_.end(), sequence.begin(), sequence.end());
      start_.push_back(data_.size());
      if (2 * std::size_t{made} >= slots_.size()) grow();
      return made;
    }
    const auto found = (*this)[id];
    if (found.size() == sequence.size() && std::equal(found.begin(), found.end(), sequence.begin())) return id;
  }
}

void IdSequences::grow() {
  slots_.assign(2 * slots_.size(), none);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t id = 0; id < size(); ++id) {
    std::size_t at = hash_ids((*this)[id]) & mask;
    while (slots_[at] != none) at = (at + 1) & mask;
    slots_[at] = id;
  }
}

EventExtractor::EventExtractor(std::vector<EventTemplate> templates, std::shared_ptr<const WordEncoder> encoder,
                               bool training)
    : templates_(std::move(templates)), encoder_(std::move(encoder)), training_(training) {
  for (const EventTemplate& wanted : templates_) check_template(wanted);
  for (const std::string_view name : reserved_names) labels_.intern(name);
  if (!encoder_)
    for (const std::string_view word : reserved_words) words_.intern(word);
  rules_.intern({});  // above a root
}

void EventExtractor::begin_batch(const PackedTrees& trees) {
  std::string text;
  label_of_.clear();
  for (const LabelParts& parts : trees.labels) {
    text.clear();
    render_label(trees.atoms, parts, text);
    const std::uint32_t id = labels_.intern(text);
    if (id < reserved_labels || text == unknown_symbol) throw Error(ErrorCode::reserved_symbol, text);
    label_of_.push_back(id);
  }
  if (encoder_) return;
  word_of_.assign(trees.words.size(), none);
}

void EventExtractor::read_tree(const PackedTrees& trees, std::size_t tree) {
  const std::uint32_t first = trees.start[tree], count = trees.start[tree + 1] - first;
  nodes_.assign(count, {});
  sentence_.clear();
  ++sentences_;
  for (std::uint32_t i = 0; i < count; ++i) {
    Node& node = nodes_[i];
    node.label = label_of_[trees.label[first + i]];
    const std::uint32_t word = trees.word[first + i];
    if (word != none) {
      node.position = static_cast<std::uint32_t>(sentence_.size());
      const std::string_view text = trees.words[word];
      std::uint32_t id;
      if (encoder_) {
        id = training_ ? encoder_->encode_training(text, sentences_, node.position)
                       : encoder_->encode(text, node.position);
      } else {
        id = word_of_[word];
        if (id == none) {
          id = word_of_[word] = words_.intern(text);
          if (id == sentence_end() || id == sentence_start()) throw reserved_word_error(text);
        }
      }
      sentence_.push_back(id);
      continue;
    }
    child_labels_.clear();
    std::uint32_t before = none;
    for (std::uint32_t child = i + 1, end = i + trees.size[first + i]; child < end;
         child += trees.size[first + child]) {
      const std::uint32_t label = label_of_[trees.label[first + child]];
      child_labels_.push_back(label);
      nodes_[child].parent = i;
      if (before != none) {
        nodes_[before].right = label;
        nodes_[child].left = child_labels_[child_labels_.size() - 2];
      }
      before = child;
    }
    node.yield = yields_.intern(child_labels_);
    const std::uint32_t rule[] = {node.label, node.yield};
    node.rule = rules_.intern(rule);
  }
  tokens_ += sentence_.size();
}

std::uint32_t EventExtractor::word_at(std::uint32_t position, std::uint32_t back) const {
  if (back > position) return sentence_start();
  const std::uint32_t at = position - back;
  return at < sentence_.size() ? sentence_[at] : sentence_end();
}

// `position`: at a word its place in the sentence, at a child its place below `node`.
std::uint32_t EventExtractor::value(const EventColumn& column, std::uint32_t index, std::uint32_t position) const {
  const Node& node = nodes_[index];
  const auto parent_label = [&](std::uint32_t of) {
    return of == none || nodes_[of].parent == none ? std::uint32_t{no_parent} : nodes_[nodes_[of].parent].label;
  };
  switch (column.attribute) {
    case Attribute::word: return word_at(position, column.back);
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
    case Attribute::parent_rule: return node.parent == none ? 0 : nodes_[node.parent].rule;
  }
  return none;
}

void EventExtractor::extract(const PackedTrees& trees, std::vector<std::vector<std::uint32_t>>& rows) {
  begin_batch(trees);
  for (std::size_t tree = 0; tree < trees.tree_count(); ++tree) {
    read_tree(trees, tree);
    for (std::size_t t = 0; t < templates_.size(); ++t) {
      const EventTemplate& wanted = templates_[t];
      std::vector<std::uint32_t>& out = rows[t];
      const auto add = [&](std::uint32_t node, std::uint32_t position) {
        for (const EventColumn& column : wanted.columns) out.push_back(value(column, node, position));
      };
      if (wanted.site == Site::word) {
        for (std::uint32_t at = 0; at <= sentence_.size(); ++at) add(0, at);
        continue;
      }
      for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
        const bool tag = nodes_[i].position != none;
        if (tag != (wanted.site == Site::tag)) continue;
        if (wanted.site != Site::child) {
          add(i, nodes_[i].position);
          continue;
        }
        const auto children = static_cast<std::uint32_t>(yields_[nodes_[i].yield].size());
        for (std::uint32_t at = 0; at <= children; ++at) add(i, at);
      }
    }
  }
}

}  // namespace treelm
