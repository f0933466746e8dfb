// The estimator within a memory limit: whatever does not fit is sorted in temporary files and read in
// the order in which it is needed. Arithmetic and order of additions are those of estimate.cpp,
// so the table is the same, byte for byte.

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "backoff/estimate.h"
#include "backoff/streamed_counts.h"
#include "base/external_sort.h"

namespace treelm {

namespace {

template <std::size_t W>
class StreamedEstimator {
 public:
  StreamedEstimator(const StreamedCounts& counts, const EstimatePlan& plan, const ProgressCallback& progress)
      : counts_(counts),
        plan_(plan),
        progress_(progress),
        layout_(counts.events().layout()),
        folder_(counts.limit().folder),
        memory_(memory_of_a_sorter(counts.limit().bytes)),
        pool_(counts.threads()),
        builder_(plan.shape, 0, counts.threads(), folder_) {
    for (std::size_t j = 0; j < counts.levels(); ++j) all_ += counts.size(j);
  }

  std::shared_ptr<const BackoffTable> run() {
    const std::size_t last = counts_.levels() - 1;
    Level here = prepare(last);
    if (width(last) == 0) {
      builder_.set_empty_weight(here.contexts[0].weight);
      StoredArrayWriter<std::uint32_t> only(folder_);
      only.add(0);
      here.positions = only.finish();
    } else if (!plan_.shape.sequence) {
      add_contexts(last, here, nullptr);
    }
    for (std::size_t j = last + 1; j-- > 0;) {
      std::optional<Level> above;
      if (j > 0) above = prepare(j - 1);
      add_entries(j, here, plan_.shape.sequence && above ? &*above : nullptr);
      if (above && !plan_.shape.sequence) add_contexts(j - 1, *above, &here);
      if (above) here = std::move(*above);
    }
    progress_(all_, all_);
    return builder_.finish();
  }

 private:
  // A context, in ascending order of contexts.
  struct Context {
    Key<W> key;  // of one of its entries, with all columns of the level
    double weight;
    std::uint64_t extended;  // whether any of its entries is kept
  };
  // An entry, in the order of contexts.
  struct Share {
    double mass, weight;
    std::uint32_t rank, begins;  // whether it is the first of its context
  };
  struct Level {
    StoredArray<Context> contexts;
    StoredArray<Share> shares;
    StoredArray<std::uint32_t> positions;  // per context, `none` if nothing is kept of it
    std::uint32_t outcomes = 0;            // bits that occur in the outcomes kept
    std::vector<std::uint32_t> columns;    // bits that occur in each context column
  };
  struct ByContext {
    static constexpr bool has_ties = false;
    Key<W> key;  // context columns, then the outcome
    std::uint32_t count, tokens, rank;
    friend bool operator<(const ByContext& a, const ByContext& b) { return a.key < b.key; }
  };
  struct ByRank {
    static constexpr bool has_ties = false;
    Key<1> key;
    double mass, weight;
    std::uint32_t position;
    friend bool operator<(const ByRank& a, const ByRank& b) { return a.key < b.key; }
  };
  struct Place {  // rank, then position
    static constexpr bool has_ties = false;
    Key<1> key;
    friend bool operator<(const Place& a, const Place& b) { return a.key < b.key; }
  };
  using Row = TableRow<double>;

  // At most two sorters hold records at a time; the rest is for the ends of files that are written and read.
  static std::size_t memory_of_a_sorter(std::size_t all) {
    constexpr std::size_t files = std::size_t{24} << 20;
    return (all - std::min(all / 2, files)) / 2;
  }
  std::uint32_t width(std::size_t j) const { return counts_.shape().widths[j]; }
  LevelCursor<W> entries(std::size_t j) const { return {counts_.events(), counts_.shape(), counts_.token_counts(), j}; }
  template <class Record>
  ExternalSorter<Record> sorter(unsigned bits) {
    return {bits, memory_, folder_, pool_};
  }
  void step() {
    // Every entry is met three times.
    if (++done_ % 3000000 == 0) progress_(std::min(done_ / 3, all_), all_);
  }
  int compare(const Key<W>& a, std::uint32_t a_from, const Key<W>& b, std::uint32_t b_from, std::uint32_t count) const {
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint32_t left = layout_.column(a, a_from + c), right = layout_.column(b, b_from + c);
      if (left != right) return left < right ? -1 : 1;
    }
    return 0;
  }

