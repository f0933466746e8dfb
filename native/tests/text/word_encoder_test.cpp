#include "text/word_encoder.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "tests/harness.h"
#include "text/encoder.h"
#include "text/stream_rule.h"
#include "text/unicode.h"

using namespace treelm;

namespace {

SignatureRules english_rules() { return {{"ed", "ing", "ion"}, "s", "siu", true, false}; }

std::shared_ptr<const WordEncoder> small_vocabulary() {
  const std::vector<std::string> symbols = {"<unk>", "the", "vexing", "UNK-LC-s", "UNK-INITC-KNOWNLC-ing", "UNK-INITC"};
  const std::vector<bool> is_signature = {false, false, false, true, true, true};
  return std::make_shared<WordEncoder>(symbols, is_signature, std::vector<WordEncoder::LateEntry>{{2, 5, 3}},
                                       english_rules());
}

// Every sentence as "document:id id ...;".
std::string show(const TextEncoder::Batch& batch) {
  std::ostringstream out;
  for (std::size_t i = 0; i < batch.starts.size(); ++i) {
    const std::uint64_t end = i + 1 < batch.starts.size() ? batch.starts[i + 1] : batch.ids.size();
    out << batch.documents[i] << ':';
    for (std::uint64_t at = batch.starts[i]; at < end; ++at) out << (at == batch.starts[i] ? "" : " ") << batch.ids[at];
    out << ';';
  }
  return out.str();
}

std::string encode_in_pieces(std::string_view text, test::Random& random, std::size_t most) {
  TextEncoder encoder;
  TextEncoder::Batch all;
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), random.below(most) + 1);
    encoder.feed(std::string(text.substr(0, size)));  // a copy, so that sanitizers see its end
    text.remove_prefix(size);
    if (random.chance(2)) continue;
    const TextEncoder::Batch batch = encoder.take();
    all.ids.insert(all.ids.end(), batch.ids.begin(), batch.ids.end());
    all.starts.insert(all.starts.end(), batch.starts.begin(), batch.starts.end());
    all.documents.insert(all.documents.end(), batch.documents.begin(), batch.documents.end());
  }
  encoder.finish();
  const TextEncoder::Batch batch = encoder.take();
  all.ids.insert(all.ids.end(), batch.ids.begin(), batch.ids.end());
  all.starts.insert(all.starts.end(), batch.starts.begin(), batch.starts.end());
  all.documents.insert(all.documents.end(), batch.documents.begin(), batch.documents.end());
  return show(all);
}

std::string encode_whole(std::string_view text) {
  TextEncoder encoder;
  encoder.feed(text);
  encoder.finish();
  return show(encoder.take());
}

template <class Act>
Place place_of(ErrorCode code, Act act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK_EQ(error.code(), code);
    return error.place();
  }
  CHECK(false);
  return {};
}

}  // namespace

TEST("word encoder: known words, signatures, the unknown symbol") {
  const auto vocabulary = small_vocabulary();
  CHECK_EQ(vocabulary->encode("the", 0), 1);
  CHECK_EQ(vocabulary->encode("dogs", 4), 3);
  CHECK_EQ(vocabulary->encode("Vexing", 0), 4);
  CHECK_EQ(vocabulary->encode("Vexing", 1), 0);  // UNK-CAPS-ing is no symbol
  CHECK_EQ(vocabulary->encode("UNK-LC-s", 0), 0);
  CHECK_EQ(vocabulary->encode("<unk>", 0), 0);
  CHECK_EQ(vocabulary->encode("", 0), 0);
  CHECK(vocabulary->is_unknown(3) && vocabulary->is_unknown(0) && !vocabulary->is_unknown(1));
  CHECK_THROWS_CODE(vocabulary->encode("<s>", 0), ErrorCode::reserved_symbol);
  CHECK_THROWS_CODE(vocabulary->encode_training("</s>", 1, 2), ErrorCode::reserved_symbol);
}

