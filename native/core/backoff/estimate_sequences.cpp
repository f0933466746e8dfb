// The estimator of word sequences: depth after depth of a trie (sequence_counts.h), from single words up.
//
// The context of an entry is itself an entry of the depth below, and both of them go on from shorter ones: the entries
// that go on from one are found in order among those that go on from its context. So nothing is sorted by contexts, and
// rows go straight to their places in the table. What an entry needs of its context lies anywhere, and is asked for
// early; all else is read from the first to the last. Every array is let go of as soon as the next depth has what it
// needs of it.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "backoff/context_totals.h"
#include "backoff/estimate.h"
#include "backoff/sequence_counts.h"
#include "base/interrupt.h"
#include "base/kept_blocks.h"
#include "base/prefetch.h"
#include "base/release_pages.h"

namespace treelm {

namespace {

using Ids = LargeVector<std::uint32_t>;

constexpr std::size_t block = 64;  // entries that are looked up side by side

class SequenceEstimator {
 public:
  SequenceEstimator(SequenceCounts counts, const EstimatePlan& plan, const ProgressCallback& progress)
      : counts_(std::move(counts)),
        plan_(plan),
        progress_(progress),
        deepest_(counts_.levels()),
        words_(counts_.words().size()),
        pool_(counts_.threads()),
        builder_(plan.shape, expected_rows(), counts_.threads()),
        depths_(counts_.take_depths()) {
    if (plan.shape.outcomes != words_) throw Error(ErrorCode::argument, "the plan has other outcomes than the counts");
    for (std::size_t j = 0; j < counts_.levels(); ++j) all_ += counts_.size(j);
    all_ *= steps;
  }

  std::shared_ptr<const BackoffTable> run() {
    // What follows the contexts of the depth below, and which of them each entry has.
    Contexts below = whole();
    builder_.set_empty_weight(below.weight(plan_.levels[deepest_ - 1], 0));
    Ids context_of;
    for (std::size_t d = 1; d <= deepest_; ++d) {
      Ids next_context_of;
      Contexts own;
      if (d < deepest_) {
        next_context_of = find_contexts(d + 1, context_of);
        // Their words were needed to find contexts only.
        if (d > 1 && is_last_user(d)) Ids().swap(depths_[d]->words);
        own = follow(d + 1, next_context_of);
      }
      if (d == 1)
        add_words(below, own);
      else
        add_entries(d, context_of, below, own);
      below = std::move(own);
      context_of = std::move(next_context_of);
      depths_[d - 1].reset();
    }
    progress_(all_, all_);
    return builder_.finish();
  }

 private:
  static constexpr std::uint64_t steps = 5;  // that every entry goes through

  // What follows contexts.
  struct Contexts {
    ContextTotals totals;
    LargeVector<PrunedContext> pruned;  // where some entries are left out

    // Whether any entry is kept.
    bool extended(std::size_t g) const { return totals.any(g) && (pruned.empty() || pruned[g].left != 0); }
    double weight(const LevelPlan& plan, std::size_t g) const { return weight(plan, g, totals[g]); }
    double weight(const LevelPlan& plan, std::size_t g, const ContextCounts& counts) const {
      const double of_all = plan.weight(counts);
      return pruned.empty() ? of_all : pruned[g].weight(of_all);
    }
  };

  std::uint64_t expected_rows() const {
    std::uint64_t rows = 0;
    for (std::size_t j = 0; j < counts_.levels(); ++j) rows += counts_.size(j);
    return rows;
  }
  const LevelPlan& plan(std::size_t d) const { return plan_.levels[deepest_ - d]; }
  bool is_last_user(std::size_t d) const { return depths_[d].use_count() == 1; }
  std::size_t entries(std::size_t d) const { return d == 1 ? words_ : depths_[d]->size(); }
  static const std::uint32_t* tokens_of(const SequenceDepth& depth) {
    return depth.tokens.empty() ? nullptr : depth.tokens.data();
  }
  void step(std::size_t d) {
    done_ += entries(d);
    progress_(std::min(done_, all_), all_);
  }

  // Calls body(from, to, first word, word behind) for pieces of the entries of a depth.
  template <class Body>
  void in_pieces(std::size_t d, const Body& body) {
    const std::vector<std::uint32_t>& begins = depths_[d]->begins;
    const std::vector<std::uint32_t> cuts = word_pieces(begins, pool_.size());
    pool_.map(cuts.size() - 1,
              [&](std::size_t i, std::size_t) { body(begins[cuts[i]], begins[cuts[i + 1]], cuts[i], cuts[i + 1]); });
    step(d);
  }