  // Groups the entries of a level by context, and weighs the contexts.
  Level prepare(std::size_t j) {
    const LevelPlan& plan = plan_.levels[j];
    Level level;
    level.columns.assign(width(j), 0);
    std::vector<unsigned> bits;
    for (std::uint32_t c = 1; c <= width(j); ++c) bits.push_back(layout_.bits(c));
    bits.push_back(layout_.bits(0));
    const KeyLayout by_context(bits);
    auto sorted = sorter<ByContext>(by_context.total());
    std::vector<std::uint32_t> row(width(j) + 1);
    for (LevelCursor<W> entry = entries(j); entry.next(); step()) {
      for (std::uint32_t c = 0; c < width(j); ++c) row[c] = layout_.column(entry.key(), 1 + c);
      row.back() = layout_.column(entry.key(), 0);
      if (entry.tokens() >= plan.min_count) level.outcomes |= row.back();
      sorted.add({by_context.template pack<W>(row.data()), entry.count(), entry.tokens(),
                  static_cast<std::uint32_t>(entry.rank())});
    }
    sorted.finish();
    StoredArrayWriter<Context> contexts(folder_);
    StoredArrayWriter<Share> shares(folder_);
    std::vector<ByContext> group;
    const unsigned context_bits = by_context.total() - layout_.bits(0);
    std::vector<std::uint32_t> whole(layout_.columns(), 0);
    const auto close = [&] {
      if (group.empty()) return;
      ContextCounts counts;
      for (const ByContext& entry : group) {
        counts.total += entry.count;
        if (entry.count > 0) ++counts.outcomes_of[std::min<std::uint32_t>(entry.count, 3) - 1];
      }
      const double divisor = plan.divisor(counts);
      PrunedContext pruned;
      for (const ByContext& entry : group)
        pruned.add(plan, entry.count, divisor, plan.min_count <= 1 || entry.tokens >= plan.min_count);
      const double weight = plan.min_count <= 1 ? plan.weight(counts) : pruned.weight(plan.weight(counts));
      by_context.unpack(group.front().key, row.data());
      whole[0] = row.back();
      for (std::uint32_t c = 0; c < width(j); ++c) {
        whole[1 + c] = row[c];
        if (pruned.left != 0) level.columns[c] |= row[c];
      }
      contexts.add({layout_.template pack<W>(whole.data()), weight, pruned.left != 0});
      for (const ByContext& entry : group) {
        const bool kept = plan.min_count <= 1 || entry.tokens >= plan.min_count;
        shares.add({kept ? plan.discounted(entry.count) / divisor : 0.0, weight, entry.rank, &entry == group.data()});
      }
      group.clear();
    };
    for (ByContext entry; sorted.next(entry); step()) {
      if (!group.empty() && common_bits(group.front().key, entry.key) < context_bits) close();
      group.push_back(entry);
    }
    close();
    level.contexts = contexts.finish();
    level.shares = shares.finish();
    return level;
  }

  // Hashes a row to come.
  static Key<1> hashed(const Region& region, std::uint64_t context, std::uint32_t last) {
    const std::uint64_t hash = region.mixer.mix(region.key(context, last));
    return {{region.key_bits() == 0 ? 0 : hash << (64 - region.key_bits())}};
  }
  // Writes rows in the order of their hashes and tells their positions.
  template <class Tell>
  void write(const Region& region, ExternalSorter<Row>& rows, const Tell& tell) {
    RegionWriter writer = builder_.writer(region);
    for (Row row; rows.next(row);) {
      const std::uint64_t hash = region.key_bits() == 0 ? 0 : row.key.w[0] >> (64 - region.key_bits());
      tell(row.rank, writer.add(hash, row.probability, row.weight, row.link));
    }
    writer.finish();
  }
  static Place place(std::uint32_t rank, std::uint64_t position) { return {{{std::uint64_t{rank} << 32 | position}}}; }

