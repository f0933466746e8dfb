#include "trees/packed_trees.h"

#include "tests/harness.h"

using namespace treelm;
using treelm::test::default_recipe;
using treelm::test::english;
using treelm::test::Random;
using treelm::test::random_tree;
using treelm::test::read;
using treelm::test::verbatim_recipe;

namespace {

PackedTrees two_trees() { return read(verbatim_recipe(), "(ROOT (S (NP (NN dog)) (VBZ is)))\n(ROOT (A a))"); }

// Runs `forge` on valid trees; they must then be rejected.
template <class Forge>
void check_rejected(Forge forge) {
  PackedTrees trees = two_trees();
  check_packed(trees);
  forge(trees);
  CHECK_THROWS_CODE(check_packed(trees), ErrorCode::argument);
}

std::uint32_t random_entry(Random& random, std::size_t bound) {
  switch (random.below(4)) {
    case 0: return none;
    case 1: return static_cast<std::uint32_t>(random.below(std::size_t{1} << 32));
    default: return static_cast<std::uint32_t>(random.below(bound + 3));
  }
}

void corrupt(Random& random, PackedTrees& trees) {
  const auto entry = [&](std::vector<std::uint32_t>& array, std::size_t bound) {
    if (!array.empty()) array[random.below(array.size())] = random_entry(random, bound);
  };
  const auto length = [&](std::vector<std::uint32_t>& array) {
    random.chance(2) && !array.empty() ? array.pop_back() : array.push_back(random_entry(random, array.size()));
  };
  switch (random.below(12)) {
    case 0: entry(trees.label, trees.labels.size()); break;
    case 1:
    case 2:
    case 3: entry(trees.size, trees.size.size() / 2); break;
    case 4:
    case 5: entry(trees.word, trees.words.size()); break;
    case 6: entry(trees.start, trees.label.size()); break;
    case 7: length(trees.label); break;
    case 8: length(trees.size); break;
    case 9: length(trees.start); break;
    case 10: length(trees.word); break;
    default: {
      LabelParts& parts = trees.labels[random.below(trees.labels.size())];
      std::uint32_t* const fields[] = {&parts.base, &parts.head, &parts.parent, &parts.gap};
      *fields[random.below(4)] = random_entry(random, trees.atoms.size());
    }
  }
}

}  // namespace

TEST("packed trees: a string table") {
  StringTable table;
  CHECK_EQ(table.size(), 0);
  table.push_back("");
  table.push_back("word");
  table.push_back(std::string_view("a\0b", 3));
  CHECK_EQ(table.size(), 3);
  CHECK_EQ(table[0], "");
  CHECK_EQ(table[1], "word");
  CHECK_EQ(table[2].size(), 3);
  Symbols symbols;
  symbols.intern("b");
  symbols.intern("");
  symbols.intern("a");
  const StringTable frozen(symbols);
  CHECK_EQ(frozen.size(), 3);
  CHECK_EQ(frozen[0], "b");
  CHECK_EQ(frozen[1], "");
  CHECK_EQ(frozen[2], "a");
}

TEST("packed trees: a label table") {
  LabelTable table;
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 3000; ++i)
      CHECK_EQ(table.intern({i / 100, i % 10, i % 100 / 10 == 0 ? none : i % 100 / 10, 0}), i);
    CHECK_EQ(table.intern({0, 0, none, 1}), 3000);  // the gap is part of a label
    CHECK_EQ(table.intern({29, 9, 9, 0}), 2999);
    CHECK_EQ(table.parts().size(), 3001);
    CHECK((table.parts()[2999] == LabelParts{29, 9, 9, 0}));
    table.clear();
    CHECK(table.parts().empty());
  }
}

TEST("packed trees: labels are rendered base, head, gap, parent") {
  StringTable atoms;
  for (const char* atom : {"S", "VBD", "ROOT", ":", "--", "@+^|\\x"}) atoms.push_back(atom);
  const auto rendered = [&](const LabelParts& parts) {
    std::string out = ">";
    render_label(atoms, parts, out);
    return out;
  };
  CHECK_EQ(rendered({0, none, none, 0}), ">S");
  CHECK_EQ(rendered({0, 1, none, 0}), ">S-VBD");
  CHECK_EQ(rendered({0, none, none, 1}), ">S-GAP");
  CHECK_EQ(rendered({0, none, 2, 0}), ">S^ROOT");
  CHECK_EQ(rendered({0, 1, 2, 1}), ">S-VBD-GAP^ROOT");
  CHECK_EQ(rendered({3, 4, none, 0}), ">:---");
  CHECK_EQ(rendered({5, 5, 5, 0}), ">@+^|\\x-\\@\\+\\^\\|\\\\x^@+^|\\x");  // only the head is escaped
}

TEST("packed trees: the arrays of a tree") {
  const PackedTrees trees = two_trees();
  CHECK_EQ(trees.tree_count(), 2);
  CHECK(trees.start == std::vector<std::uint32_t>({0, 5, 7}));
  CHECK(trees.size == std::vector<std::uint32_t>({5, 4, 2, 1, 1, 2, 1}));
  CHECK(trees.word == std::vector<std::uint32_t>({none, none, none, 0, 1, none, 2}));
  CHECK(trees.label == std::vector<std::uint32_t>({0, 1, 2, 3, 4, 0, 5}));
  CHECK(trees.ordinal == std::vector<std::uint64_t>({1, 2}));
  CHECK(trees.line == std::vector<std::uint64_t>({1, 2}));
  CHECK_EQ(trees.words[1], "is");
  CHECK_EQ(trees.atoms[trees.labels[3].base], "NN");
  // The atoms of the profile come first, with its ids.
  for (std::uint32_t i = 0; i < english()->atoms().size(); ++i) CHECK_EQ(trees.atoms[i], english()->atoms()[i]);
}

