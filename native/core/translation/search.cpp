#include "translation/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/random.h"

namespace treelm {

namespace {

constexpr double lowest = -std::numeric_limits<double>::infinity();
constexpr std::size_t room_at_least = 256;   // hypotheses beyond those that are kept, before a stack is pruned early
constexpr std::size_t tried_at_once = 4096;  // extensions about which models are asked in batches

}  // namespace

void PhraseSearch::Stack::begin(bool is_last) {
  members.clear();
  hashes.clear();
  places.clear();
  best = cut = lowest;
  last = is_last;
}

PhraseSearch::PhraseSearch(std::shared_ptr<const SearchSetup> setup)
    : setup_(std::move(setup)), order_(setup_->models.size()), memos_(setup_->models.size()) {
  for (const auto& model : setup_->models) readers_.push_back(model->reader());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return readers_[a]->cost() < readers_[b]->cost(); });
  const auto first_of = [&](ModelReader::Cost cost) {
    const auto has = [&](std::size_t model) { return readers_[model]->cost() >= cost; };
    return static_cast<std::size_t>(std::find_if(order_.begin(), order_.end(), has) - order_.begin());
  };
  dear_from_ = first_of(ModelReader::Cost::parse);
  batches_from_ = first_of(ModelReader::Cost::batches);
  may_gain_.assign(order_.size() + 1, false);
  for (std::size_t place = order_.size(); place-- > 0;)
    may_gain_[place] = may_gain_[place + 1] || setup_->weights[setup_->places.models + order_[place]] < 0;
  made_parts_.resize(order_.size());
}

std::string_view PhraseSearch::word(std::uint32_t id) const {
  const Symbols& words = setup_->table->words();
  return id < words.size() ? words[id] : std::string_view(own_words_[id - words.size()]);
}

// -- options ------------------------------------------------------------------------------------

void PhraseSearch::collect_options(std::span<const std::string> source) {
  const PhraseTable& table = *setup_->table;
  length_ = source.size();
  own_words_.clear();
  source_ids_.clear();
  for (const std::string& word : source) {
    std::uint32_t id = table.words().find(word);
    if (id == none) {
      const auto known = std::find(own_words_.begin(), own_words_.end(), word);
      id = table.words().size() + static_cast<std::uint32_t>(known - own_words_.begin());
      if (known == own_words_.end()) own_words_.push_back(word);
    }
    source_ids_.push_back(id);
  }
  for (const auto& reader : readers_) reader->begin(own_words_);

  const std::size_t longest = std::min(setup_->limits.phrase_length, table.longest_source());
  spans_.clear();
  copies_.clear();
  copies_.reserve(length_);  // spans point at them
  own_ids_ = source_ids_;
  span_at_.assign(length_ * longest, none);
  for (std::size_t first = 0; first < length_; ++first)
    for (std::size_t words = 1; words <= longest && first + words <= length_; ++words) {
      poll_interrupt();
      const std::span<const std::uint32_t> phrase(source_ids_.data() + first, words);
      Span span{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first + words), {}};
      if (const std::uint32_t known = table.find(phrase); known != none) {
        span.options = setup_->options->of(known, readers_);
      } else if (words == 1) {
        // Equal words are equal phrases.
        const auto target = static_cast<std::uint32_t>(table.targets()) + source_ids_[first];
        copies_.push_back(setup_->options->copied(target, {own_ids_.data() + first, 1}, readers_));
        span.options = {&copies_.back(), 1};
      }
      if (span.options.empty()) continue;
      span_at_[first * longest + words - 1] = static_cast<std::uint32_t>(spans_.size());
      spans_.push_back(span);
    }
  future_.fill(length_, longest, [&](std::size_t first, std::size_t end) {
    const std::uint32_t at = span_at_[first * longest + (end - first) - 1];
    return at == none ? lowest : spans_[at].options.front().estimate;
  });
}

