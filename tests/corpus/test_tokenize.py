from __future__ import annotations

import doctest
import time
import unicodedata
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus import tokenize as module
from treelm.corpus.sentences import split_sentences
from treelm.corpus.tokenize import (
    PARAGRAPH_LIMIT,
    detokenize,
    tokenize,
    tokenize_stream,
)

# Raw text and its tokens joined by spaces.
PUNCTUATION = [
    ("", ""),
    ("   ", ""),
    (
        "Clone hg+ssh://me@example.org/a/b or gopher://old.example.",
        "Clone hg+ssh://me@example.org/a/b or gopher://old.example .",
    ),
    ("See (https://example.org/a).", "See -LRB- https://example.org/a -RRB- ."),
    ("Choose either://or", "Choose either://or"),
    ("That is fun :-) is it not ;)?", "That is fun :--RRB- is it not ;-RRB- ?"),
    ("So sad :( :'( ^_^ -_- <3", "So sad :-LRB- :'-LRB- ^_^ -_- <3"),
    ("He slept (x.x).", "He slept -LRB-x.x-RRB- ."),
    ("The list (see below): (a) one", "The list -LRB- see below -RRB- : -LRB- a -RRB- one"),
    ("Ratio=(a+b) is:(c)", "Ratio = -LRB- a+b -RRB- is : -LRB- c -RRB-"),
    ("Well . . . perhaps . . . .", "Well ... perhaps ... ."),
    ("I couldn`t ask Ka`ena, so I didn`t", "I could n`t ask Ka`ena , so I did n`t"),
    ("The bus left at 7:05am, not at 11:30PM.", "The bus left at 7:05 am , not at 11:30 PM ."),
    ("At 6:15p.m. we ate", "At 6:15 p.m. we ate"),
    ("See no.12, vol.3 and pp.4-7.", "See no. 12 , vol. 3 and pp. 4-7 ."),
    ("Dunno why, I dunno.", "Du n no why , I du n no ."),
    ("They fled No. Korea for So. Dakota.", "They fled No. Korea for So. Dakota ."),
    ("So. Why? No. Never.", "So . Why ? No . Never ."),
    ("She has a B. A. or an M. A.", "She has a B. A. or an M. A ."),
    ("What the h**l, d*mn it", "What the h**l , d*mn it"),
    ("It\x92s \x93fine\x94 \x96 he said", "It 's `` fine '' -- he said"),
    ("Hello", "Hello"),
    ("Yes, we can.", "Yes , we can ."),
    ("One; two: three!", "One ; two : three !"),
    ("What?! No!!!", "What ? ! No ! ! !"),
    ("Wait... what… really?", "Wait ... what ... really ?"),
    ("Hmm....", "Hmm ... ."),
    ("Contents ......... 5", "Contents ......... 5"),
    ("Yes - no -- maybe --- so", "Yes - no -- maybe --- so"),
    ("this--that", "this -- that"),
    ("this—that – those―these", "this -- that -- those -- these"),
    ("pages 5–6, well-known, e‑mail", "pages 5–6 , well-known , e‑mail"),
    ("mid- and long-term", "mid- and long-term"),
    ("*bold* *** === ~~~", "* bold * *** === ~~~"),
    ("key=value a|b x^2 <BP>", "key = value a | b x ^ 2 < BP >"),
    ("and/or June/July w/o", "and/or June/July w/o"),
    ("AT&T, S&P & R&D", "AT&T , S&P & R&D"),
    ("C++ and C# and .NET", "C++ and C# and .NET"),
    ("snake_case __init__", "snake_case __init__"),
    ("(a) [b] {c}", "-LRB- a -RRB- -LSB- b -RSB- -LCB- c -RCB-"),
    ("worker(s)", "worker -LRB- s -RRB-"),
    ("-LRB- a -RRB-", "-LRB- a -RRB-"),
]
QUOTES = [
    ('He said "hello" to me.', "He said `` hello '' to me ."),
    ('"Hello," he said.', "`` Hello , '' he said ."),
    ('"Why?" "Because!"', "`` Why ? '' `` Because ! ''"),
    ('("quoted") "(quoted)"', "-LRB- `` quoted '' -RRB- `` -LRB- quoted -RRB- ''"),
    ('" spaced out "', "`` spaced out ''"),
    ('said:"Hi" --"Ho"', "said : `` Hi '' -- `` Ho ''"),
    ('"...and so," he said', "`` ... and so , '' he said"),
    ("“Hello,” he said.", "`` Hello , '' he said ."),
    ("„Hello”", "`` Hello ''"),
    ("‘Hello’, he said.", "` Hello ' , he said ."),
    ("'Hello,' he said.", "` Hello , ' he said ."),
    ("\"'Nested,' he said,\" she said.", "`` ` Nested , ' he said , '' she said ."),
    ("``LaTeX'' and `x'", "`` LaTeX '' and ` x '"),
    ("''Typed twice''", "`` Typed twice ''"),
    ("«Bonjour» ‹oui›", "« Bonjour » ‹ oui ›"),
    ('"Time"\'s cover', "`` Time '' 's cover"),
    ("the letter 'd'", "the letter ` d '"),
    ("6'2\" tall", "6'2 '' tall"),
]
CONTRACTIONS = [
    ("don't can't won't ain't", "do n't ca n't wo n't ai n't"),
    ("DON'T IT'S", "DO N'T IT 'S"),
    ("it's they're I'll we've he'd I'm", "it 's they 're I 'll we 've he 'd I 'm"),
    ("don’t it’s they’re", "do n't it 's they 're"),
    ("shouldn't've", "should n't 've"),
    ("the dogs' food", "the dogs ' food"),
    ("the dogs’ food", "the dogs ' food"),
    ("the company's plan", "the company 's plan"),
    ("the U.S.'s role", "the U.S. 's role"),
    ("'Tis late, 'twas cold, ’tis", "'T is late , 't was cold , 't is"),
    ("Cannot, cannot", "Can not , can not"),
    ("gonna gotta gimme lemme wanna", "gon na got ta gim me lem me wan na"),
    ("d'ye know more'n that", "d' ye know more 'n that"),
    ("the '90s, '68, ’90s, ‘90s", "the '90s , '68 , '90s , '90s"),
    ("get 'em 'til ’em ‘em", "get 'em 'til 'em 'em"),
    ("rock 'n' roll", "rock 'n' roll"),
    ("mid-'50s 1980's", "mid-'50s 1980 's"),
    ("O'Neill o'clock ma'am y'all", "O'Neill o'clock ma'am y'all"),
    ("goin' nothin' ol' man", "goin' nothin' ol' man"),
    ("It 's do n't", "It 's do n't"),
]
NUMBERS = [
    ("1,234.56 and 7,000", "1,234.56 and 7,000"),
    ("a, 5,b", "a , 5 , b"),
    ("$4.50 $.50", "$ 4.50 $ .50"),
    ("£5 €6.50 ¥700", "£ 5 € 6.50 ¥ 700"),
    ("US$5 C$3 HK$2", "US$ 5 C$ 3 HK$ 2"),
    ("$400-a-share", "$ 400-a-share"),
    ("50% or 2.5%.", "50 % or 2.5 % ."),
    ("62%-owned", "62%-owned"),
    ("at 10:30, 3:2", "at 10:30 , 3:2"),
    ("3/4 34-1/2", "3/4 34-1/2"),
    ("-5 +3 -.5 (-2)", "-5 +3 -.5 -LRB- -2 -RRB-"),
    ("12/03/2024, 2024-03-12", "12/03/2024 , 2024-03-12"),
    ("1st 90s 5pm 20°C", "1st 90s 5pm 20 °C"),
    ("We are #1", "We are # 1"),
    ("v1.2.3, 2.0.1-rc1.", "v1.2.3 , 2.0.1-rc1 ."),
]
ABBREVIATIONS = [
    ("Mr. Smith met Dr. No.", "Mr. Smith met Dr. No ."),
    ("Apple Inc. in Calif. rose", "Apple Inc. in Calif. rose"),
    ("e.g. this, i.e., that", "e.g. this , i.e. , that"),
    ("J. R. R. Tolkien", "J. R. R. Tolkien"),
    ("a Ph.D. student", "a Ph.D. student"),
    ("U.S.-based, non-U.S. firms", "U.S.-based , non-U.S. firms"),
    ("Sen. Leahy (D-Vt.)", "Sen. Leahy -LRB- D-Vt . -RRB-"),
    ("cats, dogs, etc., too", "cats , dogs , etc. , too"),
    ("in No. 5", "in No. 5"),
    ("He said no. I left.", "He said no . I left ."),
    ("So do I. We left.", "So do I . We left ."),
    ("MR. SMITH", "MR. SMITH"),
    # The end of a sentence, as in the Treebank.
    ("He lives in the U.S.", "He lives in the U.S. ."),
    ("He lives in the U.S..", "He lives in the U.S. ."),
    ('"I live in the U.S."', "`` I live in the U.S. . ''"),
    ("Is it the U.S.?", "Is it the U.S. ?"),
    ("He works for Acme Inc.", "He works for Acme Inc ."),
    ("(He came at 5 p.m.)", "-LRB- He came at 5 p.m . -RRB-"),
    ("Plan B.", "Plan B ."),
    ("Mr.", "Mr."),
]
ADDRESSES = [
    ("See http://a.b/c?d=e&f=1#g.", "See http://a.b/c?d=e&f=1#g ."),
    ("(https://x.org/A_(b)), yes", "-LRB- https://x.org/A_(b) -RRB- , yes"),
    ('"www.x.org"!', "`` www.x.org '' !"),
    ("example.com/a?b=c, example.com.", "example.com/a?b=c , example.com ."),
    ("Write to me.too@x.co.uk, ok?", "Write to me.too@x.co.uk , ok ?"),
    ("Ask @joe_x: #nlp, #rock", "Ask @joe_x : #nlp , #rock"),
    ("/usr/local/bin/python3.11, ~/x.txt", "/usr/local/bin/python3.11 , ~/x.txt"),
    ("./run.sh ../a src/a_b/c.py.", "./run.sh ../a src/a_b/c.py ."),
    ("C:\\Users\\x.", "C:\\Users\\x ."),
    ("5 @ $3 / 4", "5 @ $ 3 / 4"),
]
UNICODE = [
    ("Привет, мир!", "Привет , мир !"),
    ("你好，世界。", "你好 ， 世界 。"),
    ("यह हिन्दी है।", "यह हिन्दी है ।"),
    ("cafe\u0301s, naïve", "cafe\u0301s , naïve"),
    ("👩\u200d👧 👍🏽🇫🇷!", "👩\u200d👧 👍🏽 🇫🇷 !"),
    ("a\u00a0b\u2009c\u3000d\u200be", "a b c d e"),
    ("a\x00b\x07 do\u00adcu\u200ement\ufeff", "ab document"),
    ("a\tb\r\nc\x1fd", "a b c d"),
    ("\ud800x", "\ud800 x"),
]
TABLE = [
    *PUNCTUATION,
    *QUOTES,
    *CONTRACTIONS,
    *NUMBERS,
    *ABBREVIATIONS,
    *ADDRESSES,
    *UNICODE,
]


