#include "trees/fragments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "base/symbols.h"
#include "base/thread_pool.h"

namespace treelm {

namespace {

void need(bool fits, const char* what) {
  if (!fits) throw Error(ErrorCode::argument, what);
}

using Tokens = std::vector<std::int32_t>;

// A fragment as the sampler counts it: what tells it from others, its label, its base probability.
struct Piece {
  std::uint64_t key;
  std::int32_t label;
  double log_base;
};

class Sampler {
 public:
  Sampler(const RuleTrees& trees, std::span<const double> rule_log_probs, std::size_t labels,
          const SamplerOptions& options)
      : trees_(trees),
        rule_log_probs_(rule_log_probs),
        options_(options),
        log_stop_(std::log(options.stop)),
        log_go_(std::log1p(-options.stop)),
        is_site_(trees.rules.size(), 1),
        parents_(trees.rules.size(), -1),
        label_counts_(labels) {
    for (std::size_t node = 0; node < is_site_.size(); ++node) {
      const std::size_t end = node + size_of(node);
      for (std::size_t child = node + 1; child < end; child += size_of(child))
        parents_[child] = static_cast<std::int64_t>(node);
      add(piece_at(node), 1);
    }
  }

  void sweep(std::uint64_t number) {
    for (std::size_t node = 0; node < is_site_.size(); ++node)
      if (parents_[node] >= 0) draw(node, random_uniform(options_.seed, number, node));
  }

  std::map<Tokens, std::uint64_t> fragments() const {
    std::map<Tokens, std::uint64_t> found;
    Tokens tokens;
    for (std::size_t node = 0; node < is_site_.size(); ++node) {
      found.try_emplace(plain_rule(node), 0);
      if (!is_site_[node]) continue;
      tokens.clear();
      walk(node, [&](std::int32_t token) { tokens.push_back(token); });
      ++found[tokens];
    }
    for (auto& [key, count] : found) count = std::max<std::uint64_t>(count, 1);
    return found;
  }

 private:
  std::size_t size_of(std::size_t node) const { return static_cast<std::size_t>(trees_.sizes[node]); }

  template <class Visit>
  void walk(std::size_t root, Visit visit) const {
    visit(trees_.rules[root]);
    const std::size_t end = root + size_of(root);
    for (std::size_t node = root + 1; node < end;) {
      visit(is_site_[node] ? frontier : trees_.rules[node]);
      node += is_site_[node] ? size_of(node) : 1;
    }
  }

  Tokens plain_rule(std::size_t node) const {
    Tokens tokens{trees_.rules[node]};
    const std::size_t end = node + size_of(node);
    for (std::size_t child = node + 1; child < end; child += size_of(child)) tokens.push_back(frontier);
    return tokens;
  }

  Piece piece_at(std::size_t root) const {
    std::uint64_t key = 0;
    double log_base = -log_go_;  // the root itself was not asked
    walk(root, [&](std::int32_t token) {
      key = mix64(key ^ static_cast<std::uint32_t>(token));
      log_base += token == frontier ? log_stop_ : log_go_ + rule_log_probs_[static_cast<std::size_t>(token)];
    });
    return {key, trees_.labels[root], log_base};
  }

  void add(const Piece& piece, int change) {
    counts_[piece.key] += change;
    label_counts_[static_cast<std::size_t>(piece.label)] += change;
  }

  // The probability of a fragment after all others, and perhaps one more.
  double chance(const Piece& piece, const Piece* more = nullptr) const {
    const auto found = counts_.find(piece.key);
    double own = found == counts_.end() ? 0.0 : static_cast<double>(found->second);
    double all = static_cast<double>(label_counts_[static_cast<std::size_t>(piece.label)]);
    if (more != nullptr) {
      own += more->key == piece.key;
      all += more->label == piece.label;
    }
    return (own + options_.concentration * std::exp(piece.log_base)) / (all + options_.concentration);
  }

  void draw(std::size_t node, double uniform) {
    auto above = static_cast<std::size_t>(parents_[node]);
    while (!is_site_[above]) above = static_cast<std::size_t>(parents_[above]);
    const bool was_site = is_site_[node] != 0;
    is_site_[node] = 0;
    const Piece joined = piece_at(above);
    is_site_[node] = 1;
    const Piece upper = piece_at(above), lower = piece_at(node);
    if (was_site) {
      add(upper, -1);
      add(lower, -1);
    } else {
      add(joined, -1);
    }
    const double cut = chance(upper) * chance(lower, &upper), whole = chance(joined);
    const bool is_site = uniform * (cut + whole) < cut;
    is_site_[node] = is_site;
    if (is_site) {
      add(upper, 1);
      add(lower, 1);
    } else {
      add(joined, 1);
    }
  }

