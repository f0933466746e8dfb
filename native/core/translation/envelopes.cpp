#include "translation/envelopes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"

namespace treelm {

namespace {

constexpr std::size_t groups_a_poll = 256;

class Envelopes {
 public:
  Envelopes(std::span<const double> offset, std::span<const double> slope) : offset_(offset), slope_(slope) {}

  void add(std::int64_t begin, std::int64_t end, EnvelopeBends& bends) {
    const auto [least, most] = slopes_between(begin, end);
    std::int64_t flattest = -1, steepest = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      if (slope(i) == least && (flattest < 0 || offset(i) > offset(flattest))) flattest = i;
      if (slope(i) == most && (steepest < 0 || offset(i) > offset(steepest))) steepest = i;
    }
    if (flattest < 0 || steepest < 0) throw Error(ErrorCode::not_a_number, "the score of a hypothesis is not a number");
    bends.first.push_back(flattest);
    if (!(most > least)) return;
    lines_.clear();
    open_.clear();
    const Meeting meeting = meet(flattest, steepest);
    for (std::int64_t i = begin; i < end; ++i) look_at(i, meeting);
    divide({flattest, steepest, 0, 0}, meeting, bends);
    while (!open_.empty()) {
      const Between between = open_.back();
      open_.pop_back();
      const Meeting next = meet(between.left, between.right);
      for (std::size_t i = between.begin; i < between.end; ++i) look_at(lines_[i], next);
      divide(between, next, bends);
    }
  }

 private:
  // Two lines of an envelope, and those that may be part of it between them.
  struct Between {
    std::int64_t left, right;
    std::size_t begin, end;
  };

  double offset(std::int64_t line) const { return offset_[static_cast<std::size_t>(line)]; }
  double slope(std::int64_t line) const { return slope_[static_cast<std::size_t>(line)]; }

  // Where two lines meet, how high, and the slopes that lines between them have.
  struct Meeting {
    double place, height, least, most;
  };

  // The smallest and the largest slope; four of each at a time, so that none waits for the one before.
  std::pair<double, double> slopes_between(std::int64_t begin, std::int64_t end) const {
    std::array<double, 4> least, most;
    least.fill(slope(begin));
    most.fill(slope(begin));
    std::int64_t i = begin;
    for (; i + 4 <= end; i += 4)
      for (std::int64_t k = 0; k < 4; ++k) {
        const double own = slope(i + k);
        const auto at = static_cast<std::size_t>(k);
        least[at] = own < least[at] ? own : least[at];
        most[at] = own > most[at] ? own : most[at];
      }
    for (; i < end; ++i) {
      least[0] = std::min(least[0], slope(i));
      most[0] = std::max(most[0], slope(i));
    }
    return {*std::min_element(least.begin(), least.end()), *std::max_element(most.begin(), most.end())};
  }

  Meeting meet(std::int64_t left, std::int64_t right) {
    above_.clear();
    middle_ = -1;
    const double place = (offset(left) - offset(right)) / (slope(right) - slope(left));
    highest_ = offset(left) + slope(left) * place;
    return {place, highest_, slope(left), slope(right)};
  }

  // A line is part of the envelope only if it is above the place where the two outer ones meet; the highest is.
  void look_at(std::int64_t line, const Meeting& meeting) {
    const double height = offset(line) + slope(line) * meeting.place;
    // In exact arithmetic the slopes need no look; rounding might let the outer lines come back.
    if (!(height > meeting.height) || !(slope(line) > meeting.least) || !(slope(line) < meeting.most)) return;
    above_.push_back(line);
    if (height > highest_) {
      highest_ = height;
      middle_ = line;
    }
  }

  // The highest line divides what is left; most lines are below, and never looked at again.
  void divide(const Between& between, const Meeting& meeting, EnvelopeBends& bends) {
    if (middle_ < 0) {
      bends.place.push_back(meeting.place);
      bends.before.push_back(between.left);
      bends.after.push_back(between.right);
      return;
    }
    lines_.resize(between.begin);  // what lies behind has been looked at
    for (const std::int64_t line : above_)
      if (slope(line) < slope(middle_)) lines_.push_back(line);
    const std::size_t flatter = lines_.size();
    for (const std::int64_t line : above_)
      if (slope(line) > slope(middle_)) lines_.push_back(line);
    open_.push_back({between.left, middle_, between.begin, flatter});
    open_.push_back({middle_, between.right, flatter, lines_.size()});
  }

  std::span<const double> offset_, slope_;
  std::vector<std::int64_t> lines_, above_;
  std::int64_t middle_ = -1;  // the highest of those above, if there are any
  double highest_ = 0;
  std::vector<Between> open_;
};

}  // namespace

EnvelopeBends upper_envelopes(std::span<const double> offset, std::span<const double> slope,
                              std::span<const std::int64_t> starts) {
  if (offset.size() != slope.size() || starts.empty() || starts.front() != 0 ||
      starts.back() != static_cast<std::int64_t>(offset.size()))
    throw Error(ErrorCode::argument, "groups do not cover the lines");
  EnvelopeBends bends;
  bends.first.reserve(starts.size() - 1);
  Envelopes envelopes(offset, slope);
  for (std::size_t group = 0; group + 1 < starts.size(); ++group) {
    if (group % groups_a_poll == 0) poll_interrupt();
    if (starts[group] < 0 || starts[group] >= starts[group + 1] || starts[group + 1] > starts.back())
      throw Error(ErrorCode::argument, "a group has no lines");
    envelopes.add(starts[group], starts[group + 1], bends);
  }
  return bends;
}

}  // namespace treelm
