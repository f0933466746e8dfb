#include "latent/split_merge.h"

#include "bindings/bindings.h"

namespace treelm::bindings {

namespace {

std::vector<LatentRule> rules_of(const Matrix<std::int32_t>& rows) {
  check_columns(rows.shape(1), 3);
  std::vector<LatentRule> rules(rows.shape(0));
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const std::int32_t* row = rows.data() + 3 * r;
    rules[r] = {row[0], row[1], row[2]};
  }
  return rules;
}

using Counts = Array<std::int32_t>;
using Numbers = Array<double>;
// An array that a kernel fills or changes.
using Changed = nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::c_contig>;

// Runs the work of a kernel without the interpreter's lock.
template <typename Work>
auto unlocked(const Work& work) {
  const Unlocked unlocked;
  return work();
}

Numbers expect(const LatentTrees& self, const Counts& substates, const Numbers& weights, const Changed& counts,
               std::size_t threads) {
  check_threads(threads);
  return give(unlocked([&] {
    ThreadPool pool(threads);
    return self.expect(span_of(substates), span_of(weights), std::span(counts.data(), counts.size()), pool,
                       hear_signals);
  }));
}

Numbers log_probs(const LatentTrees& self, const Counts& substates, const Numbers& weights, std::size_t threads) {
  check_threads(threads);
  return give(unlocked([&] {
    ThreadPool pool(threads);
    return self.log_probs(span_of(substates), span_of(weights), pool, hear_signals);
  }));
}

Numbers merge_gains(const LatentTrees& self, const Counts& substates, const Numbers& weights, const Numbers& shares,
                    std::size_t threads) {
  check_threads(threads);
  return give(unlocked([&] {
    ThreadPool pool(threads);
    return self.merge_gains(span_of(substates), span_of(weights), span_of(shares), pool, hear_signals);
  }));
}

Numbers split(const Matrix<std::int32_t>& rows, const Counts& before, const Counts& after, const Numbers& weights,
              double noise, std::uint64_t seed, std::uint64_t stream) {
  const std::vector<LatentRule> rules = rules_of(rows);
  return give(unlocked([&] {
    return split_rules(RuleBlocks(rules, span_of(before)), RuleBlocks(rules, span_of(after)), span_of(weights), noise,
                       seed, stream);
  }));
}

Numbers merge(const Matrix<std::int32_t>& rows, const Counts& before, const Counts& after, const Numbers& weights,
              const Counts& target, const Numbers& share) {
  const std::vector<LatentRule> rules = rules_of(rows);
  return give(unlocked([&] {
    return merge_rules(RuleBlocks(rules, span_of(before)), RuleBlocks(rules, span_of(after)), span_of(weights),
                       span_of(target), span_of(share));
  }));
}

void normalize(const Matrix<std::int32_t>& rows, const Counts& substates, const Changed& counts,
               const Numbers& previous, double rule_filter, std::size_t threads) {
  check_threads(threads);
  const std::vector<LatentRule> rules = rules_of(rows);
  unlocked([&] {
    ThreadPool pool(threads);
    normalize_rules(RuleBlocks(rules, span_of(substates)), std::span(counts.data(), counts.size()), span_of(previous),
                    rule_filter, pool);
  });
}

void smooth(const Matrix<std::int32_t>& rows, const Counts& substates, const Changed& weights, const Counts& groups,
            bool others, double phrasal_share, double lexical_share, std::size_t threads) {
  check_threads(threads);
  const std::vector<LatentRule> rules = rules_of(rows);
  unlocked([&] {
    ThreadPool pool(threads);
    smooth_rules(RuleBlocks(rules, span_of(substates)), std::span(weights.data(), weights.size()), span_of(groups),
                 others, phrasal_share, lexical_share, pool);
  });
}

Numbers totals(const Matrix<std::int32_t>& rows, const Counts& substates, const Numbers& counts) {
  const std::vector<LatentRule> rules = rules_of(rows);
  return give(unlocked([&] { return substate_totals(RuleBlocks(rules, span_of(substates)), span_of(counts)); }));
}

}  // namespace

void bind_split_merge(nb::module_& module) {
  nb::class_<LatentTrees>(module, "LatentTrees")
      .def(
          "__init__",
          [](LatentTrees* self, const Matrix<std::int32_t>& rules, const Array<std::uint32_t>& node_rule,
             const Array<std::uint32_t>& node_left, const Array<std::uint32_t>& node_right,
             const Array<std::uint32_t>& tree_start) {
            new (self)
                LatentTrees(rules_of(rules), copy(node_rule), copy(node_left), copy(node_right), copy(tree_start));
          },
          nb::arg("rules"), nb::arg("node_rule"), nb::arg("node_left"), nb::arg("node_right"), nb::arg("tree_start"))
      .def("__len__", &LatentTrees::trees)
      .def("expect", &expect, nb::arg("substates"), nb::arg("weights"), nb::arg("counts"), nb::kw_only(),
           nb::arg("threads"))
      .def("log_probs", &log_probs, nb::arg("substates"), nb::arg("weights"), nb::kw_only(), nb::arg("threads"))
      .def("merge_gains", &merge_gains, nb::arg("substates"), nb::arg("weights"), nb::arg("shares"), nb::kw_only(),
           nb::arg("threads"));
  module.def("split_rules", &split, nb::arg("rules"), nb::arg("before"), nb::arg("after"), nb::arg("weights"),
             nb::kw_only(), nb::arg("noise"), nb::arg("seed"), nb::arg("stream"));
  module.def("merge_rules", &merge, nb::arg("rules"), nb::arg("before"), nb::arg("after"), nb::arg("weights"),
             nb::arg("target"), nb::arg("share"));
  module.def("normalize_rules", &normalize, nb::arg("rules"), nb::arg("substates"), nb::arg("counts"),
             nb::arg("previous"), nb::kw_only(), nb::arg("rule_filter"), nb::arg("threads"));
  module.def("smooth_rules", &smooth, nb::arg("rules"), nb::arg("substates"), nb::arg("weights"), nb::kw_only(),
             nb::arg("groups"), nb::arg("others"), nb::arg("phrasal_share"), nb::arg("lexical_share"),
             nb::arg("threads"));
  module.def("substate_totals", &totals, nb::arg("rules"), nb::arg("substates"), nb::arg("counts"));
}

}  // namespace treelm::bindings
