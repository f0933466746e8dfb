"""The temporal lexicon: nouns that head temporal noun phrases in a treebank with function tags."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from treelm.corpus.brackets import OnError, ReadOptions, contains_trees, read_packed
from treelm.corpus.files import (
    Source,
    can_be_read_twice,
    read_lines,
    source_name,
    write_atomically,
)
from treelm.errors import CorpusFormatError, TreelmWarning, option
from treelm.trees.profile import ProfileSource, load_profile


@dataclass(frozen=True, slots=True)
class TemporalLexicon:
    """Lower-cased nouns, with how often each heads a temporal phrase and any noun phrase.

    Examples:
        >>> lexicon = TemporalLexicon({"monday": (9, 10), "time": (1, 80)})
        >>> sorted(lexicon.words()), sorted(lexicon.words(min_share=0.1))
        (['monday', 'time'], ['monday'])
    """

    counts: dict[str, tuple[int, int]]

    @classmethod
    def collect(
        cls,
        sources: Iterable[Source],
        profile: ProfileSource = "english",
        *,
        on_error: OnError = "raise",
        threads: int = 1,
    ) -> TemporalLexicon:
        """Return the lexicon of treebank files that still have their function tags."""
        temporal: Counter[str] = Counter()
        total: Counter[str] = Counter()
        recipe = ReadOptions(profile=profile).recipe()
        raw = ReadOptions(profile=profile, strip=False)
        for source in sources:
            for batch in read_packed(source, raw, on_error=on_error, threads=threads):
                for word, as_temporal, as_any in recipe.count_temporal_heads(batch.native):
                    temporal[word] += as_temporal
                    total[word] += as_any
        return cls(
            {word: (temporal[word], total[word]) for word in sorted(total) if temporal[word]}
        )

    def words(self, *, min_count: int = 1, min_share: float = 0.0) -> frozenset[str]:
        """Return the nouns that count as temporal.

        Args:
            min_count: Smallest number of temporal phrases headed (1: every one, as Pauls & Klein).
            min_share: Smallest share of a noun's phrases that are temporal; 0.1 with a `min_count`
                of 2 removes noise such as *time* and *may*.
        """
        return frozenset(
            word
            for word, (temporal, total) in self.counts.items()
            if temporal >= min_count and temporal / total >= min_share
        )

    def save(self, path: Source) -> None:
        """Write the lexicon as text: word, count as temporal head, count as any head."""
        with write_atomically(path) as file:
            for word, (temporal, total) in sorted(self.counts.items()):
                file.write(f"{word}\t{temporal}\t{total}\n".encode())

    @classmethod
    def load(cls, path: Source) -> TemporalLexicon:
        """Read what `save` wrote; a bare list of words, one per line, will do."""
        counts: dict[str, tuple[int, int]] = {}
        for number, line in enumerate(read_lines(path), 1):
            fields = line.split("\t")
            if not fields[0]:
                continue
            try:
                temporal, total = (int(fields[1]), int(fields[2])) if len(fields) > 1 else (1, 1)
            except (ValueError, IndexError) as error:
                raise CorpusFormatError(
                    f"{path}:{number}: expected word TAB count TAB count, or a word alone.",
                    code="E_LEXICON",
                    path=str(path),
                    line=number,
                ) from error
            if len(fields[0].split()) != 1 or "(" in fields[0]:
                raise CorpusFormatError(
                    f"{source_name(path)}:{number}: a lexicon has one word per line; is this "
                    "text or a treebank?",
                    code="E_LEXICON",
                    path=source_name(path),
                    line=number,
                )
            counts[annotation_form(fields[0])] = (temporal, max(temporal, total, 1))
        return cls(counts)


def annotation_form(word: str) -> str:
    """Return a word as annotations write it: lower case with straight apostrophes.

    Examples:
        >>> annotation_form("O\u2019Clock")
        "o'clock"
    """
    return word.lower().replace("\u2019", "'").replace("\u2018", "'")


def collect_temporal_words(
    files: Iterable[Source], profile: ProfileSource, *, threads: int = 1
) -> frozenset[str]:
    """Return the nouns that head temporal phrases in trees; malformed ones are skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # the reading proper says it again
        return TemporalLexicon.collect(files, profile, on_error="skip", threads=threads).words()


def find_temporal_words(
    files: Iterable[Source],
    lexicon: Source | None,
    profile: ProfileSource,
    *,
    threads: int = 1,
    collect: Callable[[list[Source]], frozenset[str]] | None = None,
) -> frozenset[str]:
    """Return the temporal nouns for T1.

    Args:
        files: The trees about to be transformed; used when they have function tags.
        lexicon: A saved lexicon, or a treebank with function tags; takes precedence.
        profile: Language profile.
        threads: Kernel threads.
        collect: Reads the trees in place of `collect_temporal_words`.
    """
    if lexicon is not None and not contains_trees(lexicon):
        return TemporalLexicon.load(lexicon).words()
    given = (
        [lexicon] if lexicon is not None else [file for file in files if can_be_read_twice(file)]
    )
    if not load_profile(profile).treelet.temporal_tags:
        return frozenset()
    if collect is not None and lexicon is None:
        words = collect(given)
    else:
        words = collect_temporal_words(given, profile, threads=threads)
    if not words:
        warnings.warn(
            "no temporal nouns are known, so T1 (temporal_nouns) changes nothing. They are "
            "collected from files with function tags (NP-TMP), never from standard input; give "
            f"{option('temporal')} with a lexicon or such a treebank.",
            TreelmWarning,
            stacklevel=2,
        )
    return words