@pytest.mark.parametrize(("raw", "expected"), TABLE)
def test_tokenize_follows_the_treebank(raw: str, expected: str) -> None:
    assert " ".join(tokenize(raw)) == expected


@pytest.mark.parametrize(("raw", "expected"), TABLE)
def test_tokenize_leaves_tokens_alone(raw: str, expected: str) -> None:
    assert tokenize(expected) == expected.split()


def test_tokenize_can_leave_brackets_plain() -> None:
    assert tokenize("(a) [b] {c}", brackets=False) == list("(a)[b]{c}")


def test_tokenize_keeps_combining_marks_with_their_letter() -> None:
    marks = [chr(code) for code in range(0x300, 0x10000)]
    for mark in (mark for mark in marks if unicodedata.category(mark) in ("Mn", "Mc")):
        assert tokenize(f"a{mark}b") == [f"a{mark}b"], hex(ord(mark))


SENTENCES = [
    [],
    ["Hello world"],
    ["One.", "Two!", "Three?", "Four"],
    ["Mr. Smith met Gen. Lee.", "He left."],
    ["J. R. R. Tolkien wrote it.", "C. S. Lewis did not."],
    ["He lives in the U.S.", "The end.", "The U.S. Senate met.", "U.S. Steel rose."],
    ["At 5 p.m. Monday he left.", "At 5 p.m.", "In the morning."],
    ["Born Jan. 5, 1962.", "Died in Dec.", "He was old."],
    ["No. 5 won.", "I said no.", "He left."],
    ["Acme Inc. Chairman Bob Jr. left.", "Smith vs. The Crown, etc.", "They lost."],
    ["A Ph.D. student at St. John.", "She has none."],
    ["It rose 5.5 to 1,234.5.", "3 fell.", "See 5.2 there."],
    ["Well... maybe.", "Well...", "Then go.", "Well… I think."],
    ["wait . . . what .", "Next"],
    ['"Stop!" he said.', '"Go."', '"No!"', "She left.", "(He did.)", "Then he slept."],
    ["“Stop!” he said.", "“Go.”", "‘Now.’", "Yes."],
    ["Yahoo! shares rose.", "Really?!", "Yes."],
    ["He met Acme Inc.", '"We left," he said.', 'J. "Jack" Smith came.'],
    ["1. Buy milk.", "2. Sell it.", "a) foo.", "b) bar"],
    ["II. More text.", "• One thing.", "• Another."],
    ["He left.", "-- There he is."],
    ["Visit example.com.", "Then e.g. The Hague."],
    ["So do I.", "Plan B.", "It failed."],
    ["यह है।", "वह है।"],
]