  // Other chains than sequences: see Estimator::add_contexts.
  void add_contexts(std::size_t j, Level& level, const Level* below) {
    if (width(j) == 0) return;
    const std::uint32_t given = below == nullptr ? 0 : width(j + 1);
    StoredArrayWriter<std::uint32_t> first(folder_);
    std::size_t at = 0;
    for (std::size_t g = 0; g < level.contexts.size(); ++g) {
      const Context& context = level.contexts[g];
      std::uint32_t prefix = 0;
      if (context.extended && given > 0) {
        while (compare(context.key, 1, below->contexts[at].key, 1, given) != 0) ++at;
        prefix = below->positions[at];
        below->contexts.pass(at);
        below->positions.pass(at);
      }
      first.add(prefix);
      level.contexts.pass(g);
    }
    level.positions = first.finish();
    for (std::uint32_t depth = given + 1; depth <= width(j); ++depth) add_columns(j, level, depth);
  }

  // One column more of the contexts of a level; their positions become those of `depth` columns.
  void add_columns(std::size_t j, Level& level, std::uint32_t depth) {
    const auto last_bits = static_cast<unsigned>(std::bit_width(level.columns[depth - 1]));
    const Region to_come = builder_.contexts_to_come(depth, last_bits);
    auto rows = sorter<Row>(to_come.key_bits());
    RowBatch direct = builder_.batch();
    StoredArrayWriter<std::uint32_t> ranks(folder_);
    std::uint32_t distinct = 0;
    std::optional<Key<W>> before;
    for (std::size_t g = 0; g < level.contexts.size(); ++g) {
      const Context& context = level.contexts[g];
      if (context.extended) {
        if (!before || compare(context.key, 1, *before, 1, depth) != 0) {
          const double weight = depth == width(j) ? context.weight : 1.0;
          const std::uint32_t column = layout_.column(context.key, depth);
          if (depth == 1)
            direct.add(0, column, 0.0, weight, 0, distinct++);
          else
            rows.add({hashed(to_come, level.positions[g], column), 0.0, weight, 0, distinct++});
        }
        before = context.key;
      }
      ranks.add(context.extended ? distinct - 1 : none);
      level.contexts.pass(g);
      level.positions.pass(g);
    }
    auto places = sorter<Place>(32);
    if (depth == 1) {
      LargeVector<std::uint32_t> positions(distinct);
      builder_.add_contexts(1, std::move(direct), &positions);
      for (std::uint32_t rank = 0; rank < distinct; ++rank) places.add(place(rank, positions[rank]));
    } else {
      rows.finish();
      write(builder_.open_contexts(depth, rows.size(), last_bits), rows,
            [&](std::uint32_t rank, std::uint64_t position) { places.add(place(rank, position)); });
    }
    places.finish();
    const StoredArray<std::uint32_t> rank_of = ranks.finish();
    StoredArrayWriter<std::uint32_t> positions(folder_);
    Place current{};
    bool any = false;
    for (std::size_t g = 0; g < rank_of.size(); ++g) {
      if (rank_of[g] != none)
        while (!any || current.key.w[0] >> 32 != rank_of[g]) any = places.next(current);
      positions.add(rank_of[g] == none ? none : static_cast<std::uint32_t>(current.key.w[0]));
      rank_of.pass(g);
    }
    level.positions = positions.finish();
  }

  // The shares of a level with the positions of their contexts, in the order of entries.
  ExternalSorter<ByRank> shares_by_rank(const Level& here) {
    auto sorted = sorter<ByRank>(32);
    std::size_t context = 0;
    for (std::size_t i = 0; i < here.shares.size(); ++i) {
      const Share& share = here.shares[i];
      context += share.begins != 0 && i != 0;
      sorted.add({{{std::uint64_t{share.rank} << 32}}, share.mass, share.weight, here.positions[context]});
      here.shares.pass(i);
      here.positions.pass(context);
      step();
    }
    sorted.finish();
    return sorted;
  }

