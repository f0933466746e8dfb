#include "chart/coarse_to_fine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/symbols.h"
#include "chart/sentences.h"

namespace treelm {

namespace {

constexpr double loosening = 4.0;

// Items below this share of a threshold hand no outside scores down: what they would add to others
// is far below the threshold itself.
constexpr double handed_down = 0.03;

void refine(const Survivors& from, const ChartGrammar<float>& next, std::span<const std::uint32_t> parent,
            const ChartGrammar<float>& here, Survivors& out) {
  out.clear();
  for (std::size_t cell = 0; cell + 1 < from.first.size(); ++cell) {
    for (std::uint32_t i = from.first[cell]; i < from.first[cell + 1]; ++i) {
      const std::uint32_t symbol = from.symbol[i];
      for (std::uint32_t x = 0; x < next.count(symbol); ++x)
        out.alive.push_back(from.alive[from.start[i] + parent[next.number(symbol) + x] - here.number(symbol)]);
      out.end_item(symbol);
    }
    out.end_cell();
  }
}

Objective objective_of(Decoding decoding) {
  return decoding == Decoding::max_rule_sum  ? Objective::sum
         : decoding == Decoding::variational ? Objective::variational
                                             : Objective::product;
}

// Whether no chain of unary rules below the root's own is longer than that or repeats a symbol.
bool has_short_chains(const DecodedTree& tree, std::uint32_t max_unary) {
  std::vector<std::uint32_t> chain;
  for (std::uint32_t node = 0; node < tree.symbol.size(); ++node) {
    chain.push_back(tree.symbol[node]);
    if (tree.left[node] != none && tree.right[node] == none) continue;  // its child comes next
    const std::size_t rules = chain.size() - 1 - (chain.size() - 1 == node && node > 0 ? 1 : 0);
    if (rules > max_unary) return false;
    std::sort(chain.begin(), chain.end());
    if (std::adjacent_find(chain.begin(), chain.end()) != chain.end()) return false;
    chain.clear();
  }
  return true;
}

// The only tree of a list in which all symbols are visible.
DecodedTree decoded(const TreeList& list) {
  DecodedTree tree;
  const std::size_t nodes = list.label.size();
  tree.symbol = list.label;
  tree.left.assign(nodes, none);
  tree.right.assign(nodes, none);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (list.size[node] == 1) continue;
    tree.left[node] = node + 1;
    if (list.size[node + 1] + 1 < list.size[node]) tree.right[node] = node + 1 + list.size[node + 1];
  }
  return tree;
}

}  // namespace

ChartParser::ChartParser(std::vector<ParserLevel> levels) : levels_(std::move(levels)) {
  const auto need = [](bool fits, const char* what) {
    if (!fits) throw Error(ErrorCode::argument, what);
  };
  need(!levels_.empty() && levels_.size() <= 64, "a parser needs at least one grammar");
  need(levels_[0].grammar && levels_[0].grammar->is_plain(), "the coarsest grammar has subcategories");
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    need(levels_[i].grammar && levels_[i].lexicon, "a level has no grammar or no lexicon");
    const ChartGrammar<float>& grammar = *levels_[i].grammar;
    const std::vector<std::uint32_t>& counts = levels_[i].lexicon->counts();
    need(counts.size() == grammar.symbols() && levels_[i].lexicon->phrasal() == grammar.phrasal() &&
             levels_[i].lexicon->words() == levels_[0].lexicon->words(),
         "a lexicon and its grammar differ in symbols");
    for (std::uint32_t symbol = 0; symbol < grammar.symbols(); ++symbol)
      need(counts[symbol] == grammar.count(symbol), "a lexicon and its grammar differ in subcategories");
    if (i == 0) continue;
    const ChartGrammar<float>& before = *levels_[i - 1].grammar;
    need(grammar.symbols() == before.symbols() && levels_[i].parent.size() == grammar.numbers(),
         "two levels differ in symbols");
    for (std::uint32_t symbol = 0; symbol < grammar.symbols(); ++symbol)
      for (std::uint32_t n = grammar.number(symbol); n < grammar.number(symbol) + grammar.count(symbol); ++n)
        need(levels_[i].parent[n] >= before.number(symbol) &&
                 levels_[i].parent[n] < before.number(symbol) + before.count(symbol),
             "a subcategory comes from one of another symbol");
  }
}

// Lists trees of the last chart, or finds the best one where its decoder does not look at all chains.
bool ChartParser::list_trees(const ParserOptions& options, std::uint32_t max_unary, Workspace& workspace,
                             Parse& out) const {
  const ChartGrammar<float>& grammar = *levels_.back().grammar;
  const Objective objective = objective_of(options.decoding);
  if (objective == Objective::sum) workspace.decoder.bound(workspace.refined, grammar, objective, max_unary);
  ForestSource* forest = &workspace.max_rule_forest;
  if (options.decoding == Decoding::viterbi) {
    workspace.viterbi_forest.open(workspace.refined, grammar, workspace.viterbi);
    forest = &workspace.viterbi_forest;
  } else {
    workspace.max_rule_forest.open(workspace.refined, grammar, workspace.decoder, objective);
  }
  KBestLimits limits{options.k, max_unary, options.k_max_pops, objective == Objective::sum};
  if (!options.visible.start.empty()) {
    workspace.finder.find(*forest, options.visible, limits, out.list);
    if (out.list.trees() == 0) return false;
    out.score = out.list.score[0];
    return true;
  }
  VisibleLabels all{std::vector<std::uint32_t>(grammar.symbols() + 1), std::vector<std::uint32_t>(grammar.symbols())};
  std::iota(all.start.begin(), all.start.end(), 0u);
  std::iota(all.label.begin(), all.label.end(), 0u);
  limits.trees = 1;
  limits.pops = std::numeric_limits<std::uint64_t>::max();
  TreeList best;
  workspace.finder.find(*forest, all, limits, best);
  if (best.trees() == 0) return false;
  out.score = best.score[0];
  out.tree = decoded(best);
  return true;
}

