r"""Raw English text to Penn Treebank tokens, sentence by sentence, and back.

What is decided here where the Treebank leaves room:

* A period at the end of a sentence is a token of its own, also after an abbreviation (``Inc .``,
  ``p.m .``), as in the Treebank. ``U.S.`` alone keeps its period and gets a second one
  (``U.S. .``), again as there. A title or a connective (``Mr.``, ``vs.``) cannot end a sentence, so
  at the end of the text it keeps its only one. Elsewhere abbreviations, initials and acronyms keep
  theirs, and any other word loses it even inside a sentence.
* ``!`` and ``?`` are one token each (``?!`` is two). Runs of one ornament (``--``, ``***``,
  ``===``, ``~~~``) are one token. Three periods are ``...``, four are ``...`` and ``.``, two or
  more than four stay as they are.
* Three periods with spaces between them are ``...``. Emoticons are one token, brackets in them
  escaped (``;--RRB-``). Whatever has ``://`` in it is an address. ``4:45pm`` is two tokens,
  ``no.47`` is ``no. 47``, and ``didn`t`` is ``did n`t``.
* Straight quotes open at the start of a word and close elsewhere; one that stands alone closes
  what is open. An opening single quote is the Treebank's backtick.
* A dash, and an en dash that does not join two words, is ``--``.
* Scripts without spaces are not segmented: a run of letters is one token, with its combining marks.
* Control characters, soft hyphens and direction marks disappear. Unicode spaces and the zero width
  space separate.

Every pattern is possessive or bounded, so that time is linear in the length of any input.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from treelm.corpus.abbreviations import (
    CLIPPED_WORDS,
    CLITIC_STEMS,
    CLITICS,
    DOUBLED_FINAL,
    ELISION_STEMS,
    NEVER_FINAL,
    SPLIT_WORDS,
    is_listed,
    keeps_period,
)
from treelm.corpus.sentences import drop_invisible, split_sentences
from treelm.corpus.words import Words, check_raw, split_words, words_of

#: A paragraph longer than this many characters is emitted before its end is seen.
PARAGRAPH_LIMIT: Final = 1 << 20

# Combining marks and joiners are part of a word but not of \w. Blocks of scripts that write their
# vowels as marks are taken whole, except for the dandas, which end sentences.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u0669\u0670\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u07fd"
    "\u0816-\u082d\u0859-\u085b\u0890-\u0963\u0966-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ece"
    "\u0f18-\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u0fc6\u102b-\u1049\u1050-\u109d\u135d-\u135f"
    "\u1712-\u1734\u1752-\u1773\u17b4-\u17d3\u17dd\u180b-\u180f\u1885\u1886\u18a9\u1920-\u193b"
    "\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cfa"
    "\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\u2cef-\u2cf1\u2d7f\u2de0-\u2dff\u302a-\u302f\u3099"
    "\u309a\ua66f-\ua672\ua674-\ua67d\ua69e-\ua69f\ua6f0\ua6f1\ua802-\ua827\ua82c\ua880-\ua8c5"
    "\ua8e0-\ua8f1\ua8ff\ua926-\ua92d\ua947-\ua953\ua980-\ua9c0\ua9e5\uaa29-\uaa4d\uaa7b-\uaac1"
    "\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabed\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f\U00011000-\U00011ef6"
    "\U000e0100-\U000e01ef"
)
_W = rf"[\w{_MARKS}]"
_EMOJI = "[\u2600-\u27bf\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_HOST = rf"(?<!{_W})\w[\w-]{{0,62}}+(?:\.[\w-]{{1,63}}+){{1,8}}+"
_URL_END = r"\s<>\"()“”‘«»…`"
_URL_MARK = ".,;:!?'’"
_JOINERS = ".&+'’–‐‑/-"
#: Between letters: a backtick for an apostrophe, and letters that somebody hid.
_INSIDE = r"(?<=[^\W\d_])(?:`|\*{1,8}+)(?=[^\W\d_])"
#: No clitic follows these.
_NO_STEM_END: Final = frozenset(f"{_JOINERS}{_URL_MARK}`*")

# Faces, clock times and numbered things; tried only on chunks with a character that one of them
# must hold. Faces have brackets as they are or escaped, and no letter or digit beside them.
_EMOTICON = rf"""
    (?<!{_W})(?:
      [:;=]['’]?[-o^*]?(?:[()\[\]DPpO|*]|-[LR][RS]B-) | [:;]-[/\\]
    | (?:\(|-LRB-)[xX^]\.[xX^](?:\)|-RRB-) | \^_*\^ | -_+- | <3
    )(?!{_W}|[-/\\(]{_W})
"""
_ODD = rf"""
    {_EMOTICON}
  | (?:[Nn]os?|pp?|[Vv]ols?|[Ff]igs?)\.(?=\d)
  | \d{{1,2}}+:\d\d(?::\d\d)?+(?=(?i:[ap]\.?m)(?!{_W}))
"""
_ODD_SIGN = re.compile(r"[:;=^<]|-_|[xX^]\.[xX^]|[osplgOSPLG]\.\d")

# Addresses and paths; tried only on chunks with a character that one of them must hold.
_WEB = rf"""
    (?:(?<!{_W})[A-Za-z][A-Za-z0-9+.-]{{1,20}}+://(?=[^{_URL_END}{_URL_MARK}])|mailto:|(?<!{_W})www\.|{_HOST}/)
    (?:[^{_URL_END}{_URL_MARK}]++|\([^{_URL_END}]*+\)|[{_URL_MARK}]++(?=[^{_URL_END}{_URL_MARK}]))*+
  | (?<![\w.+-])[\w+-][\w.+-]{{0,63}}+@{_HOST}
  | (?<![\w@])@\w++
  | (?<![\w/\\.])(?:~|\.\.?|[A-Za-z]:)?[/\\](?=\w|\.\w)(?:[\w/\\~+%-]++|\.(?=[\w/\\]))++
"""
_WORD = rf"""
    -[LR][RSC]B-
  | ['’‘](?:(?i:{"|".join(CLITIC_STEMS)})(?!['’]|{_W}))
  | ['’‘](?:n['’]|(?i:{"|".join(ELISION_STEMS)})|\d\ds?)(?!{_W})
  | (?<!{_W})(?<!['’‘`])(?i:{"|".join(CLIPPED_WORDS).replace("'", "['’]")})(?!{_W})
  | (?<!{_W})(?:[^\W\d_]\.){{2,}}+(?!{_W}|[-/]{_W})
  | (?<!{_W})(?:US|HK|NZ|NT|Cdn|[ACRSZ])\$
  | (?<!{_W})[A-G]\#(?!{_W})
  | \d++(?:[.,]\d++)*+%-{_W}++(?:-{_W}++)*+
  | (?:(?<!{_W})(?<![-+−])[-+−]|\#(?=\d*+[^\W\d]))?+(?:\A\.|(?<![\w.])\.(?=\d))?+{_W}++
    (?:(?:\.?[-/]|-['’](?=\d\d)|(?<=\d)[,:](?=\d)|{_INSIDE}|[{_JOINERS}]){_W}++)*+
    (?:-(?!-)|\+\+?+)?+(?:\.(?!\.))?+
"""
_MARK = rf"""
    \.{{5,}}+|\.\.\.|\.\.?+
  | -++|=++|\*++|~++|\#++|\++
  | ``|''|’’
  | °[CFK](?!{_W})
  | {_EMOJI}(?:[{_MARKS}\U0001f3fb-\U0001f3ff]|(?<=\u200d){_EMOJI})*+
  | [\U0001f1e6-\U0001f1ff]{{1,2}}+
  | .
"""


# Compiled when a text first needs them: each takes milliseconds, and many texts do without.
@cache
def _plain_piece() -> re.Pattern[str]:
    return re.compile(f"{_WORD}|{_MARK}", re.VERBOSE | re.DOTALL)


@cache
def _odd_piece() -> re.Pattern[str]:
    return re.compile(f"{_ODD}|{_WORD}|{_MARK}", re.VERBOSE | re.DOTALL)


@cache
def _web_piece() -> re.Pattern[str]:
    return re.compile(f"{_WEB}|{_ODD}|{_WORD}|{_MARK}", re.VERBOSE | re.DOTALL)


@cache
def _emoticon_piece() -> re.Pattern[str]:
    return re.compile(_EMOTICON, re.VERBOSE)


#: How emoticons begin.
_FACES: Final = frozenset(":;=(-^<")

_BRACKET_NAMES = ("LR", "RR", "LS", "RS", "LC", "RC")
_BRACKETS: Final = {mark: f"-{name}B-" for mark, name in zip("()[]{}", _BRACKET_NAMES, strict=True)}
_OPEN_QUOTE_FORMS = dict.fromkeys("“„‟", "``") | {"‘": "`"}
_CLOSE_QUOTE_FORMS = {"”": "''", "’’": "''", "’": "'"}
_MARK_FORMS: Final = (
    _OPEN_QUOTE_FORMS | _CLOSE_QUOTE_FORMS | dict.fromkeys("—―–", "--") | {"…": "..."}
)
_ESCAPED_FORMS: Final = _MARK_FORMS | _BRACKETS
_STRAIGHT_QUOTES: Final = frozenset({'"', "'", "''"})
_CLOSING_TOKENS: Final = frozenset({"''", "'", "»", ")", "]", "}", "-RRB-", "-RSB-", "-RCB-"})


def tokenize(sentence: str, *, brackets: bool = True) -> list[str]:
    r"""Return the Penn Treebank tokens of one sentence of raw text.

    Tokenizing the tokens again, joined by spaces, changes nothing.

    Args:
        sentence: Raw text of one sentence.
        brackets: Whether to write brackets as ``-LRB-``, ``-RRB-`` and so on.

    Returns:
        The tokens, none of them empty and none with white space in it.

    Examples:
        >>> print(*tokenize('"It\'s $4.50 (50% off)," Mr. O\'Neill said.'))
        `` It 's $ 4.50 -LRB- 50 % off -RRB- , '' Mr. O'Neill said .
        >>> print(*tokenize("They can't sell the dogs' food in the U.S."))
        They ca n't sell the dogs ' food in the U.S. .
    """
    check_raw(sentence)
    chunks = drop_invisible(sentence).split()
    return _tokens_of(chunks, _ESCAPED_FORMS if brackets else _MARK_FORMS)[0]


class TokenizedWords(NamedTuple):
    """A sentence of raw text, with the tokens of each of its words."""

    words: tuple[str, ...]
    """Its words as written, split at white space."""
    tokens: tuple[str, ...]
    """The tokens of all words; a word of invisible characters has none."""
    ends: tuple[int, ...]
    """Where the tokens of each word end."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Where the tokens of each word begin."""
        return (0, *self.ends[:-1]) if self.ends else ()


def tokenize_words(sentence: str, *, brackets: bool = True) -> TokenizedWords:
    """Return what `tokenize` makes of a sentence, and which tokens come from which word.

    Args:
        sentence: Raw text of one sentence.
        brackets: As for `tokenize`.

    Examples:
        >>> tokenize_words("We can't stay.")
        TokenizedWords(words=('We', "can't", 'stay.'), tokens=('We', 'ca', "n't", 'stay', '.'), \
ends=(1, 3, 5))
    """
    words = split_words(sentence)
    chunks: list[str] = []
    last_chunk: list[int] = []
    for word in words:
        # Spaces that are not ASCII separate chunks inside a word.
        chunks += drop_invisible(word).split()
        last_chunk.append(len(chunks))
    tokens, ends = _tokens_of(chunks, _ESCAPED_FORMS if brackets else _MARK_FORMS)
    places = (0, *ends)
    return TokenizedWords(words, tuple(tokens), tuple(places[last] for last in last_chunk))


def _tokens_of(chunks: Sequence[str], forms: dict[str, str]) -> tuple[list[str], list[int]]:
    """Return the tokens of a sentence, and where those of each chunk end."""
    tokens: list[str] = []
    ends: list[int] = []
    for index, chunk in enumerate(chunks, 1):
        if chunk.isalpha():
            _append_word(tokens, chunk)
        else:
            _append_chunk(tokens, chunk, chunks[index] if index < len(chunks) else "", forms)
        ends.append(len(tokens))
    before = len(tokens)
    place = _settle_final_period(tokens)
    if len(tokens) > before:
        ends = [end + (end > place) for end in ends]
    return _with_ellipses(tokens, ends)


def _with_ellipses(tokens: list[str], ends: list[int]) -> tuple[list[str], list[int]]:
    """Return three periods, written with spaces between them, as one token of the last of them."""
    if tokens.count(".") < 3:
        return tokens, ends
    joined: list[str] = []
    lasts: list[int] = []
    for place, token in enumerate(tokens, 1):
        joined.append(token)
        lasts.append(place)
        if joined[-3:] == [".", ".", "."]:
            joined[-3:] = ["..."]
            del lasts[-3:-1]
    return joined, [bisect_right(lasts, end) for end in ends]


def _append_chunk(tokens: list[str], chunk: str, next_chunk: str, forms: dict[str, str]) -> None:
    is_web = "/" in chunk or "@" in chunk or "\\" in chunk or "www." in chunk or "mailto" in chunk
    piece_of = _web_piece if is_web else _odd_piece if _ODD_SIGN.search(chunk) else _plain_piece
    pieces: list[str] = piece_of().findall(chunk)
    last = len(pieces) - 1
    for index, piece in enumerate(pieces):
        form = forms.get(piece)
        if form is not None:
            tokens.append(form)
        elif piece in _STRAIGHT_QUOTES:
            before = tokens[-1] if index else ""
            after = pieces[index + 1] if index < last else ""
            opens = _quote_opens(piece, before, after, tokens)
            tokens.append(("`" if opens else "'") if piece == "'" else ("``" if opens else "''"))
        elif len(piece) == 1:
            tokens.append(piece)
        elif piece[0] in _FACES and _emoticon_piece().fullmatch(piece):
            tokens.append("".join(forms.get(mark, mark) for mark in piece.replace("’", "'")))
        elif piece[-1] == "." and piece.strip("."):
            if keeps_period(piece, pieces[index + 1] if index < last else next_chunk):
                tokens.append(piece)
            else:
                _append_word(tokens, piece[:-1])
                tokens.append(".")
        else:
            _append_word(tokens, piece)


def _append_word(tokens: list[str], word: str) -> None:
    if not word.isascii():
        word = word.replace("’", "'").replace("‘", "'")
    clitics: list[str] = []
    end = len(word)
    # Positions, not slices of the rest: a word of a million clitics must not be copied each time.
    while size := _clitic_size(word, end):
        clitics.append(word[end - size : end])
        end -= size
    stem = word[:end]
    parts = SPLIT_WORDS.get(stem.lower())
    if parts is None:
        tokens.append(stem)
    else:
        start = 0
        for part in parts:
            tokens.append(stem[start : start + len(part)])
            start += len(part)
    tokens += reversed(clitics)


def _clitic_size(word: str, end: int) -> int:
    """Return the length of the clitic that ends at `end`, 0 if there is none after a stem."""
    ending = word[max(end - 3, 1) : end]
    if "'" in ending:
        for size in (3, 2):
            if size < end and word[end - size : end].lower() in CLITICS:
                return size if word[end - size - 1] not in _NO_STEM_END else 0
    elif "`" in ending and ending.lower() == "n`t" and word[end - 4].isalpha():
        return 3
    return 0


def _quote_opens(quote: str, before: str, after: str, tokens: Sequence[str]) -> bool:
    """Tell the direction of a straight quote from its neighbours inside its chunk."""
    if quote == '"' and not before and not after:
        return not _is_inside_quotes(tokens)
    starts_something = after != "" and (
        after[0] not in ".,;:!?)]}%»”’–—-" or after in ("...", "…") or after[1:2].isalnum()
    )
    if not before or (before[-1] in "`([{<«-=/¿¡" and before not in _CLOSING_TOKENS):
        return starts_something
    return quote == '"' and before in ",;:" and starts_something and not _is_inside_quotes(tokens)


def _is_inside_quotes(tokens: Sequence[str]) -> bool:
    # Each call is followed by a quote token, where the next search stops: linear in total.
    return next((token == "``" for token in reversed(tokens) if token in ("``", "''")), False)


def _settle_final_period(tokens: list[str]) -> int:
    """Give the sentence its final period when its last word is an abbreviation; return where."""
    last = len(tokens) - 1
    while last >= 0 and tokens[last] in _CLOSING_TOKENS:
        last -= 1
    word = tokens[last] if last >= 0 else ""
    if not word.endswith(".") or not word.strip(".") or is_listed(word, NEVER_FINAL):
        return last
    tokens[last : last + 1] = [word if word in DOUBLED_FINAL else word[:-1], "."]
    return last


def tokenize_stream(lines: Iterable[str], *, split: bool = True) -> Iterator[list[str]]:
    """Yield the tokens of each sentence of a stream of raw text.

    With `split`, the lines up to a blank line are one paragraph, which is split into sentences. A
    paragraph longer than `PARAGRAPH_LIMIT` is emitted in parts, cut between sentences (or between
    lines, where a single sentence is that long), so that memory stays bounded. Without `split`,
    each line is one sentence and lines of input and output correspond one to one.

    Args:
        lines: Lines of text, with or without their newline.
        split: Whether to look for sentences.

    Yields:
        The tokens of a sentence, or an empty list between two documents (with `split`, one for any
        number of blank lines and none at either end; without it, one for every blank line).

    Examples:
        >>> list(tokenize_stream(["It rains. We", "stay.", "", "", "Why?"]))
        [['It', 'rains', '.'], ['We', 'stay', '.'], [], ['Why', '?']]
    """
    if not split:
        yield from map(tokenize, lines)
        return
    between_documents = False
    something_written = False
    for sentence in _stream_sentences(lines):
        tokens = tokenize(sentence)
        if not tokens:
            between_documents = something_written
            continue
        if between_documents:
            yield []
        yield tokens
        between_documents, something_written = False, True


def _stream_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of each paragraph, and an empty string after it."""
    buffer: list[str] = []
    size = 0
    for line in lines:
        if not line.strip():
            yield from split_sentences(" ".join(buffer))
            yield ""
            buffer, size = [], 0
            continue
        buffer.append(line)
        size += len(line)
        if size > PARAGRAPH_LIMIT:
            *complete, rest = split_sentences(" ".join(buffer)) or [""]
            yield from complete
            # Keeping a long rest would split the same text again for every line that follows.
            if len(rest) > PARAGRAPH_LIMIT // 2:
                yield rest
                rest = ""
            buffer, size = [rest], len(rest)
    yield from split_sentences(" ".join(buffer))


_PLAIN_FORMS: Final = {escape: mark for mark, escape in _BRACKETS.items()} | {"`": "'"}
_PLAIN_FORMS.update({"``": '"', "''": '"'})
_GLUED_LEFT: Final = frozenset(
    {*",.;:?!،؟۔।，。！？；：、", "...", *_CLOSING_TOKENS, *CLITICS, "n`t"}
)
_GLUED_RIGHT: Final = frozenset(
    {"``", "`", "«", "¿", "¡", "(", "[", "{", "-LRB-", "-LSB-", "-LCB-"}
)
_LONGEST_SPLIT: Final = max(map(len, SPLIT_WORDS.values()))


def detokenize(tokens: Words) -> str:
    r"""Return readable text for Penn Treebank tokens: `tokenize` undone, for plain English.

    Args:
        tokens: Tokens of one sentence, or a string of them with spaces between.

    Returns:
        Text with straight quotes and plain brackets, and spaces where English has them.

    Examples:
        >>> detokenize("`` It 's -LRB- almost -RRB- $ 5 , '' he said .")
        '"It\'s (almost) $5," he said.'
    """
    text: list[str] = []
    previous = ""
    given = words_of(tokens)
    inside = 0  # tokens of a split word that are still to come
    for place, token in enumerate(given):
        if token == "." and previous.endswith(".") and previous.strip("."):
            continue  # PTB's second period after "U.S." at the end of a sentence
        if previous and not inside and not _is_glued(previous, token):
            text.append(" ")
        inside = inside - 1 if inside else _rest_of_split_word(given, place)
        text.append(_PLAIN_FORMS.get(token) or _plain_emoticon(token))
        previous = token
    return "".join(text)


def _rest_of_split_word(tokens: Sequence[str], place: int) -> int:
    """Return how many tokens that follow belong to the same word as the one here."""
    for size in range(_LONGEST_SPLIT, 1, -1):
        parts = tuple(token.lower() for token in tokens[place : place + size])
        if len(parts) == size and SPLIT_WORDS.get("".join(parts)) == parts:
            return size - 1
    return 0


def _plain_emoticon(token: str) -> str:
    """Return an emoticon with its brackets as people type them, anything else as it is."""
    if token[0] not in _FACES or "RB-" not in token or not _emoticon_piece().fullmatch(token):
        return token
    for escape, mark in _PLAIN_FORMS.items():
        if len(escape) > 2:
            token = token.replace(escape, mark)
    return token


def _is_glued(previous: str, token: str) -> bool:
    if token == "..." and previous.endswith("."):
        return False
    if previous in _GLUED_RIGHT or token in _GLUED_LEFT or token.lower() in CLITICS:
        return True
    if previous[-1] in "$£€¥#" and len(previous) <= 4:
        return token[:1].isdigit() or token[:1] == "."
    return token == "%" and previous[-1].isdigit()