  void add_entries(std::size_t j, Level& here, Level* above) {
    const bool last = j + 1 == counts_.levels();
    const bool direct = width(j) == 0;
    const double uniform = plan_.shape.base_size == 0 ? 0.0 : 1.0 / static_cast<double>(plan_.shape.base_size);
    auto shares = shares_by_rank(here);
    here.shares = {};
    here.positions.leave();
    const auto last_bits = static_cast<unsigned>(std::bit_width(here.outcomes));
    const Region to_come = builder_.entries_to_come(j, last_bits);
    auto rows = sorter<Row>(to_come.key_bits());
    RowBatch batch = builder_.batch();  // where rows stand at their outcome
    const auto add_row = [&](std::uint32_t position, std::uint32_t outcome, double p, double weight, std::uint32_t link,
                             std::uint32_t rank) {
      if (direct)
        batch.add(position, outcome, p, weight, link, rank);
      else
        rows.add({hashed(to_come, position, outcome), p, weight, link, rank});
    };
    StoredArrayWriter<double> p(folder_);
    StoredArrayWriter<std::uint32_t> links(folder_);
    StoredArrayWriter<std::uint32_t> owners(folder_);  // per context above, the rank of the entry that it is
    const auto entry_count = static_cast<std::uint32_t>(counts_.size(j));
    std::uint32_t carriers = 0;
    std::size_t context = 0;
    // Contexts above that are not entries: only a first word can be one, such as <s>.
    const auto pass_context = [&] {
      const Context& passed = above->contexts[context];
      std::uint32_t rank = none;
      if (passed.extended) {
        if (width(j) != 0) throw Error(ErrorCode::chain, "the events are not n-grams of sequences");
        const std::uint32_t word = layout_.column(passed.key, 1);
        const double share = word < plan_.shape.base_size
                                 ? builder_.shape().empty_weight / static_cast<double>(plan_.shape.base_size)
                                 : 0.0;
        rank = entry_count + carriers++;
        add_row(0, word, -share, passed.weight, empty_context, rank);
      }
      owners.add(rank);
      above->contexts.pass(context++);
    };
    LevelCursor<W> parent = entries(last ? j : j + 1);
    bool have_parent = false;
    for (LevelCursor<W> entry = entries(j); entry.next(); step()) {
      ByRank share;
      if (!shares.next(share)) throw Error(ErrorCode::spill, "a temporary file lost records");
      const std::uint32_t outcome = layout_.column(entry.key(), 0);
      if (!last) {
        const unsigned prefix = layout_.prefix(1 + width(j + 1));
        while (!have_parent || common_bits(parent.key(), entry.key()) < prefix) {
          have_parent = parent.next();
          if (!have_parent) throw Error(ErrorCode::chain, "an entry has no shorter one");
        }
        p_.pass(parent.rank());
        if (!state_is_empty_) state_.pass(parent.rank());
      }
      const double lower = !last                ? p_[parent.rank()]
                           : plan_.base.empty() ? uniform
                                                : plan_.base[static_cast<std::size_t>(entry.rank())];
      const double value = std::min(1.0, share.mass + share.weight * lower);
      if (j > 0) p.add(value);
      if (last && plan_.shape.base_size != 0 && outcome >= plan_.shape.base_size)
        throw Error(ErrorCode::argument, "an outcome was counted that is outside the uniform base");
      const std::uint32_t link = last || state_is_empty_ ? empty_context : state_[parent.rank()];
      const bool kept = plan_.levels[j].min_count <= 1 || entry.tokens() >= plan_.levels[j].min_count;
      double weight = not_a_context;
      if (above != nullptr) {
        int order = 1;
        while (context < above->contexts.size() &&
               (order = compare(above->contexts[context].key, 1, entry.key(), 0, width(j) + 1)) < 0)
          pass_context();
        if (context < above->contexts.size() && order == 0) {
          const Context& own = above->contexts[context];
          if (own.extended) {
            if (!kept) throw Error(ErrorCode::chain, "a context was left out, and what follows it was not");
            weight = own.weight;
          }
          owners.add(own.extended ? static_cast<std::uint32_t>(entry.rank()) : none);
          above->contexts.pass(context++);
        }
        links.add(link);
      }
      if (kept) add_row(share.position, outcome, value, weight, link, static_cast<std::uint32_t>(entry.rank()));
    }
    if (above != nullptr)
      while (context < above->contexts.size()) pass_context();
    p_ = p.finish();
    shares.clear();
    write_entries(j, last_bits, rows, std::move(batch), entry_count + carriers, above, links.finish(), owners.finish());
  }