// -- search -------------------------------------------------------------------------------------

void PhraseSearch::run(std::span<const std::string> source, bool alternatives) {
  if (source.size() > longest_source)
    throw Error(ErrorCode::argument, "the sentence has " + std::to_string(source.size()) + " words; " +
                                         std::to_string(longest_source) + " are the most");
  began_ = std::chrono::steady_clock::now();
  alternatives_ = alternatives;
  relaxed_ = false;
  cut_ = SearchCut::none;
  counts_ = {};
  finals_.clear();
  hypotheses_.clear();
  collect_options(source);
  search(setup_->limits.distortion);
  if (finals_.empty()) {  // words of one option each always lead to the end; this is for what nobody thought of
    relaxed_ = true;
    search(-1);
  }
}

void PhraseSearch::search(std::int64_t distortion) {
  for (PhraseMemo& memo : memos_) memo.clear();
  coverages_.begin(future_);
  hypotheses_.clear();
  parts_.clear();
  finals_.clear();
  while (stacks_.size() < length_ + 1) stacks_.emplace_back();
  for (std::size_t i = 0; i <= length_; ++i) stacks_[i].begin(i == length_);
  for (std::size_t model = 0; model < readers_.size(); ++model) {
    const ModelState state = readers_[model]->initial();
    made_parts_[model] = {state, readers_[model]->key(state), 0};
  }
  insert(stacks_[0], SearchHypothesis{});
  if (setup_->limits.cube)
    search_cubes(distortion);
  else
    search_stacks(distortion);
  finish();
}

// Calls visit(step) for every phrase that a hypothesis may go on with.
template <class Visit>
void PhraseSearch::each_step(std::uint32_t coverage, std::uint32_t end, std::int64_t distortion, const Visit& visit) {
  const std::size_t longest = length_ == 0 ? 0 : span_at_.size() / length_;
  const std::size_t gap = coverages_.first_gap(coverage);
  std::size_t from = gap, to = length_;
  if (distortion >= 0) {
    const auto limit = static_cast<std::size_t>(distortion);
    if (end > limit) from = std::max(from, end - limit);
    to = std::min(to, end + limit + 1);
  }
  for (std::size_t first = from; first < to; ++first) {
    if (coverages_.has(coverage, first)) continue;
    const double jump = -std::abs(static_cast<double>(first) - static_cast<double>(end));
    for (std::size_t words = 1; words <= longest && first + words <= length_; ++words) {
      if (coverages_.has(coverage, first + words - 1)) break;
      // The first gap must be in reach afterwards.
      if (distortion >= 0 && first != gap && static_cast<std::int64_t>(first + words - gap) > distortion) break;
      const std::uint32_t at = span_at_[first * longest + words - 1];
      if (at == none) continue;
      const std::uint32_t made = coverages_.add(coverage, first, first + words);
      visit(Step{&spans_[at], made, setup_->weights[setup_->places.distortion] * jump, coverages_.future(made)});
    }
  }
}

void PhraseSearch::search_stacks(std::int64_t distortion) {
  const bool in_batches = batches_from_ < order_.size();
  for (std::size_t number = 0; number < length_; ++number) {
    prune(stacks_[number]);
    forget_states(number);
    tried_.clear();
    for (const std::uint32_t from : stacks_[number].members) {
      each_step(hypotheses_[from].coverage, hypotheses_[from].end, distortion, [&](const Step& step) {
        poll_interrupt();
        for (const PhraseOption& option : step.span->options) {
          if (in_batches)
            tried_.push_back({from, step, &option});
          else
            extend({from, step, &option});
        }
      });
      if (tried_.size() >= tried_at_once) {
        extend_all(tried_);
        tried_.clear();
      }
      if (out_of_bounds()) break;  // from now on, one hypothesis of each stack
    }
    extend_all(tried_);
  }
}