  // What follows the empty context.
  Contexts whole() {
    const LevelPlan& level = plan(1);
    Contexts result{ContextTotals(1), {}};
    ContextTotals::Large large;
    for (const std::uint32_t count : counts_.words())
      if (count != 0) result.totals.add(0, count, large);
    result.totals.keep(0, 1, large);
    if (level.min_count <= 1) return result;
    result.pruned.resize(1);
    const double divisor = level.divisor(result.totals[0]);
    for (std::size_t w = 0; w < words_; ++w)
      if (counts_.words()[w] != 0)
        result.pruned[0].add(level, counts_.words()[w], divisor, counts_.word_tokens()[w] >= level.min_count);
    return result;
  }

  // Where the entries begin that go on from each entry of a depth, and where the last ones end.
  Ids begins_after(std::size_t d) {
    if (d == 1) return {depths_[2]->begins.begin(), depths_[2]->begins.end()};
    const SequenceDepth& depth = *depths_[d];
    Ids result(depth.size() + 1);
    auto children = depth.children.from(0);
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < depth.size(); ++i) {
      result[i] = at;
      at += children.next();
    }
    result.back() = at;
    return result;
  }

  // The context of every entry of depth d, an entry of the depth below; `shorter`: those of the depth below.
  Ids find_contexts(std::size_t d, const Ids& shorter) {
    SequenceDepth& depth = *depths_[d];
    if (d == 2) return depth.words;  // the word before
    const SequenceDepth& parents = *depths_[d - 1];
    const Ids begins = begins_after(d - 2);
    const std::uint32_t* const known = parents.words.data();
    // Their words become their contexts.
    Ids result = d == deepest_ && is_last_user(d) ? std::move(depth.words) : depth.words;
    in_pieces(d, [&](std::size_t from, std::size_t to, std::uint32_t first_word, std::uint32_t last_word) {
      std::size_t parent = parents.begins[first_word];
      const std::size_t parents_end = parents.begins[last_word];
      auto children = parents.children.from(parent);
      constexpr std::size_t early = 16;
      std::size_t i = from;
      for (; parent < parents_end; ++parent) {
        if (parent % block == 0) poll_interrupt();
        if (parent + 2 * early < parents_end) {
          prefetch(begins.data() + shorter[parent + 2 * early]);
          prefetch(known + begins[shorter[parent + early]]);
        }
        const std::uint32_t* at = known + begins[shorter[parent]];
        const std::uint32_t* const end = known + begins[shorter[parent] + 1];
        for (std::uint32_t left = children.next(); left > 0; --left, ++i) {
          at = find(at, end, result[i]);
          if (at == end || *at != result[i]) throw Error(ErrorCode::chain, "the events are not n-grams of sequences");
          result[i] = static_cast<std::uint32_t>(at++ - known);
        }
      }
      if (i != to) throw Error(ErrorCode::chain, "the events are not n-grams of sequences");
    });
    return result;
  }

  // The first word that is not below the wanted one, which is often near.
  static const std::uint32_t* find(const std::uint32_t* at, const std::uint32_t* end, std::uint32_t wanted) {
    std::ptrdiff_t reach = 1;
    while (reach < end - at && at[reach] <= wanted) {
      at += reach;
      reach *= 2;
    }
    return std::lower_bound(at, at + std::min(reach, end - at), wanted);
  }

  // What follows the contexts that the entries of depth d have. Every thread has its own contexts.
  Contexts follow(std::size_t d, const Ids& context_of) {
    const SequenceDepth& depth = *depths_[d];
    const LevelPlan& level = plan(d);
    const std::size_t contexts = entries(d - 1), all = depth.size(), pieces = pool_.size();
    Contexts result{ContextTotals(contexts), {}};
    if (level.min_count > 1) result.pruned.assign(contexts, {});
    std::vector<ContextTotals::Large> large(pieces);
    const auto cut = [&](std::size_t piece) { return contexts * piece / pieces; };
    pool_.map(pieces, [&](std::size_t piece, std::size_t) {
      const std::size_t first = cut(piece), last = cut(piece + 1);
      auto counts = depth.counts.from(0);
      constexpr std::size_t early = 24;
      for (std::size_t i = 0; i < all; ++i) {
        if (i % block == 0) poll_interrupt();
        if (i + early < all) prefetch(result.totals.place(context_of[i + early]));
        const std::uint32_t count = counts.next();
        if (context_of[i] >= first && context_of[i] < last) result.totals.add(context_of[i], count, large[piece]);
      }
    });
    for (std::size_t piece = 0; piece < pieces; ++piece) result.totals.keep(cut(piece), cut(piece + 1), large[piece]);
    if (level.min_count > 1)
      pool_.map(pieces, [&](std::size_t piece, std::size_t) {
        const std::size_t first = cut(piece), last = cut(piece + 1);
        const std::uint32_t* const tokens = tokens_of(depth);
        auto counts = depth.counts.from(0);
        for (std::size_t i = 0; i < all; ++i) {
          const std::uint32_t count = counts.next(), g = context_of[i];
          if (g < first || g >= last) continue;
          const bool kept = (tokens == nullptr ? count : tokens[i]) >= level.min_count;
          result.pruned[g].add(level, count, level.divisor(result.totals[g]), kept);
        }
      });
    step(d);
    return result;
  }

