#include "translation/ngram_reader.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "translation/phrase_table.h"

namespace treelm {

namespace {

// Set in the state before the first word, which may have a symbol of its own.
constexpr ModelState at_start = ModelState{1} << 32;

class NgramSearchReader : public ModelReader {
 public:
  NgramSearchReader(const BackoffTable& table, std::shared_ptr<const WordMap> words, const NgramSearchOptions& options)
      : table_(table), words_(std::move(words)), options_(options) {
    const bool has_contexts = table_.shape().widths.front() > 0;
    initial_ = at_start | (has_contexts ? table_.context_after(&options_.start, 1) : empty_context);
  }

  void begin(std::span<const std::string> own_words) override { words_.begin(own_words); }
  Cost cost() const override { return Cost::look_up; }
  ModelState initial() override { return initial_; }

  void read(PhraseReading& phrase) override {
    auto context = static_cast<std::uint32_t>(phrase.state);
    bool first = (phrase.state & at_start) != 0;
    phrase.log_prob = 0;
    for (const std::uint32_t word : phrase.words) {
      phrase.log_prob += read_word(context, words_.id(word, first));
      first = false;
    }
    if (!phrase.words.empty()) phrase.state = context;
  }

  double finish(ModelState state) override {
    auto context = static_cast<std::uint32_t>(state);
    return std::max(log_floor, table_.read_word(context, options_.end));
  }
  std::uint64_t key(ModelState state) override { return state; }

  double estimate(std::span<const std::uint32_t> words) override {
    std::uint32_t context = empty_context;
    double sum = 0;
    for (const std::uint32_t word : words) sum += read_word(context, words_.id(word, false));
    return sum;
  }

 private:
  // Many hypotheses ask about the same words after the same contexts: what was found last stays at hand.
  double read_word(std::uint32_t& context, std::uint32_t word) {
    const std::uint64_t asked = std::uint64_t{context} << 32 | word;
    Answer& answer = answers_[mix64(asked) % answers];
    if (answer.asked != asked || !answer.valid) {
      answer.log_prob = look_up(context, word);
      answer.asked = asked;
      answer.next = context;
      answer.valid = true;
    }
    context = answer.next;
    return answer.log_prob;
  }

  double look_up(std::uint32_t& context, std::uint32_t word) const {
    const std::uint32_t before = context;
    double log_prob = table_.read_word(context, word);
    if (word == WordEncoder::unknown && options_.oov_log_prob && std::isinf(log_prob)) {
      log_prob = *options_.oov_log_prob;
      for (std::uint32_t each = before; each != empty_context; each = table_.shorter_context(each))
        log_prob += std::log(usable_weight(table_.backoff(each)));
    }
    return std::max(log_floor, log_prob);
  }

  struct Answer {
    std::uint64_t asked = 0;
    double log_prob = 0;
    std::uint32_t next = 0;
    bool valid = false;
  };
  static constexpr std::size_t answers = std::size_t{1} << 14;  // few enough for a processor's cache

  const BackoffTable& table_;
  std::vector<Answer> answers_ = std::vector<Answer>(answers);
  SentenceWords words_;
  NgramSearchOptions options_;
  ModelState initial_;
};

}  // namespace

NgramSearchModel::NgramSearchModel(std::shared_ptr<const BackoffTable> table, std::shared_ptr<const WordMap> words,
                                   NgramSearchOptions options)
    : table_(std::move(table)), words_(std::move(words)), options_(options) {
  if (!table_->shape().sequence) throw Error(ErrorCode::argument, "the table is not one of word sequences");
  if (std::max(options_.start, options_.end) >= table_->shape().outcomes)
    throw Error(ErrorCode::argument, "the table does not have the boundaries of sentences");
}

std::unique_ptr<ModelReader> NgramSearchModel::reader() const {
  return std::make_unique<NgramSearchReader>(*table_, words_, options_);
}

}  // namespace treelm