  // Writes the rows of a level, and finds the positions of the contexts above and the context that
  // each entry leads to.
  void write_entries(std::size_t j, unsigned last_bits, ExternalSorter<Row>& rows, RowBatch batch, std::uint32_t ranks,
                     Level* above, const StoredArray<std::uint32_t>& links, const StoredArray<std::uint32_t>& owners) {
    auto places = sorter<Place>(32);
    if (width(j) == 0) {
      LargeVector<std::uint32_t> positions(above != nullptr ? ranks : 0, none);
      builder_.add_entries(j, std::move(batch), above != nullptr ? &positions : nullptr);
      for (std::uint32_t rank = 0; rank < positions.size(); ++rank)
        if (positions[rank] != none) places.add(place(rank, positions[rank]));
    } else {
      rows.finish();
      write(builder_.open_entries(j, rows.size(), last_bits), rows, [&](std::uint32_t rank, std::uint64_t position) {
        if (above != nullptr) places.add(place(rank, position));
      });
    }
    state_is_empty_ = above == nullptr;
    if (above == nullptr) return;
    places.finish();
    // Owners ascend with the entries, but for words that are not entries: those come last in rank.
    const std::uint64_t start = builder_.start(width(j) + 1);
    std::vector<std::uint32_t> carried;  // positions of these words, in their order
    StoredArrayWriter<std::uint32_t> state(folder_), own_positions(folder_);
    std::size_t owner = 0;
    Place current{};
    bool any = places.next(current);
    const auto position_of = [&](std::uint32_t rank) {
      while (any && current.key.w[0] >> 32 < rank) any = places.next(current);
      return any && current.key.w[0] >> 32 == rank ? static_cast<std::uint32_t>(current.key.w[0]) : none;
    };
    StoredArrayWriter<std::uint32_t> owned(folder_);  // positions of the owners that are entries
    const auto entries_here = static_cast<std::uint32_t>(links.size());
    for (std::uint32_t rank = 0; rank < entries_here; ++rank) {
      while (owner < owners.size() && (owners[owner] == none || owners[owner] >= entries_here)) ++owner;
      std::uint32_t leads_to = links[rank];
      if (owner < owners.size() && owners[owner] == rank) {
        const std::uint32_t position = position_of(rank);
        owned.add(position);
        leads_to = static_cast<std::uint32_t>(start + position);
        owners.pass(owner++);
      }
      state.add(leads_to);
      links.pass(rank);
    }
    for (std::uint32_t rank = entries_here; rank < ranks; ++rank) carried.push_back(position_of(rank));
    owners.leave();
    const StoredArray<std::uint32_t> owned_positions = owned.finish();
    std::size_t taken = 0;
    for (std::size_t g = 0; g < owners.size(); ++g) {
      if (owners[g] == none)
        own_positions.add(none);
      else if (owners[g] >= entries_here)
        own_positions.add(carried[owners[g] - entries_here]);
      else
        own_positions.add(owned_positions[taken++]);
      owners.pass(g);
      owned_positions.pass(taken);
    }
    above->positions = own_positions.finish();
    state_ = state.finish();
  }

  const StreamedCounts& counts_;
  const EstimatePlan& plan_;
  const ProgressCallback& progress_;
  const KeyLayout& layout_;
  std::string folder_;
  std::size_t memory_;
  ThreadPool pool_;
  TableBuilder builder_;
  StoredArray<double> p_;             // of the level below
  StoredArray<std::uint32_t> state_;  // of the level below: the context that each entry leads to
  bool state_is_empty_ = true;
  std::uint64_t done_ = 0, all_ = 0;
};

}  // namespace

std::shared_ptr<const BackoffTable> estimate(const StreamedCounts& counts, const EstimatePlan& plan,
                                             const ProgressCallback& progress) {
  check_plan(counts, plan);
  return with_key_words(counts.events().layout().words(),
                        [&]<std::size_t W>() { return StreamedEstimator<W>(counts, plan, progress).run(); });
}

}  // namespace treelm
