// Profiles, head rules, and the temporal lexicon that is collected with them.
#include "trees/profile.h"

#include <algorithm>
#include <sstream>

#include "tests/harness.h"
#include "trees/worker.h"

using namespace treelm;
using treelm::test::default_recipe;
using treelm::test::english;
using treelm::test::english_data;
using treelm::test::Random;
using treelm::test::random_tree;
using treelm::test::read;
using treelm::test::verbatim_recipe;

namespace {

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> parts;
  for (std::string part; in >> part;) parts.push_back(part);
  return parts;
}

HeadStep step(HeadStep::Kind kind, bool from_right, const std::string& labels) {
  return {kind, from_right, split(labels)};
}

// A row of the table in the specification, "L" or "R" with a priority list.
HeadRow row(const std::string& parent, bool from_right, const std::string& labels) {
  HeadRow made{parent, from_right, {}};
  if (!labels.empty()) made.steps.push_back(step(HeadStep::Kind::priority, from_right, labels));
  return made;
}

}  // namespace

namespace treelm::test {

ProfileData english_data() {
  using Kind = HeadStep::Kind;
  ProfileData data;
  data.root_labels = split("TOP ROOT S1 VROOT");
  data.empty_tags = {"-NONE-"};
  data.drop_tags = split("CODE SU");
  data.flatten = {{"NML", "NP"}};
  data.punctuation_tags = split(", . : `` '' -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- NFP");
  data.head_rows = {
      row("ADJP", false, "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
      row("ADVP", true, "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
      row("CONJP", true, "CC RB IN"),
      row("FRAG", true, ""),
      row("PRN", false, ""),
      row("QP", false, "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
      row("S", false, "TO IN VP S SBAR ADJP UCP NP"),
      row("SBAR", false, "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
      row("SINV", false, "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
      row("VP", false, "TO VBD VBN MD VBZ VB VBG VBP AUX AUXG VP ADJP SYM NN NNS NP"),
      row("WHNP", false, "WDT WP WP$ WHADJP WHPP WHNP"),
      row("ROOT", false, "S SQ SINV SBAR FRAG"),
      {"PP", true, {step(Kind::priority, true, "IN TO VBG VBN RP FW"), step(Kind::priority, false, "PP")}},
  };
  for (const char* parent : {"NP", "NX", "NML"})
    data.head_rows.push_back({parent,
                              true,
                              {step(Kind::last, false, "POS"), step(Kind::any, true, "NN NNP NNPS NNS NX NML POS JJR"),
                               step(Kind::priority, false, "NP"), step(Kind::any, true, "$ ADJP PRN"),
                               step(Kind::priority, true, "CD"), step(Kind::any, true, "JJ JJS RB QP")}});
  data.coordinators = split("CC CONJP");
  data.coordination_skips = {"HYPH"};
  data.closed_tags = split("IN WDT PDT WP WP$ TO WRB RP DT SYM EX POS PRP AUX CC");
  data.closed_prefixes = split("VB AUX");
  data.closed_words =
      split("do does did done doing be am is are was were been being have has had having 's 're 'm 've 'd");
  data.bracket_words = split("-LRB- -RRB- -LCB- -RCB- -LSB- -RSB-");
  data.temporal_tags = {{"NN", "NNT"}, {"NNS", "NNTS"}, {"NNP", "NNTP"}, {"NNPS", "NNTPS"}};
  data.temporal_phrases = {"NP"};
  data.temporal_function = "TMP";
  data.noun_phrases = {"NP"};
  data.noun_phrase_separators = split("RB ADVP PRN");
  data.apposition_marks = split(", : -LRB-");
  data.number_tags = {"CD"};
  data.clause_flattening = {{"SBAR", "S"}};
  data.verb_phrases = {"VP"};
  data.gapped = split("S SBAR");
  data.parent_annotated = {"VP"};
  return data;
}

std::shared_ptr<const Profile> english() {
  static const auto profile = std::make_shared<const Profile>(english_data());
  return profile;
}

}  // namespace treelm::test

namespace {

// The text of the head child of the one tree below ROOT, in front of its label.
std::string head_in(const Profile& profile, const std::string& text) {
  const PackedTrees trees = read(verbatim_recipe(), "(ROOT " + text + ")");
  const std::uint32_t head = find_heads(trees, profile)[1];
  std::uint32_t child = 2;
  for (std::uint32_t i = 0; i < head; ++i) child += trees.size[child];
  std::string label;
  render_label(trees.atoms, trees.labels[trees.label[child]], label);
  return std::to_string(head) + " " + label;
}

std::string head_in(const std::string& text) { return head_in(*english(), text); }

std::string counts_of(const std::string& text) {
  TreeWorker worker(std::make_shared<TreeRecipe>(default_recipe()));
  std::string out;
  for (const TreeWorker::TemporalCount& count : worker.count_temporal_heads(read(verbatim_recipe(), text)))
    out += count.word + " " + std::to_string(count.temporal) + "/" + std::to_string(count.total) + "; ";
  return out;
}

}  // namespace

TEST("profile: labels know their sets") {
  const Profile& p = *english();
  CHECK_EQ(p.flags("TOP"), is_root_label);
  CHECK_EQ(p.flags("-NONE-"), is_empty_tag);
  CHECK_EQ(p.flags("CODE"), is_dropped);
  CHECK_EQ(p.flags("NML"), is_flattened);
  CHECK_EQ(p.flags(","), is_punctuation_tag | is_apposition_mark);
  CHECK_EQ(p.flags("."), is_punctuation_tag);
  CHECK_EQ(p.flags("CC"), is_coordinator | is_closed_tag);
  CHECK_EQ(p.flags("HYPH"), is_coordination_skip);
  CHECK_EQ(p.flags("NP"), is_noun_phrase | is_temporal_phrase);
  CHECK_EQ(p.flags("ADVP"), is_separator);
  CHECK_EQ(p.flags("CD"), is_number_tag);
  CHECK_EQ(p.flags("VP"), is_verb_phrase | takes_parent);
  CHECK_EQ(p.flags("SBAR"), may_be_gapped | splices_children);
  CHECK_EQ(p.flags("S"), may_be_gapped);
  CHECK_EQ(p.flags("NN"), is_temporal_source);
  CHECK_EQ(p.flags("NNT"), 0);
  CHECK_EQ(p.flags("VBZ"), has_closed_prefix);
  CHECK_EQ(p.flags("AUX"), has_closed_prefix | is_closed_tag);
  CHECK_EQ(p.flags("VBXYZ"), has_closed_prefix);  // a label no list names
  CHECK_EQ(p.flags("unheard"), 0);
  CHECK_EQ(p.flags(""), 0);
  for (const char* label : {"A@", "A+B", "S^ROOT", "X|Y", "\\"}) CHECK_EQ(p.flags(label), has_reserved_char);
}

TEST("profile: fixed atoms, names and words") {
  const Profile& p = *english();
  const auto atom = [&](const char* text) { return p.atoms().find(text); };
  CHECK_EQ(p.atoms()[p.root()], "ROOT");
  const char* const classes[] = {"YR", "MX", "DC", "NM", "AL"};
  for (int i = 0; i < 5; ++i) CHECK_EQ(p.atoms()[p.number_class(i)], classes[i]);
  CHECK_EQ(p.temporal_tag(atom("NNPS")), atom("NNTPS"));
  CHECK_EQ(p.temporal_tag(atom("NP")), none);
  CHECK_EQ(p.temporal_tag(none), none);
  CHECK(p.splices(atom("SBAR"), atom("S")));
  CHECK(!p.splices(atom("S"), atom("SBAR")) && !p.splices(atom("SBAR"), none));
  CHECK_EQ(p.name_below_root(atom("NML")), atom("NP"));
  CHECK_EQ(p.name_below_root(atom("NP")), none);
  CHECK_EQ(p.name_below_root(none), none);
  CHECK(p.is_closed_word("'s") && p.is_closed_word("been") && !p.is_closed_word("Been") && !p.is_closed_word(""));
  CHECK(p.is_bracket_word("-LRB-") && !p.is_bracket_word("-lrb-"));
  CHECK(!p.punctuation_by_word());
  CHECK_EQ(p.temporal_function(), "TMP");
}

TEST("profile: an empty profile works") {
  const Profile empty{ProfileData()};
  CHECK_EQ(empty.flags("ROOT"), 0);
  const HeadCandidate children[] = {{7, true}, {none, false}, {9, false}};
  CHECK_EQ(empty.head_child(empty.root(), children), 1);
  CHECK_EQ(empty.head_child(none, children), 1);
  ProfileData data;
  data.default_right = true;
  CHECK_EQ(Profile(data).head_child(none, children), 2);
}

TEST("profile: impossible profiles are rejected") {
  ProfileData data;
  for (int i = 0; i < 254; ++i) data.coordinators.push_back(std::to_string(i));
  data.head_rows = {{"X", false, {{HeadStep::Kind::any, false, data.coordinators}}}};
  const HeadCandidate children[] = {{none, false}, {Profile(data).atoms().find("253"), false}};
  CHECK_EQ(Profile(data).head_child(Profile(data).atoms().find("X"), children), 1);
  data.head_rows[0].steps[0].labels.push_back("one more");
  CHECK_THROWS_CODE(Profile{data}, ErrorCode::argument);
  data = {};
  for (int i = 0; i < 60000; ++i) data.drop_tags.push_back(std::to_string(i));
  CHECK_THROWS_CODE(Profile{data}, ErrorCode::argument);
}

TEST("heads: the examples of the specification") {
  CHECK_EQ(head_in("(NP (DT the) (NN dog) (PP (IN of)))"), "1 NN");
  CHECK_EQ(head_in("(VP (TO to) (VP (VB go)))"), "0 TO");
  CHECK_EQ(head_in("(NP (NP (X a)) (CC and) (NP (X b)))"), "0 NP");
  CHECK_EQ(head_in("(NP (NN cat) (CC and) (NN dog))"), "0 NN");
  CHECK_EQ(head_in("(PP (PP (X a)) (, ,) (PP (X b)) (CC and) (PP (X c)))"), "0 PP");
  CHECK_EQ(head_in("(NP (NN gain) (HYPH -) (CC and) (NN loss))"), "0 NN");
  CHECK_EQ(head_in("(NP (NN skill) (CC and) (SYM /) (CC or) (NN luck))"), "4 NN");
}

TEST("heads: kinds of steps") {
  CHECK_EQ(head_in("(S (NP (X a)) (VP (X b)) (IN c))"), "2 IN");    // list order beats position
  CHECK_EQ(head_in("(S (VP (X a)) (VP (X b)))"), "0 VP");           // from the left
  CHECK_EQ(head_in("(ADVP (IN a) (RB b) (RB c) (NN d))"), "2 RB");  // from the right
  CHECK_EQ(head_in("(NP (JJR a) (NN b) (JJ c))"), "1 NN");          // position beats list order
  CHECK_EQ(head_in("(NP (NN a) (POS 's))"), "1 POS");               // the last child
  CHECK_EQ(head_in("(NP (POS 's) (XX a))"), "0 POS");               // found by the second step instead
  CHECK_EQ(head_in("(NP (NP (X a)) (JJ b) (CD c))"), "0 NP");       // third step
  CHECK_EQ(head_in("(NP (JJ a) ($ b) (CD c))"), "1 $");
  CHECK_EQ(head_in("(NP (JJ a) (CD b) (CD c) (JJ d))"), "2 CD");
  CHECK_EQ(head_in("(NP (DT a) (JJ b) (DT c))"), "1 JJ");
  CHECK_EQ(head_in("(PP (PP (X a)) (PP (X b)) (XX c))"), "0 PP");  // second step, other side
  CHECK_EQ(head_in("(NP (NNT today) (JJ b))"), "0 NNT");           // counts as NN
}

TEST("heads: defaults pass over punctuation") {
  CHECK_EQ(head_in("(NP (DT a) (UH b) (, ,) (. .))"), "1 UH");
  CHECK_EQ(head_in("(PRN (-LRB- -LRB-) (UH b) (UH c))"), "1 UH");
  CHECK_EQ(head_in("(PRN (, ,) (. .))"), "0 ,");
  CHECK_EQ(head_in("(FRAG (, ,) (. .))"), "1 .");
  CHECK_EQ(head_in("(FRAG (UH a) (HYPH -))"), "1 HYPH");
  CHECK_EQ(head_in("(UNHEARD (, ,) (AA a) (BB b))"), "1 AA");
  CHECK_EQ(head_in("(UNHEARD (, ,))"), "0 ,");
}

TEST("heads: the coordination repair") {
  CHECK_EQ(head_in("(NP (CC and) (NN b))"), "1 NN");  // needs something before
  CHECK_EQ(head_in("(NP (NN a) (, ,) (CC and) (NN b))"), "0 NN");
  CHECK_EQ(head_in("(NP (NN a) (CONJP (CC and)) (NN b))"), "0 NN");
  CHECK_EQ(head_in("(NP (JJ a) (CC and) (NN b))"), "0 JJ");                 // listed in another step
  CHECK_EQ(head_in("(NP (UH a) (CC and) (NN b))"), "2 NN");                 // neither listed nor the same
  CHECK_EQ(head_in("(NP (, ,) (HYPH -) (CC and) (NN b))"), "3 NN");         // no target
  CHECK_EQ(head_in("(NP (NN a) (CC or) (NN b) (CC and) (NN c))"), "2 NN");  // once
  CHECK_EQ(head_in("(NP (UH a) (CC and) (UH b))"), "2 UH");                 // never after a default
  CHECK_EQ(head_in("(NP (NNT a) (CC and) (NN b))"), "0 NNT");
  CHECK_EQ(head_in("(NP (NN a) (NN b) (CC and) (NN c) (PP (IN d)))"), "1 NN");
}

TEST("heads: punctuation may be told by the word") {
  ProfileData data = english_data();
  data.punctuation_tags.clear();
  data.punctuation_by_word = true;
  const Profile profile(data);
  CHECK(profile.punctuation_by_word());
  CHECK_EQ(head_in(profile, "(PRN (AA --) (BB \u3002) (CC 3))"), "2 CC");
  CHECK_EQ(head_in(profile, "(PRN (AA --) (BB .) )"), "0 AA");
  CHECK_EQ(head_in("(PRN (AA --) (BB \u3002) (CC 3))"), "0 AA");
}

TEST("heads: tags have none, and unknown labels are told apart") {
  const PackedTrees trees = read(verbatim_recipe(), "(ROOT (S (A a) (B b)))");
  CHECK(find_heads(trees, *english()) == std::vector<std::uint32_t>({0, 0, none, none}));
  ProfileData data;
  data.coordinators = {"CC"};
  data.head_rows = {{"S", false, {{HeadStep::Kind::last, false, {"L"}}}}};
  // The repair moves only to the same label, and labels the profile never heard of differ.
  CHECK_EQ(head_in(Profile(data), "(S (U a) (CC c) (L b))"), "2 L");
  CHECK_EQ(head_in(Profile(data), "(S (L a) (CC c) (L b))"), "0 L");
}

TEST("heads: packed trees and the annotating worker agree") {
  Random random(31);
  TreeRecipe recipe = default_recipe();
  recipe.treelet = 2;  // heads only: every phrase then tells its lexical head
  TreeWorker annotate(std::make_shared<TreeRecipe>(recipe));
  for (int round = 0; round < 500; ++round) {
    const PackedTrees plain = read(default_recipe(), random_tree(random));
    const PackedTrees annotated = annotate.process(plain);
    CHECK(plain.size == annotated.size);
    const std::vector<std::uint32_t> heads = find_heads(plain, *english());
    for (std::uint32_t node = 1; node < plain.label.size(); ++node) {
      if (plain.word[node] != none) continue;
      std::uint32_t child = node + 1;
      for (std::uint32_t i = 0; i < heads[node]; ++i) child += plain.size[child];
      if (plain.word[child] != none) continue;
      // A phrase and its phrasal head child have the same lexical head.
      const auto head = [&](std::uint32_t at) { return annotated.labels[annotated.label[at]].head; };
      CHECK_EQ(annotated.atoms[head(node)], annotated.atoms[head(child)]);
    }
  }
}

TEST("temporal lexicon: heads of noun phrases are counted") {
  CHECK_EQ(counts_of("(S (NP-SBJ (NN Dog)) (NP-TMP (NN Monday)) (NP (NN monday)))"),
           "dog 0/1; monday 1/1; monday 0/1; ");
  CHECK_EQ(counts_of("(S (NP-SBJ-TMP=2 (NNS months)) (NP-TMPX (NNS months)) (PP-TMP (NN week)))"), "months 1/2; ");
  CHECK_EQ(counts_of("(S (NP-TMP (RB today)) (NP-TMP (-NONE- *)) (NP-TMP (NP (DT a) (NN day)) (-NONE- *)))"),
           "today 0/1; day 1/2; ");
  CHECK_EQ(counts_of("(NP-TMP (-NONE- *))"), "");
  CHECK_EQ(counts_of(""), "");
}
