#include "slm/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/interrupt.h"

namespace treelm {

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();
// Contexts whose moves are remembered before all are forgotten.
constexpr std::size_t most_move_contexts = 1 << 15;

double log_sum(double larger, double smaller) {
  if (larger < smaller) std::swap(larger, smaller);
  return larger == never ? never : larger + std::log1p(std::exp(smaller - larger));
}

bool likelier(const Choice& one, const Choice& two) {
  return one.log_prob != two.log_prob ? one.log_prob > two.log_prob : one.outcome < two.outcome;
}

void check_part(const LatticeModel* part, std::size_t columns, std::size_t outcomes) {
  if (part == nullptr || part->shape().columns() != columns || part->shape().outcomes() != outcomes)
    throw Error(ErrorCode::argument, "the parts of the model do not fit its shape");
}

}  // namespace

SlmSearch::SlmSearch(const SlmShape& shape, SlmParts parts, const SlmOptions& options, std::size_t topics)
    : shape_(shape), parts_(std::move(parts)), options_(options), topics_(topics) {
  shape_.check();
  check_part(parts_.predictor.get(), shape_.predictor_columns() + (topics > 0 ? 1 : 0), shape_.words + 1);
  if (!(options_.threshold >= 0)) throw Error(ErrorCode::argument, "the threshold must not be negative");
  if (!(options_.beam >= 0 && options_.beam < 1)) throw Error(ErrorCode::argument, "the beam must lie between 0 and 1");
  if (shape_.heads == 0) return;
  check_part(parts_.tagger.get(), shape_.tagger_columns(), shape_.tags);
  check_part(parts_.constructor.get(), shape_.constructor_columns(), shape_.moves());
}

const TagList& SlmSearch::tags_of(const SlmBeam& beam, std::uint32_t top, std::uint32_t word, Workspace& work) const {
  work.key.resize(1 + shape_.heads);
  work.key[0] = word;
  for (std::size_t j = 0; j < shape_.heads; ++j, top = beam.heads[top].below) work.key[1 + j] = beam.heads[top].label;
  const auto [place, is_new] = work.tag_contexts.insert(work.key);
  if (!is_new) return work.tag_lists[place];
  work.row.resize(shape_.tags);
  parts_.tagger->distribution(work.key.data(), work.row.data());
  TagList list;
  for (std::uint32_t tag = 0; tag < shape_.tags; ++tag)
    if (work.row[tag] > 0 && work.row[tag] >= options_.beam) list.push_back({std::log(work.row[tag]), tag});
  std::sort(list.begin(), list.end(), likelier);
  work.tag_lists.push_back(std::move(list));
  return work.tag_lists[place];
}

const MoveList& SlmSearch::moves_of(const SlmBeam& beam, std::uint32_t top, MoveChoice choice, Workspace& work) const {
  const std::size_t heads = shape_.heads;
  work.key.resize(2 * heads + 1);
  for (std::size_t j = 0; j < heads; ++j, top = beam.heads[top].below) {
    work.key[j] = beam.heads[top].label;
    work.key[heads + j] = beam.heads[top].word;
  }
  work.key[2 * heads] = static_cast<std::uint32_t>(choice);
  const auto [place, is_new] = work.move_contexts.insert(work.key);
  if (!is_new) return work.move_lists[place];
  MoveList list;
  if (choice != MoveChoice::null_forced) {
    work.row.resize(shape_.moves());
    parts_.constructor->distribution(work.key.data(), work.row.data());
    double total = 1;
    if (choice != MoveChoice::all) {
      total = 0;
      for (std::uint32_t move = 0; move < shape_.moves(); ++move)
        if (is_open(shape_, choice, move)) total += work.row[move];
    }
    list.null_log_prob = total > 0 ? std::log(work.row[SlmShape::null_move] / total) : never;
    for (std::uint32_t move = 1; move < shape_.moves() && total > 0; ++move) {
      const double prob = work.row[move] / total;
      if (prob > 0 && prob >= options_.beam && is_open(shape_, choice, move))
        list.moves.push_back({std::log(prob), move});
    }
    std::sort(list.moves.begin(), list.moves.end(), likelier);
  }
  work.move_lists.push_back(std::move(list));
  return work.move_lists[place];
}