TEST("word encoder: a late word is unknown before its place in training text only") {
  const auto vocabulary = small_vocabulary();
  CHECK_EQ(vocabulary->encode("vexing", 0), 2);
  CHECK_EQ(vocabulary->encode_training("vexing", 5, 2), 0);
  CHECK_EQ(vocabulary->encode_training("vexing", 5, 3), 2);
  CHECK_EQ(vocabulary->encode_training("vexing", 6, 0), 2);
  CHECK_EQ(vocabulary->encode_training("Vexing", 5, 0), 0);
  CHECK_EQ(vocabulary->encode_training("Vexing", 6, 0), 4);
}

TEST("word encoder: impossible vocabularies are refused") {
  using Symbols_ = std::vector<std::string>;
  CHECK_THROWS_CODE(WordEncoder(Symbols_{}, {}, {}, {}), ErrorCode::argument);
  CHECK_THROWS_CODE(WordEncoder(Symbols_{"<unk>"}, {}, {}, {}), ErrorCode::argument);
  CHECK_THROWS_CODE(WordEncoder(Symbols_{"<unk>", "<unk>"}, {false, false}, {}, {}), ErrorCode::argument);
  CHECK_THROWS_CODE(WordEncoder(Symbols_{"<unk>"}, {false}, {{1, 1, 1}}, {}), ErrorCode::argument);
}

TEST("text encoder: sentences, documents and words") {
  CHECK_EQ(encode_whole(""), "");
  CHECK_EQ(encode_whole(" \n\r\n\t\n"), "");
  CHECK_EQ(encode_whole("a b a\nb"), "0:0 1 0;0:1;");
  CHECK_EQ(encode_whole("\n\na\r\n\nb\v\f c\n \t\r\n\nd"), "0:0;1:1 2;2:3;");
  CHECK_EQ(encode_whole("\xEF\xBB\xBF"
                        "a a"),
           "0:0 0;");
  CHECK_EQ(encode_whole("\xEF\xBB\xBF"
                        "a\n\xEF\xBB\xBF"
                        "a"),
           "0:0;0:1;");  // a mark only at the start
  CHECK_EQ(encode_whole(std::string_view("\0 \0\0 \0", 6)), "0:0 1 0;");
}

TEST("text encoder: blocks may be cut anywhere") {
  test::Random random(7);
  const std::vector<std::string> pieces = {
      "a",  "b",    " ",           "\n", "\r\n", "\n\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x8E\x84",
      "\t", "word", "\xEF\xBB\xBF"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random.below(30); i > 0; --i) text += pieces[random.below(pieces.size())];
    const std::string whole = encode_whole(text);
    for (const std::size_t most : {1, 2, 3, 7}) CHECK_EQ(encode_in_pieces(text, random, most), whole);
  }
}

TEST("text encoder: bad bytes are named by line and column, wherever blocks are cut") {
  const std::string text =
      "\xEF\xBB\xBF"
      "good line\r\n\nab \xC3\xA9 c\xE2\x82 d\nmore";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    const Place place = place_of(ErrorCode::encoding, [&] {
      TextEncoder encoder;
      encoder.feed(text.substr(0, cut));
      encoder.feed(text.substr(cut));
      encoder.finish();
    });
    CHECK_EQ(place.line, 3);
    CHECK_EQ(place.column, 8);
  }
  const Place at_end = place_of(ErrorCode::encoding, [] {
    TextEncoder encoder;
    encoder.feed("a\n\xEF\xBB");
    encoder.finish();
  });
  CHECK_EQ(at_end.line, 2);
  CHECK_EQ(at_end.column, 1);
  const Place half_mark = place_of(ErrorCode::encoding, [] {
    TextEncoder encoder;
    encoder.feed("\xEF\xBB");
    encoder.finish();
  });
  CHECK_EQ(half_mark.line, 1);
  CHECK_EQ(half_mark.column, 1);
}

TEST("text encoder: reserved words have a place, and lines before a bad one are read first") {
  for (const bool open : {true, false}) {
    const Place place = place_of(ErrorCode::reserved_symbol, [&] {
      std::unique_ptr<TextEncoder> encoder =
          open ? std::make_unique<TextEncoder>() : std::make_unique<TextEncoder>(small_vocabulary(), true, 1);
      encoder->feed("the\nthe </");
      encoder->feed("s> the\n\xFF\n");
    });
    CHECK_EQ(place.line, 2);
    CHECK_EQ(place.column, 5);
  }
}