void PhraseSearch::finish() {
  const auto& places = setup_->places;
  for (const std::uint32_t each : stacks_[length_].members) {
    double score = hypotheses_[each].score;
    for (const std::size_t model : order_)
      score += setup_->weights[places.models + model] *
               readers_[model]->finish(parts_[each * readers_.size() + model].state);
    finals_.push_back({each, score});
  }
  std::sort(finals_.begin(), finals_.end(), [&](const Final& a, const Final& b) {
    return a.score != b.score ? a.score > b.score : before(a.hypothesis, b.hypothesis);
  });
}

// -- extension ----------------------------------------------------------------------------------

double PhraseSearch::reordering_score(std::uint32_t from, std::uint32_t first, std::uint32_t end,
                                      const PhraseOption& option) const {
  const SearchHypothesis& before = hypotheses_[from];
  const std::size_t kind = first == before.end ? 0 : before.option != nullptr && end == before.first ? 1 : 2;
  const double* weights = setup_->weights.data() + setup_->places.reordering;
  double score = 0;
  if (option.row != none) score += weights[kind] * setup_->table->reordering(option.row)[kind];
  if (before.option != nullptr && before.option->row != none)
    score += weights[kind + 3] * setup_->table->reordering(before.option->row)[kind + 3];
  return score;
}

double PhraseSearch::base_score(const Popped& popped) const {
  double score = hypotheses_[popped.from].score + popped.step.jump + popped.option->score;
  if (setup_->table->has_reordering())
    score += reordering_score(popped.from, popped.step.span->first, popped.step.span->end, *popped.option);
  return score;
}

double PhraseSearch::score_by(std::size_t models, const Popped& popped, double cut) {
  double score = base_score(popped);
  for (std::size_t place = 0; place < models; ++place) {
    if (!may_gain_[place] && score + popped.step.future < cut) break;
    score += setup_->weights[setup_->places.models + order_[place]] * read(order_[place], popped)->log_prob;
  }
  return score;
}

void PhraseSearch::extend_all(std::span<const Popped> all) {
  if (batches_from_ < order_.size()) ask_batches(all);
  for (const Popped& each : all) extend(each);
}

void PhraseSearch::ask_batches(std::span<const Popped> all) {
  for (std::size_t place = batches_from_; place < order_.size(); ++place) {
    const std::size_t model = order_[place];
    readings_.clear();
    reading_targets_.clear();
    reading_states_.clear();
    for (const Popped& each : all) {
      const Stack& stack = stacks_[coverages_.count(each.step.coverage)];
      // What the models asked before already rule out needs no answer.
      const double score = score_by(place, each, stack.cut);
      if (!may_gain_[place] && score + each.step.future < stack.cut) continue;
      const ModelState state = parts_[each.from * readers_.size() + model].state;
      if (memos_[model].find(state, each.option->target) != nullptr) continue;
      memos_[model].add(state, each.option->target, {});  // asked once; the answer follows
      readings_.push_back({state, each.option->words});
      reading_targets_.push_back(each.option->target);
      reading_states_.push_back(state);
    }
    readers_[model]->read_many(readings_);
    counts_.model_reads += readings_.size();
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      const PhraseReading& reading = readings_[i];
      *memos_[model].find(reading_states_[i], reading_targets_[i]) = {
          reading.state, readers_[model]->key(reading.state), reading.log_prob};
    }
  }
}

const ModelPart* PhraseSearch::read(std::size_t model, const Popped& popped) {
  const ModelState state = parts_[popped.from * readers_.size() + model].state;
  const PhraseOption& option = *popped.option;
  if (readers_[model]->cost() == ModelReader::Cost::look_up) {  // as quick as remembering
    ++counts_.model_reads;
    return &(answer_ = answer(model, state, option));
  }
  if (const ModelPart* known = memos_[model].find(state, option.target)) {
    ++counts_.model_repeats;
    return known;
  }
  ++counts_.model_reads;
  return memos_[model].add(state, option.target, answer(model, state, option));
}