void SlmSearch::prune(std::vector<Candidate>& stack, const SlmBeam& beam, Workspace& work, bool keep) const {
  const auto same_heads = [&](const Candidate& one, const Candidate& two) {
    return one.word == two.word && one.label == two.label && one.unaries == two.unaries && one.depth == two.depth &&
           compare_heads(beam.heads, one.below, two.below) == 0;
  };
  const auto tie = [&](const Candidate& one, const Candidate& two) {
    if (keep) {
      actions_before(beam.actions, one.actions, work.path);
      actions_before(beam.actions, two.actions, work.other_path);
      work.path.push_back(one.action);
      work.other_path.push_back(two.action);
      return work.path < work.other_path;
    }
    if (one.word != two.word) return one.word < two.word;
    if (one.label != two.label) return one.label < two.label;
    const int order = compare_heads(beam.heads, one.below, two.below);
    return order != 0 ? order < 0 : one.unaries < two.unaries;
  };
  const auto better = [&](const Candidate& one, const Candidate& two) {
    return one.score != two.score ? one.score > two.score : tie(one, two);
  };
  const auto drop_below_best = [&] {
    double best = never;
    for (const Candidate& each : stack) best = std::max(best, each.score);
    std::erase_if(stack, [&](const Candidate& each) { return each.score < best - options_.threshold; });
  };
  drop_below_best();
  if (options_.merge && !keep && stack.size() > 1) {
    std::sort(stack.begin(), stack.end(), [&](const Candidate& one, const Candidate& two) {
      return one.hash != two.hash ? one.hash < two.hash : better(one, two);
    });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < stack.size(); ++i) {
      if (stack[kept].hash == stack[i].hash && same_heads(stack[kept], stack[i]))
        stack[kept].score = log_sum(stack[kept].score, stack[i].score);
      else
        stack[++kept] = stack[i];
    }
    stack.resize(kept + 1);
    drop_below_best();
  }
  if (options_.stack_size > 0 && stack.size() > options_.stack_size) {
    const auto last = stack.begin() + static_cast<std::ptrdiff_t>(options_.stack_size);
    std::nth_element(stack.begin(), last, stack.end(), better);
    stack.erase(last, stack.end());
  }
  std::sort(stack.begin(), stack.end(), better);
}

void SlmSearch::tag_word(const SlmBeam& beam, std::uint32_t word, Workspace& work) const {
  work.tag_contexts.clear(1 + shape_.heads);
  work.tag_lists.clear();
  const std::size_t stacks = beam.hypotheses.empty() ? 0 : beam.hypotheses.back().moves + 1;
  if (work.stacks.size() < stacks + 1) work.stacks.resize(stacks + 1);
  for (std::size_t i = 0; i < beam.hypotheses.size(); ++i) {
    poll_interrupt();
    const SlmHypothesis& hypothesis = beam.hypotheses[i];
    const double prob = work.frontier_probs[work.context_of[i]];
    if (!(prob > 0)) continue;
    const double score = hypothesis.score + std::log(prob);
    const std::uint64_t hash = beam.heads[hypothesis.top].hash;
    for (const Choice& tag : tags_of(beam, hypothesis.top, word, work))
      work.stacks[hypothesis.moves].push_back({score + tag.log_prob, head_hash(hash, word, tag.outcome), hypothesis.top,
                                               word, tag.outcome, hypothesis.depth + 1, hypothesis.actions, tag.outcome,
                                               0});
  }
}