bool ChartParser::decode(const ParserOptions& options, Workspace& workspace, Parse& out) const {
  const ChartGrammar<float>& grammar = *levels_.back().grammar;
  const bool wants_list = !options.visible.start.empty();
  out.log_prob = workspace.refined.log_prob();
  if (options.decoding == Decoding::none) return true;
  const auto list = [&](std::uint32_t max_unary) { return list_trees(options, max_unary, workspace, out); };
  // Chains longer than asked for are better than no tree.
  const std::uint32_t longest = std::max(options.max_unary, grammar.phrasal());
  if (options.decoding == Decoding::viterbi) {
    if (!workspace.viterbi.decode(workspace.refined, grammar, workspace.words.back(), out.tree)) return false;
    out.score = workspace.viterbi.score();
    if (!wants_list && has_short_chains(out.tree, options.max_unary)) return true;
    return list(options.max_unary) || list(longest);
  }
  workspace.refined.outside(grammar, true);
  if (options.wants_forest) pack_forest(workspace.refined, grammar, options.forest_least, out.forest);
  if (options.decoding == Decoding::max_rule_sum) return list(options.max_unary) || list(longest);
  const Objective objective = objective_of(options.decoding);
  for (const std::uint32_t max_unary : {options.max_unary, longest}) {
    if (!workspace.decoder.decode(workspace.refined, grammar, objective, max_unary, out.tree)) continue;
    out.score = workspace.decoder.score();
    return !wants_list || list(max_unary);
  }
  return false;
}

ChartOutcome ChartParser::attempt(const ParserOptions& options, double shift, Workspace& workspace, Parse& out) const {
  const auto least = [&](std::size_t level) { return static_cast<float>(std::exp(options.thresholds[level] + shift)); };
  const ChartGrammar<float>& coarsest = *levels_[0].grammar;
  PlainChart<float>& plain = workspace.plain;
  ChartOutcome outcome =
      plain.inside(coarsest, workspace.words[0], options.limits, static_cast<float>(std::exp(options.beam + shift)));
  if (outcome != ChartOutcome::parsed) return outcome;
  const std::size_t second = std::min<std::size_t>(1, levels_.size() - 1);
  if (least(0) > 0)
    outcome =
        plain.outside(coarsest, least(0) * static_cast<float>(handed_down),
                      static_cast<float>(std::exp(options.thresholds[0] + shift + options.edges)), options.limits);
  if (outcome != ChartOutcome::parsed) return outcome;
  survivors_of(plain, coarsest, least(0), *levels_[second].grammar, workspace.survivors);
  for (std::size_t level = second; level < levels_.size(); ++level) {
    const ChartGrammar<float>& grammar = *levels_[level].grammar;
    RefinedChart<float>& chart = workspace.refined;
    outcome = chart.inside(grammar, workspace.words[level], workspace.survivors, options.limits);
    const bool is_last = level + 1 == levels_.size();
    if (is_last) {
      if (outcome != ChartOutcome::parsed) return outcome;
      return decode(options, workspace, out) ? ChartOutcome::parsed : ChartOutcome::no_parse;
    }
    const ChartGrammar<float>& next = *levels_[level + 1].grammar;
    if (outcome == ChartOutcome::parsed) {
      if (least(level) > 0) chart.outside(grammar, false);
      chart.prune(grammar, least(level), next, levels_[level + 1].parent, workspace.next);
    } else {
      refine(workspace.survivors, next, levels_[level + 1].parent, grammar, workspace.next);
    }
    std::swap(workspace.survivors, workspace.next);
  }
  return ChartOutcome::no_parse;
}

Parse ChartParser::parse(std::span<const std::uint32_t> words, const ParserOptions& options,
                         Workspace& workspace) const {
  if (options.thresholds.size() != levels_.size()) throw Error(ErrorCode::argument, "every level needs one threshold");
  Parse out;
  workspace.words.resize(levels_.size());
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    workspace.words[level].resize(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] >= levels_[level].lexicon->words()) throw Error(ErrorCode::argument, "a word id is out of range");
      levels_[level].lexicon->look_up(words[i], workspace.words[level][i]);
    }
  }
  if (words.empty()) return out;
  constexpr double without = -std::numeric_limits<double>::infinity();
  const std::pair<double, ParseStatus> attempts[] = {
      {0.0, ParseStatus::parsed}, {-loosening, ParseStatus::loosened}, {without, ParseStatus::unpruned}};
  for (const auto& [shift, status] : attempts) {
    if (attempt(options, shift, workspace, out) != ChartOutcome::parsed) continue;
    out.status = status;
    return out;
  }
  out.tree.clear();
  return out;
}

std::vector<Parse> ChartParser::parse_all(std::span<const std::uint32_t> words, std::span<const std::uint64_t> starts,
                                          const ParserOptions& options, std::size_t threads) const {
  std::vector<Parse> parses(starts.empty() ? 0 : starts.size() - 1);
  ThreadPool pool(threads);
  std::vector<Workspace> workspaces(std::max<std::size_t>(1, pool.size()));
  for_each_sentence(words, starts, pool,
                    [&](std::size_t sentence, std::span<const std::uint32_t> own, std::size_t worker) {
                      parses[sentence] = parse(own, options, workspaces[worker]);
                    });
  return parses;
}

}  // namespace treelm