TEST("packed trees: writing") {
  CHECK_EQ(write_brackets(PackedTrees()), "");
  CHECK_EQ(write_brackets(two_trees()), "(ROOT (S (NP (NN dog)) (VBZ is)))\n(ROOT (A a))\n");
  PackedTrees word;  // a tree that is only a tag
  word.atoms.push_back("A");
  word.words.push_back("a");
  word.labels = {{0, none, none, 0}};
  word.label = {0};
  word.size = {1};
  word.word = {0};
  word.start = {0, 1};
  check_packed(word);
  CHECK_EQ(write_brackets(word), "(A a)\n");
}

TEST("packed trees: good arrays are accepted") {
  check_packed(PackedTrees());
  check_packed(two_trees());
  PackedTrees trees = two_trees();
  trees.ordinal.clear();  // what no index depends on may be missing
  trees.line.clear();
  check_packed(trees);
}

TEST("packed trees: forged arrays are rejected") {
  check_rejected([](PackedTrees& t) { t.start.clear(); });
  check_rejected([](PackedTrees& t) { t.start = {0}; });
  check_rejected([](PackedTrees& t) { t.start[0] = 1; });
  check_rejected([](PackedTrees& t) { t.start[2] = 6; });
  check_rejected([](PackedTrees& t) { t.start[2] = 8; });
  check_rejected([](PackedTrees& t) { t.start = {0, 5, 5, 7}; });  // an empty tree
  check_rejected([](PackedTrees& t) { t.start = {0, 100, 7}; });   // out of range in between
  check_rejected([](PackedTrees& t) { t.start = {0, none, 5, 7}; });
  check_rejected([](PackedTrees& t) { t.start = {0, 7}; });     // two roots in one tree
  check_rejected([](PackedTrees& t) { t.start = {0, 4, 7}; });  // a border inside a tree
  check_rejected([](PackedTrees& t) { t.label.pop_back(); });
  check_rejected([](PackedTrees& t) { t.size.pop_back(); });
  check_rejected([](PackedTrees& t) { t.word.push_back(0); });
  check_rejected([](PackedTrees& t) { t.label[3] = 6; });
  check_rejected([](PackedTrees& t) { t.label[3] = none; });
  check_rejected([](PackedTrees& t) { t.word[3] = 3; });
  check_rejected([](PackedTrees& t) { t.word[3] = none; });  // a phrase without children
  check_rejected([](PackedTrees& t) { t.word[2] = 0; });     // a tag with children
  check_rejected([](PackedTrees& t) { t.size[3] = 0; });
  check_rejected([](PackedTrees& t) { t.size[3] = 2; });
  check_rejected([](PackedTrees& t) { t.size[2] = 4; });     // beyond its parent
  check_rejected([](PackedTrees& t) { t.size[2] = none; });  // the sum would wrap around
  check_rejected([](PackedTrees& t) { t.size[0] = 4; });     // the root misses a node
  check_rejected([](PackedTrees& t) { t.size[0] = 7; });
  check_rejected([](PackedTrees& t) { t.labels[1].base = none; });
  check_rejected([](PackedTrees& t) { t.labels[1].base = static_cast<std::uint32_t>(t.atoms.size()); });
  check_rejected([](PackedTrees& t) { t.labels[1].head = static_cast<std::uint32_t>(t.atoms.size()); });
  check_rejected([](PackedTrees& t) { t.labels[1].parent = none - 1; });
  check_rejected([](PackedTrees& t) { t.labels.clear(); });
  check_rejected([](PackedTrees& t) { t.words = {}; });
  check_rejected([](PackedTrees& t) { t.atoms = {}; });
}

TEST("packed trees: corrupted arrays are rejected or safe to use") {
  Random random(21);
  std::string text;
  for (int i = 0; i < 5; ++i) text += random_tree(random);
  const PackedTrees valid = read(verbatim_recipe(), text);
  TreeRecipe recipe = default_recipe();
  recipe.treelet = 511;
  TreeWorker cleaner(std::make_shared<TreeRecipe>(recipe));
  recipe.strip = false;
  TreeWorker keeper(std::make_shared<TreeRecipe>(recipe));
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    PackedTrees trees = valid;
    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes) corrupt(random, trees);
    try {
      check_packed(trees);
    } catch (const Error& error) {
      CHECK_EQ(error.code(), ErrorCode::argument);
      continue;
    }
    ++accepted;
    CHECK(!write_brackets(trees).empty());
    const std::vector<std::uint32_t> heads = find_heads(trees, *english());
    CHECK_EQ(heads.size(), trees.label.size());
    for (std::size_t node = 0; node < heads.size(); ++node) CHECK((heads[node] == none) == (trees.word[node] != none));
    check_packed(cleaner.process(trees));
    check_packed(keeper.process(trees));
    cleaner.count_temporal_heads(trees);
  }
  CHECK(accepted > 500);
}