ModelPart PhraseSearch::answer(std::size_t model, ModelState state, const PhraseOption& option) {
  PhraseReading reading{state, option.words};
  readers_[model]->read(reading);
  return {reading.state, readers_[model]->key(reading.state), reading.log_prob};
}

void PhraseSearch::extend(const Popped& popped) {
  const Step& step = popped.step;
  Stack& stack = stacks_[coverages_.count(step.coverage)];
  double score = base_score(popped);
  // No word is more probable than 1, so that a hypothesis may be lost before any model is asked.
  const auto is_lost = [&](std::size_t place) { return score + step.future < stack.cut && !may_gain_[place]; };
  const bool looks_bad =
      setup_->limits.early_discard && score - popped.option->score + popped.option->estimate + step.future < stack.cut;
  bool lost = looks_bad || is_lost(0);
  for (std::size_t place = 0; place < order_.size() && !lost; ++place) {
    const std::size_t model = order_[place];
    made_parts_[model] = *read(model, popped);
    score += setup_->weights[setup_->places.models + model] * made_parts_[model].log_prob;
    lost = is_lost(place + 1);
  }
  if (lost) {
    ++counts_.discarded;
    return;
  }
  insert(stack, {score, popped.option, step.coverage, step.span->first, step.span->end, popped.from, none});
}

// -- stacks -------------------------------------------------------------------------------------

std::uint64_t PhraseSearch::key_hash(const SearchHypothesis& made) const {
  std::uint64_t hash = mix64(std::uint64_t{made.coverage} << 32 | made.end);
  for (const ModelPart& part : made_parts_) hash = mix64(hash ^ part.key);
  // Its row tells where the last phrase begins, too.
  if (setup_->table->has_reordering() && made.option != nullptr) hash = mix64(hash ^ made.option->row);
  return hash;
}

bool PhraseSearch::same_key(const SearchHypothesis& made, std::uint32_t other) const {
  const SearchHypothesis& known = hypotheses_[other];
  if (known.coverage != made.coverage || known.end != made.end) return false;
  if (setup_->table->has_reordering() && known.option->row != made.option->row) return false;
  const ModelPart* parts = parts_.data() + other * readers_.size();
  for (std::size_t model = 0; model < readers_.size(); ++model)
    if (parts[model].key != made_parts_[model].key) return false;
  return true;
}

std::uint32_t PhraseSearch::append(const SearchHypothesis& made) {
  if (hypotheses_.size() + 1 >= none) throw Error(ErrorCode::too_large, "a search has four billion hypotheses");
  hypotheses_.push_back(made);
  parts_.insert(parts_.end(), made_parts_.begin(), made_parts_.end());
  return static_cast<std::uint32_t>(hypotheses_.size() - 1);
}

void PhraseSearch::insert(Stack& stack, const SearchHypothesis& made) {
  const double worth = made.score + coverages_.future(made.coverage);
  const std::uint64_t hash = key_hash(made);
  const std::uint32_t place = stack.places.find(
      hash, [&](std::uint32_t at) { return stack.hashes[at] == hash && same_key(made, stack.members[at]); });
  if (place == HashedPlaces::none) {
    if (worth < stack.cut) {
      ++counts_.discarded;
      return;
    }
    ++counts_.hypotheses;
    stack.members.push_back(append(made));
    stack.hashes.push_back(hash);
    stack.places.add(static_cast<std::uint32_t>(stack.members.size() - 1),
                     [&](std::uint32_t at) { return stack.hashes[at]; });
  } else {
    ++counts_.recombined;
    const std::uint32_t known = stack.members[place];
    if (!alternatives_ && made.score < hypotheses_[known].score) return;
    const std::uint32_t added = append(made);
    const bool wins = before(added, known);
    SearchHypothesis& winner = hypotheses_[wins ? added : known];
    SearchHypothesis& other = hypotheses_[wins ? known : added];
    if (wins) {
      winner.alternative = known;
      stack.members[place] = added;
    } else {
      other.alternative = winner.alternative;
      winner.alternative = added;
    }
  }
  if (worth > stack.best) {
    stack.best = worth;
    if (!stack.last) stack.cut = std::max(stack.cut, worth + setup_->limits.log_threshold);
  }
  const std::size_t room = std::max(room_at_least, 3 * std::min(setup_->limits.stack_size, std::size_t{1} << 40));
  if (!stack.last && stack.members.size() > setup_->limits.stack_size + room) tighten(stack);
}