void SlmSearch::construct(SlmBeam& beam, Workspace& work, bool keep) const {
  if (work.move_contexts.size() > most_move_contexts || work.move_lists.empty()) {
    work.move_contexts.clear(2 * shape_.heads + 1);
    work.move_lists.clear();
  }
  beam.hypotheses.clear();
  for (std::uint32_t moves = 0; moves < work.stacks.size(); ++moves) {
    if (work.stacks[moves].empty()) continue;
    if (moves + 1 == work.stacks.size()) work.stacks.emplace_back();
    std::vector<Candidate>&stack = work.stacks[moves], &next = work.stacks[moves + 1];
    prune(stack, beam, work, keep);
    double bound = never;
    for (const Candidate& each : next) bound = std::max(bound, each.score - options_.threshold);
    const std::size_t first = beam.hypotheses.size();
    for (const Candidate& each : stack) {
      poll_interrupt();
      const auto top = static_cast<std::uint32_t>(beam.heads.size());
      beam.heads.push_back(
          {each.below, each.word, each.label, head_hash(beam.heads[each.below].hash, each.word, each.label)});
      std::uint32_t actions = 0;
      const auto remember = [&](std::uint32_t before, std::uint32_t action) {
        beam.actions.push_back({before, action});
        return static_cast<std::uint32_t>(beam.actions.size() - 1);
      };
      if (keep) actions = remember(each.actions, each.action);
      const MoveList& list = moves_of(beam, top, move_choice(shape_, each.depth, each.unaries), work);
      if (list.null_log_prob > never) {
        const std::uint32_t ended = keep ? remember(actions, SlmShape::null_move) : 0;
        beam.hypotheses.push_back({each.score + list.null_log_prob, top, each.depth, moves, ended});
      }
      const SlmHead left = beam.heads[each.below];
      for (const Choice& choice : list.moves) {
        const double score = each.score + choice.log_prob;
        if (score < bound) break;
        bound = std::max(bound, score - options_.threshold);
        const std::uint32_t label = shape_.label_of(choice.outcome);
        const bool unary = shape_.is_unary(choice.outcome);
        const std::uint32_t below = unary ? each.below : left.below;
        const std::uint32_t word = shape_.is_left(choice.outcome) ? left.word : each.word;
        next.push_back({score, head_hash(beam.heads[below].hash, word, label) + (unary ? each.unaries + 1 : 0), below,
                        word, label, unary ? each.depth : each.depth - 1, actions, choice.outcome,
                        unary ? each.unaries + 1 : 0});
      }
    }
    stack.clear();
    settle(beam, first, work, keep);
  }
}

// Prunes what null led to, which lies from `first` on, and sorts it.
void SlmSearch::settle(SlmBeam& beam, std::size_t first, Workspace& work, bool keep) const {
  const auto begin = beam.hypotheses.begin() + static_cast<std::ptrdiff_t>(first);
  double best = never;
  for (auto each = begin; each != beam.hypotheses.end(); ++each) best = std::max(best, each->score);
  const auto unlikely = [&](const SlmHypothesis& each) { return each.score < best - options_.threshold; };
  beam.hypotheses.erase(std::remove_if(begin, beam.hypotheses.end(), unlikely), beam.hypotheses.end());
  std::sort(begin, beam.hypotheses.end(), [&](const SlmHypothesis& one, const SlmHypothesis& two) {
    if (one.score != two.score) return one.score > two.score;
    return keep ? earlier_actions(beam, one.actions, two.actions, work)
                : compare_heads(beam.heads, one.top, two.top) < 0;
  });
}

bool SlmSearch::earlier_actions(const SlmBeam& beam, std::uint32_t one, std::uint32_t two, Workspace& work) {
  actions_before(beam.actions, one, work.path);
  actions_before(beam.actions, two, work.other_path);
  return work.path < work.other_path;
}

double SlmSearch::advance(SlmBeam& beam, std::uint32_t word, TopicShares mixture, Workspace& work, bool keep) const {
  const double prob = predict_word(beam, word, mixture, false, work);
  extend(beam, word, prob, work, keep);
  return std::min(0.0, std::log(prob));
}

void SlmSearch::extend(SlmBeam& beam, std::uint32_t word, double prob, Workspace& work, bool keep) const {
  poll_interrupt();
  if (shape_.heads > 0) {
    tag_word(beam, word, work);
    construct(beam, work, keep);
    if (!keep) beam.compact();
  } else if (!(prob > 0)) {
    beam.hypotheses.clear();
  } else if (keep) {
    beam.hypotheses.front().score += std::log(prob);
  }
  if (!keep) weigh(beam);
  beam.initial = false;
  if (!beam.words.empty()) {
    std::copy_backward(beam.words.begin(), beam.words.end() - 1, beam.words.end());
    beam.words.front() = word;
  }
}

void SlmSearch::weigh(SlmBeam& beam) {
  double best = never, sum = 0;
  for (const SlmHypothesis& each : beam.hypotheses) best = std::max(best, each.score);
  for (const SlmHypothesis& each : beam.hypotheses) sum += std::exp(each.score - best);
  const double total = best + std::log(sum);
  for (SlmHypothesis& each : beam.hypotheses) each.score = std::min(0.0, each.score - total);
}

}  // namespace treelm