@pytest.mark.parametrize("sentences", SENTENCES)
def test_split_sentences_finds_the_sentences(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences
    assert split_sentences("\n".join(" ".join(sentences).split(" "))) == sentences


def test_split_sentences_needs_no_space_after_wide_marks() -> None:
    text = "你好。再见！「好？」他说。 ok"
    assert split_sentences(text) == ["你好。", "再见！", "「好？」", "他说。", "ok"]


def test_tokenize_stream_separates_documents_by_one_empty_list() -> None:
    lines = ["\n", " \n", "It rains. We\n", "stay.\n", "\n", "\x00\n", "\t\n", "Why?\n", "\n"]
    expected = [["It", "rains", "."], ["We", "stay", "."], [], ["Why", "?"]]
    assert list(tokenize_stream(lines)) == expected


def test_tokenize_stream_without_split_keeps_lines() -> None:
    lines = ["\n", "One. Two.\n", "\n", "\n", "Three\n"]
    expected: list[list[str]] = [[], ["One", ".", "Two", "."], [], [], ["Three"]]
    assert list(tokenize_stream(lines, split=False)) == expected


@pytest.mark.parametrize("split", [True, False])
def test_tokenize_stream_of_nothing_is_nothing(split: bool) -> None:
    assert list(tokenize_stream([], split=split)) == []


def test_tokenize_stream_flushes_an_endless_paragraph_between_sentences() -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield f"Line {read} begins here,\n" if read % 2 else f"and ends at {read}. Next.\n"

    sentences = list(islice(tokenize_stream(endless()), 60_000))
    assert read * 20 < 3 * PARAGRAPH_LIMIT
    assert sentences[::2] == [
        [*f"Line {n} begins here , and ends at {n + 1}".split(), "."] for n in range(1, 60_001, 2)
    ]
    assert all(sentence == ["Next", "."] for sentence in sentences[1::2])


def test_tokenize_stream_flushes_an_endless_sentence() -> None:
    lines = ("word " * 1000 for _ in range(1000))
    sizes = [len(sentence) for sentence in tokenize_stream(lines)]
    assert sum(sizes) == 1_000_000
    assert max(sizes) * 5 <= PARAGRAPH_LIMIT + 5000


READABLE = [
    '"It\'s (almost) $4.50," he said.',
    "They can't sell the dogs' food in the U.S.",
    'She asked: "Why?" and left; nobody cared!',
    "He cannot go, but he's gonna try.",
    "Sales rose 5.5% to US$1,234 [sic]...",
    "'Tis the season of the '90s, isn't it?",
    "Mr. O'Neill of Acme Inc. works at AT&T -- or so they'd say.",
    "I'll see whether we've met at 10:30 on 12/03/2024.",
    "'Hello,' he said.",
    "What?! No!",
    "They're the U.S.'s best (and £5 is enough).",
    "I dunno, we're gonna smile :-) or cry :'( and that's all :(",
    "It didn`t rain.",
    "¿Qué pasa? ¡Nada!",
    "Ask for no. 47 at git+ssh://example.org/x, or wait...",
]


@pytest.mark.parametrize("text", READABLE)
def test_detokenize_undoes_tokenize(text: str) -> None:
    assert detokenize(tokenize(text)) == text


def test_detokenize_of_nothing_is_empty() -> None:
    assert detokenize([]) == ""


FRAGMENTS = st.sampled_from(
    [
        *"aIS stno'\"`.,-/$%()1@#&:;!?+=_~*<>\\…—–’‘“”«» \xa0\u200b\u200d\u0301é中。😀",
        *("U.S.", "n't", "http://", "www.", "No. ", "'s", "''", "``", "mailto:", "cannot", "'tis"),
        *("-LRB-", "Mr.", "...", "don't", "'90s", "d'", "%-", "US$"),
        *(":-)", ";(", ":'-", "^_^", "-_-", "<3", "(x.x)", "-RRB-", "n`t", " . ", "4:45", "pm"),
        *("no.", "x+y://", "dunno", "So. ", "Korea", "B. ", "**", "p.m."),
    ]
)
TEXT = st.text() | st.lists(FRAGMENTS, max_size=16).map("".join)

# Every mapping that `tokenize` documents, applied to both sides of a comparison.
CANONICAL_FORMS = str.maketrans(
    {
        **dict.fromkeys('"“”„‟', "''"),
        **dict.fromkeys("‘’`", "'"),
        **dict.fromkeys("—―–", "--"),
        "…": "...",
    }
)


#: What old Windows text has instead of quotes, a bullet and dashes.
WINDOWS_MARKS = str.maketrans("\x91\x92\x93\x94\x95\x96\x97", "‘’“”•–—")


def canonical(text: str) -> str:
    text = text.translate(WINDOWS_MARKS)
    kept = (c for c in text if not c.isspace() and c not in "\xad\u200b\u200e\u200f\ufeff")
    visible = (c for c in kept if unicodedata.category(c) != "Cc" and not "\u202a" <= c <= "\u202e")
    return "".join(c for c in visible if not "\u2060" <= c <= "\u206f").translate(CANONICAL_FORMS)


@given(TEXT)
def test_tokenize_preserves_visible_characters(text: str) -> None:
    result = canonical("".join(tokenize(text, brackets=False)))
    expected = canonical(text)
    if result.count(".") == expected.count(".") + 1:  # U.S. at the end
        result = result.replace(".", "")
        expected = expected.replace(".", "")
    assert result == expected


@given(TEXT)
def test_tokenize_yields_tokens_without_spaces(text: str) -> None:
    tokens = tokenize(text)
    assert all(tokens)
    assert " ".join(tokens).split() == tokens
    assert not set("()[]{}").intersection(tokens)


@given(TEXT, st.booleans())
def test_tokenize_is_stable_on_its_own_output(text: str, brackets: bool) -> None:
    tokens = tokenize(text, brackets=brackets)
    assert tokenize(" ".join(tokens), brackets=brackets) == tokens


@given(TEXT)
def test_split_sentences_preserves_visible_characters(text: str) -> None:
    sentences = split_sentences(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert canonical("".join(sentences)) == canonical(text)


@given(st.lists(TEXT, max_size=6), st.booleans())
def test_tokenize_stream_accepts_any_lines(lines: list[str], split: bool) -> None:
    sentences = list(tokenize_stream(lines, split=split))
    if split:
        assert [] not in sentences[:1] + sentences[-1:]
        assert all(sentences[i] or sentences[i + 1] for i in range(len(sentences) - 1))
    else:
        assert len(sentences) == len(lines)


@given(TEXT)
def test_detokenize_accepts_any_tokens(text: str) -> None:
    tokens = tokenize(text)
    assert bool(detokenize(tokens)) == bool(tokens)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("a", '"', "'", ".", "(", "http://", "a.", "$", "-", ":-", "a`", "a*", "a+", "^_", ". "),
        *("'s", "a@", "~/.", "1%-", "a.a-", "U.S. ", "? ", '" ', "http://(", "😀\u200d", "。"),
    ],
)
def test_tokenize_takes_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    tokenize(text)
    split_sentences(text)
    # A quadratic pattern would need hours; the bound only has to tell the two apart.
    assert time.process_time() - start < 30


def test_tokenize_examples_in_docstrings_are_true() -> None:
    assert doctest.testmod(module).failed == 0