bool PhraseSearch::before(std::uint32_t one, std::uint32_t other) const {
  const double a = total(one), b = total(other);
  if (a != b) return a > b;
  const SearchHypothesis& first = hypotheses_[one];
  const SearchHypothesis& second = hypotheses_[other];
  if (first.coverage != second.coverage) return coverages_.less(first.coverage, second.coverage);
  if (first.end != second.end) return first.end < second.end;
  return target_less(one, other);
}

bool PhraseSearch::target_less(std::uint32_t one, std::uint32_t other) const {
  const auto string_of = [&](std::uint32_t hypothesis, std::vector<std::uint32_t>& words) {
    words.clear();  // the last word first
    for (; hypotheses_[hypothesis].option != nullptr; hypothesis = hypotheses_[hypothesis].previous) {
      const auto phrase = hypotheses_[hypothesis].option->words;
      words.insert(words.end(), phrase.rbegin(), phrase.rend());
    }
  };
  string_of(one, one_string_);
  string_of(other, other_string_);
  return std::lexicographical_compare(one_string_.rbegin(), one_string_.rend(), other_string_.rbegin(),
                                      other_string_.rend(),
                                      [&](std::uint32_t a, std::uint32_t b) { return a != b && word(a) < word(b); });
}

// Leaves the best hypotheses, the best first. Nothing comes in afterwards.
void PhraseSearch::prune(Stack& stack) {
  const auto order = [&](std::uint32_t a, std::uint32_t b) { return before(a, b); };
  const double least = stack.best + setup_->limits.log_threshold;
  std::erase_if(stack.members, [&](std::uint32_t each) { return total(each) < least; });
  if (stack.members.size() > setup_->limits.stack_size) {
    const auto keep = stack.members.begin() + static_cast<std::ptrdiff_t>(setup_->limits.stack_size);
    std::nth_element(stack.members.begin(), keep, stack.members.end(), order);
    stack.members.erase(keep, stack.members.end());
  }
  std::sort(stack.members.begin(), stack.members.end(), order);
}

// Prunes a stack that still grows; from then on only what can be among the best comes in.
void PhraseSearch::tighten(Stack& stack) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> both;
  for (std::size_t i = 0; i < stack.members.size(); ++i) both.emplace_back(stack.members[i], stack.hashes[i]);
  const auto keep = both.begin() + static_cast<std::ptrdiff_t>(setup_->limits.stack_size);
  std::nth_element(both.begin(), keep - 1, both.end(),
                   [&](const auto& a, const auto& b) { return before(a.first, b.first); });
  stack.cut = std::max(stack.cut, total((keep - 1)->first));
  stack.members.clear();
  stack.hashes.clear();
  stack.places.clear();
  for (auto each = both.begin(); each != keep; ++each) {
    stack.places.find(each->second, [](std::uint32_t) { return false; });
    stack.members.push_back(each->first);
    stack.hashes.push_back(each->second);
    stack.places.add(static_cast<std::uint32_t>(stack.members.size() - 1),
                     [&](std::uint32_t at) { return stack.hashes[at]; });
  }
}

// -- bounds -------------------------------------------------------------------------------------