  RuleTrees trees_;
  std::span<const double> rule_log_probs_;
  SamplerOptions options_;
  double log_stop_, log_go_;
  std::vector<std::uint8_t> is_site_;
  std::vector<std::int64_t> parents_;
  std::vector<std::int64_t> label_counts_;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
};

}  // namespace

void check_rule_trees(const RuleTrees& trees, std::size_t rules, std::size_t labels) {
  const std::size_t nodes = trees.rules.size();
  need(!trees.starts.empty() && trees.starts.front() == 0 && trees.starts.back() == static_cast<std::int64_t>(nodes) &&
           std::is_sorted(trees.starts.begin(), trees.starts.end()) && trees.labels.size() == nodes &&
           trees.sizes.size() == nodes,
       "the nodes of trees do not fit together");
  std::vector<std::int64_t> ends;  // of the nodes around
  for (std::size_t tree = 0; tree + 1 < trees.starts.size(); ++tree) {
    ends.assign(1, trees.starts[tree + 1]);
    for (std::int64_t node = trees.starts[tree]; node < trees.starts[tree + 1]; ++node) {
      const auto at = static_cast<std::size_t>(node);
      need(trees.rules[at] >= -1 && trees.rules[at] < static_cast<std::int64_t>(rules), "a node has no such rule");
      need(trees.labels[at] >= -1 && trees.labels[at] < static_cast<std::int64_t>(labels), "a node has no such label");
      while (ends.size() > 1 && ends.back() == node) ends.pop_back();
      need(trees.sizes[at] >= 1 && node + trees.sizes[at] <= ends.back() &&
               (node != trees.starts[tree] || node + trees.sizes[at] == ends.back()),
           "a node is larger than the subtree around it");
      ends.push_back(node + trees.sizes[at]);
    }
  }
}

Fragments sample_fragments(const RuleTrees& trees, std::span<const double> rule_log_probs, std::size_t labels,
                           const SamplerOptions& options, const ProgressCallback& progress) {
  check_rule_trees(trees, rule_log_probs.size(), labels);
  need(options.concentration > 0 && std::isfinite(options.concentration) && options.stop > 0 && options.stop < 1,
       "the options of the sampler are out of range");
  for (std::size_t node = 0; node < trees.rules.size(); ++node)
    need(trees.rules[node] >= 0 && trees.labels[node] >= 0, "a tree uses an unknown rule");
  for (const double value : rule_log_probs) need(value <= 0, "a log probability is above 0 or NaN");
  Sampler sampler(trees, rule_log_probs, labels, options);
  for (std::uint64_t number = 0; number < options.sweeps; ++number) {
    progress(number, options.sweeps);
    sampler.sweep(number);
  }
  progress(options.sweeps, options.sweeps);
  Fragments fragments;
  for (const auto& [tokens, count] : sampler.fragments()) {
    fragments.tokens.insert(fragments.tokens.end(), tokens.begin(), tokens.end());
    fragments.starts.push_back(static_cast<std::int64_t>(fragments.tokens.size()));
    fragments.counts.push_back(count);
  }
  return fragments;
}

namespace {

std::uint64_t step_key(std::uint32_t state, std::int32_t token) {
  return (std::uint64_t{state} << 32) | static_cast<std::uint32_t>(token);
}

}  // namespace

FragmentCover::FragmentCover(std::span<const std::int64_t> starts, std::span<const std::int32_t> tokens,
                             std::span<const std::uint64_t> counts, std::span<const std::int32_t> rule_labels,
                             std::size_t labels)
    : starts_(starts.begin(), starts.end()),
      tokens_(tokens.begin(), tokens.end()),
      unknown_(labels),
      rules_(rule_labels.size()),
      ends_{-1} {
  need(!starts.empty() && starts.front() == 0 && starts.back() == static_cast<std::int64_t>(tokens.size()) &&
           std::is_sorted(starts.begin(), starts.end()) && counts.size() + 1 == starts.size(),
       "the parts of fragments do not fit together");
  for (const std::int32_t label : rule_labels)
    need(label >= 0 && static_cast<std::size_t>(label) < labels, "a rule has no such label");
  for (const std::int32_t token : tokens)
    need(token >= frontier && token < static_cast<std::int64_t>(rules_), "a fragment has no such rule");
  std::vector<double> totals(labels);
  const auto root = [&](std::size_t f) {
    need(starts[f] < starts[f + 1] && tokens[static_cast<std::size_t>(starts[f])] != frontier,
         "a fragment has no root");
    return static_cast<std::size_t>(rule_labels[static_cast<std::size_t>(tokens[static_cast<std::size_t>(starts[f])])]);
  };
  for (std::size_t f = 0; f < counts.size(); ++f) {
    need(counts[f] > 0, "a fragment has no count");
    totals[root(f)] += static_cast<double>(counts[f]);
  }
  for (std::size_t label = 0; label < labels; ++label) unknown_[label] = -std::log(totals[label] + 1);
  for (std::size_t f = 0; f < counts.size(); ++f) {
    log_probs_.push_back(std::log(static_cast<double>(counts[f]) / totals[root(f)]));
    std::uint32_t state = 0;
    for (auto at = static_cast<std::size_t>(starts[f]); at < static_cast<std::size_t>(starts[f + 1]); ++at) {
      const auto [found, is_new] =
          steps_.try_emplace(step_key(state, tokens[at]), static_cast<std::uint32_t>(ends_.size()));
      if (is_new) ends_.push_back(-1);
      state = found->second;
    }
    need(ends_[state] < 0, "a fragment occurs twice");
    ends_[state] = static_cast<std::int32_t>(f);
  }
}

std::uint32_t FragmentCover::step(std::uint32_t state, std::int32_t token) const {
  const auto found = steps_.find(step_key(state, token));
  return found == steps_.end() ? 0 : found->second;  // nothing leads back to the start
}

// The best way to cut what is below a node, which is the root of a fragment.
struct FragmentCover::Cut {
  double score = -std::numeric_limits<double>::infinity();
  std::int32_t fragment = -1;
};

void FragmentCover::derive_one(const RuleTrees& trees, std::size_t tree, Derivations& out) const {
  const auto first = static_cast<std::size_t>(trees.starts[tree]),
             last = static_cast<std::size_t>(trees.starts[tree + 1]);
  std::vector<Cut> cuts(last - first);
  const auto size_of = [&](std::size_t node) { return static_cast<std::size_t>(trees.sizes[node]); };
  struct Walk {
    std::uint32_t state;
    std::size_t node;
    double score;
  };
  std::vector<Walk> todo;
  for (std::size_t root = last; root-- > first;) {
    Cut& cut = cuts[root - first];
    const std::size_t end = root + size_of(root);
    const std::uint32_t begin = trees.rules[root] < 0 ? 0 : step(0, trees.rules[root]);
    if (begin != 0) todo.push_back({begin, root + 1, 0.0});
    while (!todo.empty()) {
      const Walk walk = todo.back();
      todo.pop_back();
      if (walk.node == end) {
        const std::int32_t fragment = ends_[walk.state];
        if (fragment < 0) continue;
        const double score = walk.score + log_probs_[static_cast<std::size_t>(fragment)];
        if (score > cut.score || (score == cut.score && fragment < cut.fragment)) cut = {score, fragment};
        continue;
      }
      if (const std::uint32_t next = step(walk.state, frontier); next != 0)
        todo.push_back({next, walk.node + size_of(walk.node), walk.score + cuts[walk.node - first].score});
      if (trees.rules[walk.node] >= 0)
        if (const std::uint32_t next = step(walk.state, trees.rules[walk.node]); next != 0)
          todo.push_back({next, walk.node + 1, walk.score});
    }
    if (cut.fragment < 0) {
      cut.score = trees.labels[root] < 0 ? 0.0 : unknown_[static_cast<std::size_t>(trees.labels[root])];
      for (std::size_t child = root + 1; child < end; child += size_of(child)) cut.score += cuts[child - first].score;
    }
  }
  std::vector<std::size_t> roots{first};
  std::vector<std::size_t> ends;  // of the nodes inside a fragment
  for (std::size_t at = 0; first < last && at < roots.size(); ++at) {
    const std::size_t root = roots[at], end = root + size_of(root);
    const std::int32_t fragment = cuts[root - first].fragment;
    const std::int32_t* token =
        fragment < 0 ? nullptr : tokens_.data() + starts_[static_cast<std::size_t>(fragment)] + 1;
    std::int32_t open = 0;
    std::size_t height = 1;
    ends.assign(1, end);
    for (std::size_t node = root + 1; node < end;) {
      while (ends.back() == node) ends.pop_back();
      const bool is_open = token == nullptr || *token++ == frontier;
      if (is_open) {
        roots.push_back(node);
        ++open;
        node += size_of(node);
      } else {
        ends.push_back(node + size_of(node));
        height = std::max(height, ends.size());
        ++node;
      }
    }
    out.fragments.push_back(fragment);
    out.heights.push_back(static_cast<std::int32_t>(height));
    out.open.push_back(open);
  }
  out.starts.push_back(static_cast<std::int64_t>(out.fragments.size()));
}

Derivations FragmentCover::derive(const RuleTrees& trees, std::size_t threads, const ProgressCallback& progress) const {
  check_rule_trees(trees, rules_, unknown_.size());
  constexpr std::size_t piece_size = 256;
  const std::size_t count = trees.starts.size() - 1;
  Derivations all;
  ThreadPool pool(threads);
  const std::size_t stride = piece_size * std::max<std::size_t>(pool.size(), 1);
  for (std::size_t begin = 0; begin < count; begin += stride) {
    progress(begin, count);
    const std::size_t size = std::min(stride, count - begin);
    std::vector<Derivations> found(size);
    pool.map(size, [&](std::size_t index, std::size_t) { derive_one(trees, begin + index, found[index]); });
    for (const Derivations& one : found) {
      all.fragments.insert(all.fragments.end(), one.fragments.begin(), one.fragments.end());
      all.heights.insert(all.heights.end(), one.heights.begin(), one.heights.end());
      all.open.insert(all.open.end(), one.open.begin(), one.open.end());
      all.starts.push_back(static_cast<std::int64_t>(all.fragments.size()));
    }
  }
  progress(count, count);
  return all;
}

}  // namespace treelm
