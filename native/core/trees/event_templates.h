// Templates say what is counted over trees; the extractor turns trees into rows of ids.
//
// A template names a kind of place and, for every column, an attribute of that place. Labels, rules
// and right-hand sides get ids by first occurrence over the whole corpus, after a few reserved ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/id_sequences.h"
#include "base/symbols.h"
#include "base/thread_pool.h"
#include "text/word_encoder.h"
#include "trees/packed_trees.h"

namespace treelm {

enum class Site : std::uint8_t {
  word,    // every word of a sentence, and its end
  tag,     // every preterminal
  phrase,  // every other node
  child,   // every child of a phrase, and the STOP behind the last
};

enum class Attribute : std::uint8_t {
  word,         // `back` words before (0: the word here)
  symbol,       // label of the child `back` children before
  label,        // of the node here (site child: of the phrase)
  parent,       // label of its parent
  grandparent,  // label of its parent's parent
  left,         // label of its left sibling
  right,        // label of its right sibling
  yield,        // labels of its children, as one symbol
  rule,         // its label and its yield, as one symbol
  parent_rule,  // the same of its parent
};

struct EventColumn {
  Attribute attribute;
  std::uint32_t back = 0;
};

struct EventTemplate {
  Site site;
  std::vector<EventColumn> columns;  // the outcome first
};

// Throws Error(argument) for a template whose place does not have one of its attributes.
void check_template(const EventTemplate& wanted);

class EventExtractor {
 public:
  // Reserved labels; a corpus that uses one is refused.
  enum ReservedLabel : std::uint32_t { no_sibling, no_parent, before_children, after_children, reserved_labels };

  // Without an encoder every word gets an id of its own. `training`: the trees are those that the
  // encoder's vocabulary was made from.
  // `marked_tags`: labels that are written with ~T behind them where they stand over a word.
  EventExtractor(std::vector<EventTemplate> templates, std::shared_ptr<const WordEncoder> encoder, bool training,
                 const std::vector<std::string>& marked_tags = {});

  // Appends the rows of all trees to rows[t] for every template t.
  void extract(const PackedTrees& trees, std::vector<std::vector<std::uint32_t>>& rows);
  // The same for several batches in order, by the threads of a pool; results do not depend on these.
  void extract(std::span<const PackedTrees* const> batches, ThreadPool& pool,
               std::vector<std::vector<std::uint32_t>>& rows);

  const std::vector<EventTemplate>& templates() const { return templates_; }
  const Symbols& labels() const { return labels_; }
  // Categories of the labels, without what transforms wrote behind them.
  const std::vector<std::string>& label_bases() const { return label_bases_; }
  const Symbols& words() const { return words_; }  // without an encoder
  const IdSequences& yields() const { return yields_; }
  const IdSequences& rules() const { return rules_; }  // (label, yield); rule 0 is that above a root
  std::uint32_t word_count() const { return encoder_ ? encoder_->size() : words_.size(); }
  // Ids of the end and the start of a sentence.
  std::uint32_t sentence_end() const { return encoder_ ? encoder_->size() : 1; }
  std::uint32_t sentence_start() const { return encoder_ ? encoder_->size() + 1 : 2; }
  std::uint64_t sentences() const { return sentences_; }
  std::uint64_t tokens() const { return tokens_; }

 private:
  struct Node {
    std::uint32_t label = none;
    std::uint32_t parent = none;                          // index in the tree
    std::uint32_t left = no_sibling, right = no_sibling;  // labels
    std::uint32_t yield = none, rule = none;
    std::uint32_t position = none;  // of a preterminal among the words
  };
  // What threads find out about one batch before rules have their ids.
  struct Batch {
    std::vector<std::uint32_t> label_of, word_of;  // ids of the batch's labels and words
    std::vector<std::uint32_t> tag_of;             // ids of the labels over words
    std::uint32_t label(const PackedTrees& trees, std::uint32_t node) const {
      return (trees.word[node] == none ? label_of : tag_of)[trees.label[node]];
    }
    std::vector<std::uint32_t> content;            // per node: the word's id, or the number of the rule in `rules`
    IdSequences rules;                             // label, then labels of the children
    std::vector<std::uint32_t> yield_of, rule_of;  // by number of the rule
    std::uint64_t phrases = 0, children = 0;
    std::uint64_t first_sentence = 0;
    // of the tree
    std::vector<Node> nodes;
    std::vector<std::uint32_t> sentence;
  };
  void name_symbols(const PackedTrees& trees, Batch& batch);
  void find_rules(const PackedTrees& trees, Batch& batch) const;
  void name_rules(Batch& batch);
  std::size_t row_count(const PackedTrees& trees, const Batch& batch, Site site) const;
  void write_rows(const PackedTrees& trees, Batch& batch, std::vector<std::uint32_t*>& out) const;
  void read_tree(const PackedTrees& trees, std::size_t tree, Batch& batch) const;
  std::uint32_t value(const EventColumn& column, const Batch& batch, std::uint32_t node, std::uint32_t position) const;

  std::vector<EventTemplate> templates_;
  std::shared_ptr<const WordEncoder> encoder_;
  bool training_;
  Symbols labels_, words_, marked_tags_;
  std::vector<std::string> label_bases_;
  IdSequences yields_, rules_;
  std::uint64_t sentences_ = 0, tokens_ = 0;
};

}  // namespace treelm