void PhraseSearch::forget_states(std::size_t stack) {
  for (std::size_t model = 0; model < readers_.size(); ++model) {
    if (!readers_[model]->needs_room()) continue;
    live_.clear();
    // Cubes go back to stacks as far as the longest phrase.
    const std::size_t longest = length_ == 0 ? 0 : span_at_.size() / length_;
    for (std::size_t i = setup_->limits.cube && stack > longest ? stack - longest
                         : setup_->limits.cube                  ? 0
                                                                : stack;
         i <= length_; ++i)
      for (const std::uint32_t each : stacks_[i].members) live_.push_back(parts_[each * readers_.size() + model].state);
    readers_[model]->keep_only(live_);
    memos_[model].clear();
  }
}

std::size_t PhraseSearch::bytes() const {
  std::size_t sum = hypotheses_.size() * sizeof(SearchHypothesis) + parts_.size() * sizeof(ModelPart) +
                    tried_.size() * sizeof(Popped) + coverages_.bytes();
  for (const PhraseMemo& memo : memos_) sum += memo.bytes();
  for (const auto& reader : readers_) sum += reader->bytes();
  return sum;
}

bool PhraseSearch::out_of_bounds() {
  if (cut_ != SearchCut::none) return true;
  const SearchLimits& limits = setup_->limits;
  if (limits.bytes != 0 && bytes() > limits.bytes) cut_ = SearchCut::memory;
  if (limits.seconds > 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
    if (took.count() > limits.seconds) cut_ = SearchCut::time;
  }
  return cut_ != SearchCut::none;
}

// -- cubes --------------------------------------------------------------------------------------

void PhraseSearch::search_cubes(std::int64_t distortion) {
  edges_.resize(length_ + 1);
  grouped_.resize(length_ + 1);
  for (auto& edges : edges_) edges.clear();
  for (std::size_t number = 0; number <= length_; ++number) {
    Stack& stack = stacks_[number];
    if (number > 0) fill_by_cubes(number);
    if (number == length_) return;
    prune(stack);
    forget_states(number);
    // Hypotheses that can be extended in the same ways stand together.
    std::vector<std::uint32_t>& grouped = grouped_[number];
    grouped = stack.members;
    const auto place_of = [&](std::uint32_t each) {
      return std::pair(hypotheses_[each].coverage, hypotheses_[each].end);
    };
    std::stable_sort(grouped.begin(), grouped.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return place_of(a) < place_of(b); });
    for (std::size_t from = 0; from < grouped.size();) {
      std::size_t to = from + 1;
      while (to < grouped.size() && place_of(grouped[to]) == place_of(grouped[from])) ++to;
      const auto [coverage, end] = place_of(grouped[from]);
      const std::span<const std::uint32_t> rows(grouped.data() + from, to - from);
      each_step(coverage, end, distortion, [&](const Step& step) {
        poll_interrupt();
        edges_[coverages_.count(step.coverage)].push_back({step, rows});
      });
      from = to;
    }
  }
}

