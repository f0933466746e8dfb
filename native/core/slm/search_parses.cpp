// Complete parses: the best of a sentence, and the probability of a given one.
#include <algorithm>
#include <cmath>

#include "slm/replay.h"
#include "slm/search.h"

namespace treelm {

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

}  // namespace

std::vector<SlmParse> SlmSearch::best_parses(std::span<const std::uint32_t> words, std::size_t count,
                                             TopicShares mixture, Workspace& work) const {
  SlmBeam beam = initial_beam(shape_);
  for (const std::uint32_t word : words) advance(beam, word, mixture, work, true);
  find_frontier(beam, work);
  std::vector<double> ends(work.frontier.size());
  for (std::size_t place = 0; place < ends.size(); ++place)
    ends[place] = std::log(predict(work.frontier.key(place), shape_.end(), mixture, work));
  for (std::size_t i = 0; i < beam.hypotheses.size(); ++i) beam.hypotheses[i].score += ends[work.context_of[i]];
  std::erase_if(beam.hypotheses, [](const SlmHypothesis& each) { return each.score == never; });
  std::sort(beam.hypotheses.begin(), beam.hypotheses.end(), [&](const SlmHypothesis& one, const SlmHypothesis& two) {
    return one.score != two.score ? one.score > two.score : earlier_actions(beam, one.actions, two.actions, work);
  });
  std::vector<SlmParse> parses;
  for (const SlmHypothesis& each : beam.hypotheses) {
    if (parses.size() == count) break;
    actions_before(beam.actions, each.actions, work.path);
    parses.push_back({each.score, {work.path.begin(), work.path.end()}});
  }
  return parses;
}

namespace {

// Adds up the logarithms of the events of a parse.
struct ParseScorer {
  const SlmSearch& search;
  TopicShares mixture;
  SlmSearch::Workspace& work;
  double total = 0;

  void word(std::span<const std::uint32_t> columns, std::uint32_t outcome) {
    total += std::log(search.predict(columns, outcome, mixture, work));
  }
  void tag(std::span<const std::uint32_t> columns, std::uint32_t outcome) {
    total += std::log(search.parts().tagger->prob(columns.data(), outcome));
  }
  void move(std::span<const std::uint32_t> columns, std::uint32_t outcome, MoveChoice choice) {
    const LatticeModel& constructor = *search.parts().constructor;
    const double prob = constructor.prob(columns.data(), outcome);
    if (choice == MoveChoice::all) {
      total += std::log(prob);
      return;
    }
    const SlmShape& shape = search.shape();
    work.row.resize(shape.moves());
    constructor.distribution(columns.data(), work.row.data());
    double open = 0;
    for (std::uint32_t each = 0; each < shape.moves(); ++each)
      if (is_open(shape, choice, each)) open += work.row[each];
    total += open > 0 ? std::log(prob / open) : never;
  }
};

}  // namespace

double SlmSearch::score_parse(std::span<const std::uint32_t> words, std::span<const std::uint16_t> actions,
                              TopicShares mixture, Workspace& work) const {
  ParseScorer scorer{*this, mixture, work};
  replay(shape_, words, actions, scorer);
  return scorer.total;
}

}  // namespace treelm