TEST("text encoder: a closed vocabulary, in training and not") {
  for (const bool training : {false, true}) {
    TextEncoder encoder(small_vocabulary(), training, 4);
    encoder.feed("the vexing dogs\nthe dogs the vexing\n");
    encoder.finish();
    CHECK_EQ(show(encoder.take()), training ? "0:1 0 3;0:1 3 1 2;" : "0:1 2 3;0:1 3 1 2;");
    CHECK_EQ(encoder.unknown(), training ? 3 : 2);
  }
}

TEST("text encoder: very long words and lines") {
  TextEncoder encoder;
  const std::string piece(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 4; ++i) encoder.feed(piece);
  encoder.feed(" x\n");
  CHECK_EQ(show(encoder.take()), "0:0 1;");
  CHECK_EQ(encoder.words()[0].size(), std::size_t{4} << 20);
  CHECK_THROWS_CODE(for (int i = 0; i <= 64; ++i) encoder.feed(piece), ErrorCode::too_large);
}

TEST("text encoder: words and trees that are split already") {
  TextEncoder encoder;
  encoder.begin_sentence();
  encoder.add_word("a");
  encoder.begin_sentence();
  encoder.begin_sentence();
  encoder.add_word("b");
  for (const char* bad : {"", " ", "a b", "a\n", "\v"}) CHECK_THROWS_CODE(encoder.add_word(bad), ErrorCode::bad_token);
  encode_words(test::read(test::verbatim_recipe(), "(S (A b) (B (C c)))(S (A a))"), encoder);
  CHECK_EQ(show(encoder.take()), "0:0;0:;0:1;0:1 2;0:0;");
  CHECK_EQ(encoder.sentences(), 5);
  CHECK_EQ(encoder.counts()[1], 2);
  CHECK_EQ(encoder.first_counts()[1], 2);
}

// Equation (9.1) word by word, over sentences that are handed on in any stretches.
TEST("stream rule: as it is written") {
  test::Random random(11);
  const std::vector<std::string> words = {"a", "A", "vexing", "Vexing", "dogs", "%", "B-52"};
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t seed = random.below(100), start_after = random.below(4);
    TextEncoder encoder;
    StreamRule rule(seed, 0.6, start_after, english_rules());
    std::vector<std::string> known, made;
    const auto is_known = [&](std::string_view word) {
      return std::find(known.begin(), known.end(), word) != known.end();
    };
    for (std::uint64_t sentence = 1; sentence <= 8; ++sentence) {
      encoder.begin_sentence();
      for (std::uint64_t position = 0; position < random.below(5); ++position) {
        const std::string& word = words[random.below(words.size())];
        encoder.add_word(word);
        if (random.chance(3)) {
          const TextEncoder::Batch batch = encoder.take();
          rule.feed(encoder.words(), batch.ids, batch.starts);
        }
        if (is_known(word)) continue;
        if (sentence <= start_after || random_uniform(seed, sentence, position) >= 0.6) {
          known.push_back(word);
          continue;
        }
        std::string lower;
        lower_case(word, lower);
        made.push_back(signature(english_rules(), word, position, is_known(lower)));
      }
    }
    const TextEncoder::Batch batch = encoder.take();
    rule.feed(encoder.words(), batch.ids, batch.starts);
    for (std::uint32_t id = 0; id < encoder.words().size(); ++id)
      CHECK_EQ(rule.entry_sentence()[id] != 0, is_known(encoder.words()[id]));
    std::uint64_t total = 0;
    for (std::uint32_t id = 0; id < rule.signatures().size(); ++id) {
      total += rule.signature_counts()[id];
      CHECK_EQ(std::count(made.begin(), made.end(), rule.signatures()[id]), rule.signature_counts()[id]);
    }
    CHECK_EQ(total, made.size());
  }
  const std::vector<std::uint32_t> ids = {0};
  const std::vector<std::uint64_t> starts = {0}, far = {9};
  StreamRule rule(0, 0.1, 1, {});
  Symbols none_yet, one;
  one.intern("a");
  CHECK_THROWS_CODE(rule.feed(none_yet, ids, starts), ErrorCode::argument);
  CHECK_THROWS_CODE(rule.feed(one, {}, far), ErrorCode::argument);
}