void PhraseSearch::fill_by_cubes(std::size_t target) {
  constexpr std::size_t batch = 64;
  const SearchLimits& limits = setup_->limits;
  const Stack& stack = stacks_[target];
  const std::vector<Edge>& edges = edges_[target];
  const auto worse = [](const Cell& a, const Cell& b) {
    if (a.estimate != b.estimate) return a.estimate < b.estimate;
    return std::tie(a.edge, a.row, a.column) > std::tie(b.edge, b.row, b.column);
  };
  cells_.clear();
  const auto push = [&](const Cell& cell) {
    cells_.push_back(cell);
    std::push_heap(cells_.begin(), cells_.end(), worse);
  };
  const auto push_new = [&](std::uint32_t number, std::uint32_t row, std::uint32_t column) {
    const Edge& edge = edges[number];
    if (row >= edge.rows.size() || column >= edge.step.span->options.size()) return;
    const double estimate = hypotheses_[edge.rows[row]].score + edge.step.jump +
                            edge.step.span->options[column].estimate + edge.step.future;
    push({estimate, number, row, column, false});
  };
  for (std::uint32_t number = 0; number < edges.size(); ++number) push_new(number, 0, 0);
  pops_of_.assign(pops_of_.size(), 0);
  tried_.clear();
  std::size_t pops = 0;
  while (!cells_.empty()) {
    poll_interrupt();
    std::pop_heap(cells_.begin(), cells_.end(), worse);
    Cell cell = cells_.back();
    cells_.pop_back();
    const Edge& edge = edges[cell.edge];
    if (edge.step.coverage >= pops_of_.size()) pops_of_.resize(edge.step.coverage + 1, 0);
    std::uint32_t& of_coverage = pops_of_[edge.step.coverage];
    const std::size_t limit = cut_ == SearchCut::none ? limits.pop_limit : 1;
    // Beyond the limit only coverages that would come off badly get cells.
    if (pops >= limit && (cut_ != SearchCut::none || of_coverage >= limits.coverage_pops)) continue;
    const PhraseOption& option = edge.step.span->options[cell.column];
    const Popped popped{edge.rows[cell.row], edge.step, &option};
    if (!cell.read) {
      // Every cell has one way to it, so that none comes twice.
      push_new(cell.edge, cell.row, cell.column + 1);
      if (cell.column == 0) push_new(cell.edge, cell.row + 1, 0);
    }
    if (!cell.read && dear_from_ < order_.size()) {
      // Slow models are asked about what is still among the best once the quick ones have been.
      const double score = score_by(dear_from_, popped, stack.cut) + edge.step.future;
      if (score < stack.cut && !may_gain_[dear_from_]) {
        ++counts_.discarded;
      } else {
        cell.estimate = score + option.dear;
        cell.read = true;
        push(cell);
      }
      continue;
    }
    ++pops;
    ++of_coverage;
    tried_.push_back(popped);
    if (tried_.size() == batch) {
      extend_all(tried_);
      tried_.clear();
      out_of_bounds();
    }
  }
  extend_all(tried_);
  tried_.clear();
  counts_.pops += pops;
}

// -- features -----------------------------------------------------------------------------------

void PhraseSearch::add_features(std::uint32_t hypothesis, std::span<double> values) const {
  const SearchHypothesis& each = hypotheses_[hypothesis];
  const SearchHypothesis& before = hypotheses_[each.previous];
  const FeaturePlaces& places = setup_->places;
  const PhraseTable& table = *setup_->table;
  const PhraseOption& option = *each.option;
  if (table.has_reordering()) {
    const std::size_t kind = each.first == before.end                               ? 0
                             : before.option != nullptr && each.end == before.first ? 1
                                                                                    : 2;
    if (option.row != none) values[places.reordering + kind] += table.reordering(option.row)[kind];
    if (before.option != nullptr && before.option->row != none)
      values[places.reordering + kind + 3] += table.reordering(before.option->row)[kind + 3];
  }
  values[places.distortion] -= std::abs(static_cast<double>(each.first) - static_cast<double>(before.end));
  for (std::size_t model = 0; model < readers_.size(); ++model)
    values[places.models + model] += parts_[hypothesis * readers_.size() + model].log_prob;
  values[places.word_penalty] -= static_cast<double>(option.words.size());
  values[places.phrase_penalty] += 1;
  if (option.row == none) {
    values[places.unknown] += unknown_word;
    return;
  }
  const auto scores = table.scores(option.row);
  for (std::size_t i = 0; i < scores.size(); ++i) values[places.scores + i] += scores[i];
}

void PhraseSearch::add_end_features(std::uint32_t hypothesis, std::span<double> values) {
  for (std::size_t model = 0; model < readers_.size(); ++model)
    values[setup_->places.models + model] +=
        readers_[model]->finish(parts_[hypothesis * readers_.size() + model].state);
}

}  // namespace treelm