  // Single words, which have a row each whether they were counted or not.
  void add_words(const Contexts& below, const Contexts& own) {
    const LevelPlan& level = plan(1);
    const bool last = deepest_ == 1;
    const double divisor = level.divisor(below.totals[0]), of_lower = below.weight(level, 0);
    const double uniform = plan_.shape.base_size == 0 ? 0.0 : 1.0 / static_cast<double>(plan_.shape.base_size);
    RowBatch rows = builder_.batch();
    rows.reserve(words_);
    if (!last) {
      p_.assign(words_, 0.0);
      leads_to_.assign(words_, empty_context);
    }
    const std::uint64_t start = builder_.start(1);
    std::size_t counted = 0;
    for (std::uint32_t w = 0; w < words_; ++w) {
      const std::uint32_t count = counts_.words()[w];
      const bool extended = !last && own.extended(w);
      const double weight = extended ? own.weight(plan(2), w) : not_a_context;
      if (extended) leads_to_[w] = static_cast<std::uint32_t>(start + w);
      if (count == 0) {
        if (!extended) continue;
        // It leads on, such as <s>, and has its share of the base.
        const double share = w < plan_.shape.base_size
                                 ? builder_.shape().empty_weight / static_cast<double>(plan_.shape.base_size)
                                 : 0.0;
        rows.add(0, w, -share, weight, empty_context, w);
        continue;
      }
      if (plan_.shape.base_size != 0 && w >= plan_.shape.base_size)
        throw Error(ErrorCode::argument, "an outcome was counted that is outside the uniform base");
      const double lower = plan_.base.empty() ? uniform : plan_.base[counted];
      ++counted;
      const bool kept = level.min_count <= 1 || counts_.word_tokens()[w] >= level.min_count;
      if (extended && !kept) throw Error(ErrorCode::chain, "a context was left out, and what follows it was not");
      const double mass = kept ? level.discounted(count) / divisor : 0.0;
      const double value = std::min(1.0, mass + of_lower * lower);
      if (!last) p_[w] = value;
      if (kept) rows.add(0, w, value, weight, empty_context, w);
    }
    builder_.add_entries(deepest_ - 1, std::move(rows), nullptr);
  }

  // How many entries of a depth are kept, and the bits of their newest words.
  std::pair<std::uint64_t, unsigned> kept_entries(std::size_t d) const {
    const SequenceDepth& depth = *depths_[d];
    const std::uint32_t least = plan(d).min_count;
    const std::uint32_t* const tokens = tokens_of(depth);
    std::uint64_t rows = 0;
    std::uint32_t largest = 0;
    auto counts = depth.counts.from(0);
    for (std::uint32_t w = 0; w < words_; ++w) {
      std::uint64_t kept = depth.begins[w + 1] - depth.begins[w];
      if (least > 1) {
        kept = 0;
        for (std::size_t i = depth.begins[w]; i < depth.begins[w + 1]; ++i) {
          const std::uint32_t count = counts.next();
          kept += (tokens == nullptr ? count : tokens[i]) >= least;
        }
      }
      rows += kept;
      if (kept != 0) largest = w;
    }
    return {rows, static_cast<unsigned>(std::bit_width(largest))};
  }

