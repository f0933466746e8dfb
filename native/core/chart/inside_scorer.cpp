#include "chart/inside_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "chart/sentences.h"

namespace treelm {

namespace {

// Bytes of kept cells.
constexpr std::size_t memory_of_a_worker = std::size_t{128} << 20;

// Sentences that share spans go to a worker in a row.
constexpr std::size_t least_in_a_row = 32;

void check_fit(const ChartGrammar<double>& grammar, const ChartLexicon& lexicon) {
  bool fits = lexicon.counts().size() == grammar.symbols() && lexicon.phrasal() == grammar.phrasal();
  for (std::uint32_t symbol = 0; fits && symbol < grammar.symbols(); ++symbol)
    fits = lexicon.counts()[symbol] == grammar.count(symbol);
  if (!fits) throw Error(ErrorCode::argument, "a lexicon and its grammar differ in symbols or subcategories");
}

template <class Chart>
double value_of(ChartOutcome outcome, const Chart& chart) {
  if (outcome == ChartOutcome::parsed) return chart.log_prob();
  return outcome == ChartOutcome::no_parse ? -std::numeric_limits<double>::infinity()
                                           : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

InsideScorer::InsideScorer(std::shared_ptr<const ChartGrammar<double>> grammar,
                           std::shared_ptr<const ChartLexicon> lexicon,
                           std::shared_ptr<const ChartGrammar<double>> plain,
                           std::shared_ptr<const ChartLexicon> plain_lexicon)
    : grammar_(std::move(grammar)),
      plain_(std::move(plain)),
      lexicon_(std::move(lexicon)),
      plain_lexicon_(std::move(plain_lexicon)) {
  if (!grammar_ || !lexicon_) throw Error(ErrorCode::argument, "the grammar or the lexicon is missing");
  if (!plain_ || !plain_lexicon_) plain_ = grammar_, plain_lexicon_ = lexicon_;
  check_fit(*grammar_, *lexicon_);
  check_fit(*plain_, *plain_lexicon_);
  if (!plain_->is_plain() || plain_->symbols() != grammar_->symbols() || lexicon_->words() != plain_lexicon_->words())
    throw Error(ErrorCode::argument, "the plain grammar must be the other one without its subcategories");
}

double InsideScorer::score(std::span<const std::uint32_t> words, const ChartLimits& limits, Workspace& workspace,
                           bool remember) const {
  if (words.empty()) return -std::numeric_limits<double>::infinity();
  SentenceCells<double> plain, refined;
  if (remember) {
    workspace.memory.begin(words, memory_of_a_worker);
    plain = workspace.memory.plain();
    refined = workspace.memory.refined();
  }
  look_up(*plain_lexicon_, words, workspace.plain_words);
  const ChartOutcome outcome = workspace.plain.inside(*plain_, workspace.plain_words, limits, 0, plain);
  if (outcome != ChartOutcome::parsed || grammar_ == plain_) return value_of(outcome, workspace.plain);
  look_up(*lexicon_, words, workspace.words);
  survivors_of(workspace.plain, *plain_, 0.0, *grammar_, workspace.survivors);
  return value_of(workspace.refined.inside(*grammar_, workspace.words, workspace.survivors, limits, refined),
                  workspace.refined);
}

double InsideScorer::fill(std::span<const std::uint32_t> words, const ChartLimits& limits, Workspace& workspace) const {
  if (words.empty()) return -std::numeric_limits<double>::infinity();
  look_up(*plain_lexicon_, words, workspace.plain_words);
  ChartOutcome outcome = workspace.plain.inside(*plain_, workspace.plain_words, limits);
  if (outcome != ChartOutcome::parsed) return value_of(outcome, workspace.plain);
  look_up(*lexicon_, words, workspace.words);
  survivors_of(workspace.plain, *plain_, 0.0, *grammar_, workspace.survivors);
  outcome = workspace.refined.inside(*grammar_, workspace.words, workspace.survivors, limits);
  if (outcome == ChartOutcome::parsed) workspace.refined.outside(*grammar_, true);
  return value_of(outcome, workspace.refined);
}

void InsideScorer::list_items(const Workspace& workspace, std::vector<std::uint32_t>& rows, std::vector<double>& inside,
                              std::vector<double>& expected) const {
  const RefinedChart<double>& chart = workspace.refined;
  constexpr double log_2 = 0.693147180559945309417232121458;
  for (std::size_t last = 1; last <= chart.words(); ++last) {
    for (std::size_t first = 0; first < last; ++first) {
      const std::size_t cell = cell_of(first, last);
      for (std::size_t i = chart.first_item(cell); i < chart.first_item(cell + 1); ++i) {
        const auto& item = chart.item(i);
        for (std::uint32_t x = 0; x < grammar_->count(item.symbol); ++x) {
          const double value = chart.inside_of(item)[x];
          if (value == 0) continue;
          for (const std::size_t part : {first, last, std::size_t{item.symbol}, std::size_t{x}})
            rows.push_back(static_cast<std::uint32_t>(part));
          inside.push_back(std::log(value) + chart.exponent(cell) * log_2);
          expected.push_back(value * chart.outside_of(item)[x]);
        }
      }
    }
  }
}

void InsideScorer::look_up(const ChartLexicon& lexicon, std::span<const std::uint32_t> words,
                           std::vector<TagScores>& out) const {
  out.resize(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] >= lexicon.words()) throw Error(ErrorCode::argument, "a word id is out of range");
    lexicon.look_up(words[i], out[i]);
  }
}

std::vector<double> InsideScorer::score_all(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts,
                                            const ChartLimits& limits, std::size_t threads) const {
  std::vector<double> scores(starts.empty() ? 0 : starts.size() - 1);
  ThreadPool pool(threads);
  std::vector<Workspace> workspaces(std::max<std::size_t>(1, pool.size()));
  const bool remember = share_spans(words, starts);
  const std::size_t in_a_row = remember ? std::max(least_in_a_row, scores.size() / (4 * workspaces.size())) : 1;
  for_each_sentence(
      words, starts, pool,
      [&](std::size_t sentence, std::span<const std::uint32_t> own, std::size_t worker) {
        scores[sentence] = score(own, limits, workspaces[worker], remember);
      },
      in_a_row);
  return scores;
}

}  // namespace treelm