  // The entries of a depth of two words or more, whose contexts are not needed afterwards. `own`: what follows them as
  // contexts.
  void add_entries(std::size_t d, const Ids& context_of, const Contexts& below, const Contexts& own) {
    const auto [rows, last_bits] = kept_entries(d);
    const std::uint64_t first_context = builder_.start(static_cast<std::uint32_t>(d - 1));
    RegionFiller filler = builder_.filler(builder_.open_entries(deepest_ - d, rows, last_bits));
    count_rows(d, context_of, first_context, filler);
    filler.allot();
    const bool last = d == deepest_;
    LargeVector<double> p(last ? 0 : entries(d));
    Ids leads_to(last ? 0 : entries(d));
    // Most is held from now on, in the room of the table, too.
    if (d + 1 >= deepest_) KeptBlocks::release();
    put_rows(d, context_of, first_context, below, own, filler, p, leads_to);
    filler.close();
    sort_rows(d, filler, p, leads_to);
    p_ = std::move(p);
    leads_to_ = std::move(leads_to);
  }

  // Calls body(entry, word) for the entries of a piece.
  template <class Body>
  static void each_entry(const SequenceDepth& depth, std::uint32_t first_word, std::uint32_t last_word,
                         const Body& body) {
    for (std::uint32_t w = first_word; w < last_word; ++w)
      for (std::size_t i = depth.begins[w]; i < depth.begins[w + 1]; ++i) body(i, w);
  }

  void count_rows(std::size_t d, const Ids& context_of, std::uint64_t first_context, RegionFiller& filler) {
    const SequenceDepth& depth = *depths_[d];
    const std::uint32_t least = plan(d).min_count;
    const std::uint32_t* const tokens = tokens_of(depth);
    in_pieces(d, [&](std::size_t from, std::size_t to, std::uint32_t first_word, std::uint32_t last_word) {
      auto counts = depth.counts.from(from);
      std::array<std::uint64_t, block> hashes;
      std::size_t waiting = 0;
      const auto count = [&] {
        for (std::size_t k = 0; k < waiting; ++k) filler.count(hashes[k]);
        waiting = 0;
        poll_interrupt();
      };
      constexpr std::size_t early = 32;
      each_entry(depth, first_word, last_word, [&](std::size_t i, std::uint32_t w) {
        if (i + early < to) prefetch(leads_to_.data() + context_of[i + early]);
        if (least > 1) {
          const std::uint32_t number = counts.next();
          if ((tokens == nullptr ? number : tokens[i]) < least) return;
        }
        const Region& region = filler.region();
        hashes[waiting] = region.mixer.mix(region.key(leads_to_[context_of[i]] - first_context, w));
        prefetch(filler.bucket_place(region.bucket(hashes[waiting])));
        if (++waiting == block) count();
      });
      count();
    });
  }

  void put_rows(std::size_t d, const Ids& context_of, std::uint64_t first_context, const Contexts& below,
                const Contexts& own, RegionFiller& filler, LargeVector<double>& p, Ids& leads_to) {
    struct Row {
      std::uint64_t hash, bucket;
      double probability, weight;
      std::uint32_t link, entry;
      std::uint8_t* place;
    };
    const SequenceDepth& depth = *depths_[d];
    const SequenceDepth* const parents = d == 2 ? nullptr : depths_[d - 1].get();
    const LevelPlan& level = plan(d);
    const bool last = d == deepest_;
    const std::uint32_t* const tokens = tokens_of(depth);
    in_pieces(d, [&](std::size_t from, std::size_t to, std::uint32_t first_word, std::uint32_t last_word) {
      auto counts = depth.counts.from(from);
      // The entry that is left of each without its oldest word.
      std::size_t parent = parents == nullptr ? 0 : parents->begins[first_word];
      std::optional<SmallNumbers::Reader> children;
      if (parents != nullptr) children = parents->children.from(parent);
      std::uint32_t left = parents == nullptr ? 0 : first_child(*children, parent, from < to);
      std::array<Row, block> rows;
      std::size_t waiting = 0;
      const auto put = [&] {
        for (std::size_t k = 0; k < waiting; ++k) {
          rows[k].place = filler.take(rows[k].bucket);
          prefetch_to_write(rows[k].place);
        }
        for (std::size_t k = 0; k < waiting; ++k) {
          const Row& row = rows[k];
          filler.put(row.place, row.hash, row.probability, row.weight, row.link);
          // Until it has its place, a row that may be a context says which entry it is instead of its probability.
          if (!last) std::memcpy(row.place + filler.region().head_bytes, &row.entry, sizeof row.entry);
        }
        waiting = 0;
        poll_interrupt();
      };
      constexpr std::size_t early = 32;
      each_entry(depth, first_word, last_word, [&](std::size_t i, std::uint32_t w) {
        if (i + early < to) {
          prefetch(leads_to_.data() + context_of[i + early]);
          prefetch(below.totals.place(context_of[i + early]));
        }
        if (parents == nullptr) {
          parent = w;
        } else if (left == 0) {
          ++parent;
          left = first_child(*children, parent, true);
        }
        if (parents != nullptr) --left;
        const std::uint32_t g = context_of[i], count = counts.next();
        const bool kept = level.min_count <= 1 || (tokens == nullptr ? count : tokens[i]) >= level.min_count;
        const ContextCounts totals = below.totals[g];
        const double mass = kept ? level.discounted(count) / level.divisor(totals) : 0.0;
        const double value = std::min(1.0, mass + below.weight(level, g, totals) * p_[parent]);
        const std::uint32_t link = leads_to_[parent];
        double weight = not_a_context;
        if (!last) {
          p[i] = value;
          leads_to[i] = link;
          if (own.extended(i)) {
            if (!kept) throw Error(ErrorCode::chain, "a context was left out, and what follows it was not");
            weight = own.weight(plan(d + 1), i);
          }
        }
        if (!kept) return;
        const Region& region = filler.region();
        const std::uint64_t hash = region.mixer.mix(region.key(leads_to_[g] - first_context, w));
        rows[waiting] = {hash, region.bucket(hash), value, weight, link, static_cast<std::uint32_t>(i), nullptr};
        prefetch(filler.bucket_place(rows[waiting].bucket));
        if (++waiting == block) put();
      });
      put();
      // No other piece reads these.
      release_items(context_of, from, to);
      if (parents != nullptr) release_items(p_, parents->begins[first_word], parents->begins[last_word]);
    });
  }

  // Moves on to the next entry that has children, and returns how many.
  static std::uint32_t first_child(SmallNumbers::Reader& children, std::size_t& parent, bool any) {
    if (!any) return 0;
    std::uint32_t found = children.next();
    for (; found == 0; found = children.next()) ++parent;
    return found;
  }

  void sort_rows(std::size_t d, const RegionFiller& filler, const LargeVector<double>& p, Ids& leads_to) {
    const Region& region = filler.region();
    const std::uint64_t start = builder_.start(static_cast<std::uint32_t>(d));
    const bool last = d == deepest_, wide = builder_.wide();
    const auto named_by = [&](const std::uint8_t* place) {
      std::uint32_t number;
      std::memcpy(&number, place + region.head_bytes, sizeof number);
      return number;
    };
    const std::size_t pieces = pool_.size() == 1 ? 1 : 16 * pool_.size();
    const auto cut = [&](std::size_t piece) { return region.buckets * piece / pieces; };
    pool_.map(pieces, [&](std::size_t piece, std::size_t) {
      if (last) {
        filler.sort(cut(piece), cut(piece + 1), [](const std::uint8_t*) {}, [](std::uint64_t, const std::uint8_t*) {});
        return;
      }
      filler.sort(
          cut(piece), cut(piece + 1),
          [&](const std::uint8_t* place) {
            const std::uint32_t entry = named_by(place);
            prefetch(p.data() + entry);
            prefetch_to_write(leads_to.data() + entry);
          },
          [&](std::uint64_t position, std::uint8_t* place) {
            const std::uint32_t entry = named_by(place);
            const double value = p[entry];
            const auto narrow = static_cast<float>(value);
            std::uint8_t* const at = place + region.head_bytes;
            if (wide)
              std::memcpy(at, &value, sizeof value);
            else
              std::memcpy(at, &narrow, sizeof narrow);
            if (!is_negative(place + region.weight_at(), wide))
              leads_to[entry] = static_cast<std::uint32_t>(start + position);
          });
    });
    step(d);
  }

  static bool is_negative(const std::uint8_t* value, bool wide) { return (value[wide ? 7 : 3] & 0x80) != 0; }

  SequenceCounts counts_;
  const EstimatePlan& plan_;
  const ProgressCallback& progress_;
  std::size_t deepest_, words_;
  ThreadPool pool_;
  TableBuilder builder_;
  std::vector<std::shared_ptr<SequenceDepth>> depths_;  // by number of words
  LargeVector<double> p_;                               // of the entries of the depth below
  Ids leads_to_;                                        // the longest context that they lead to
  std::uint64_t done_ = 0, all_ = 0;
};

}  // namespace

std::shared_ptr<const BackoffTable> estimate(SequenceCounts counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress) {
  check_plan(counts, plan);
  return SequenceEstimator(std::move(counts), plan, progress).run();
}

}  // namespace treelm
