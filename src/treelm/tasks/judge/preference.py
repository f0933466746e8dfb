"""What people preferred, how certain that is, and how far they agreed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from treelm.characters import visible
from treelm.corpus.files import Source
from treelm.errors import CorpusFormatError
from treelm.tasks.evaluate.resampling import ROUNDS
from treelm.tasks.evaluate.significance import LEVEL, bootstrap_mean_interval, sign_test
from treelm.tasks.judge.agreement import fleiss_kappa, krippendorff_alpha
from treelm.tasks.judge.key import Key, KeyItem, read_key
from treelm.tasks.judge.power import approximate_pairs
from treelm.tasks.judge.sheet import Rating, read_ratings

_SHARE = {"A": 1.0, "none": 0.5, "B": 0.0}


@dataclass(frozen=True, kw_only=True)
class Preference:
    """What people preferred.

    Args:
        system_a: System A, by the name of its file.
        system_b: System B.
        rate: Mean over the pairs of the share of ratings for A, where no preference is one half.
        low: Lower end of the 95 % interval of the rate, by bootstrap over pairs.
        high: Upper end.
        p: Two-sided p-value of the exact sign test over the decided pairs.
        pairs: Number of rated pairs.
        decided: Number of these with more ratings for one system than for the other.
        for_a: Number of decided pairs for A.
        for_b: Number of decided pairs for B.
        unrated: Number of pairs on the sheet that nobody rated.
        identical: Number of pairs not on the sheet because both texts were the same.
        ratings: Number of ratings, without those of repeated pairs.
        raters: Number of raters.
        alpha: Krippendorff's alpha; None where it is not defined.
        kappa: Fleiss' kappa; None where not all pairs were rated equally often.
        repeated: Number of second ratings of a pair by the same rater.
        self_agreement: Share of these that agree with the first; None if there are none.
        left_share: Share of the ratings for the left text, among those for one text.
        required: Number of decided pairs that detect a preference of 55 % with a power of 80 %.
        seed: Seed of the bootstrap, the same as that of the sheet.
    """

    system_a: str
    system_b: str
    rate: float
    low: float
    high: float
    p: float
    pairs: int
    decided: int
    for_a: int
    for_b: int
    unrated: int
    identical: int
    ratings: int
    raters: int
    alpha: float | None
    kappa: float | None
    repeated: int
    self_agreement: float | None
    left_share: float | None
    required: int
    seed: int

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        shown_p = "< 0.001" if self.p < 0.001 else f"= {self.p:.3f}"
        mark = "" if self.p <= LEVEL else ", not significant"
        return (
            f"{self.system_a} preferred to {self.system_b} in {self.rate:.1%} "
            f"(95 % interval {self.low:.1%} to {self.high:.1%}; {self.pairs} pairs, "
            f"{self.decided} decided, p {shown_p}{mark})"
        )

    def to_record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return asdict(self)


def import_judgements(sheets: Sequence[Source], key: Source) -> Preference:
    """Return what the raters of filled-in sheets preferred.

    Raises:
        CorpusFormatError: ``E_JUDGEMENTS`` with file and line for a malformed sheet, an item of
            another sheet, or a row rated twice by the same rater; ``E_JUDGE_KEY`` for an invalid
            key; ``E_NO_DATA`` if nothing was rated.
    """
    known = read_key(key)
    return measure_preference(known, (rating for sheet in sheets for rating in read_ratings(sheet)))


def measure_preference(key: Key, ratings: Iterable[Rating], *, rounds: int = ROUNDS) -> Preference:
    """Return what raters preferred, by the key of their sheet."""
    counted = _unblind(key, ratings)
    by_pair: dict[int, list[str]] = {}
    first: dict[tuple[str, int], str] = {}
    second: dict[tuple[str, int], str] = {}
    sides: list[bool] = []
    for rating, item, system in counted:
        (second if item.repeated else first)[rating.rater, item.pair] = system
        if not item.repeated:
            by_pair.setdefault(item.pair, []).append(system)
        if system != "none":
            sides.append(rating.choice == "left")
    if not by_pair:
        raise CorpusFormatError(
            "nothing was rated: the column preference is empty in every row.", code="E_NO_DATA"
        )
    shares = [sum(map(_SHARE.__getitem__, found)) / len(found) for found in by_pair.values()]
    low, high = bootstrap_mean_interval(shares, seed=key.seed, rounds=rounds)
    for_a, for_b = sum(share > 0.5 for share in shares), sum(share < 0.5 for share in shares)
    again = [first[who] == system for who, system in second.items() if who in first]
    units = list(by_pair.values())
    return Preference(
        system_a=key.systems["A"],
        system_b=key.systems["B"],
        rate=sum(shares) / len(shares),
        low=low,
        high=high,
        p=sign_test(for_a, for_b, alternative="two-sided"),
        pairs=len(by_pair),
        decided=for_a + for_b,
        for_a=for_a,
        for_b=for_b,
        unrated=len({item.pair for item in key.items} - by_pair.keys()),
        identical=key.identical,
        ratings=sum(map(len, units)),
        raters=len({rater for rater, _ in (*first, *second)}),
        alpha=krippendorff_alpha(units),
        kappa=fleiss_kappa(units),
        repeated=len(again),
        self_agreement=sum(again) / len(again) if again else None,
        left_share=sum(sides) / len(sides) if sides else None,
        required=approximate_pairs(),
        seed=key.seed,
    )


def _unblind(key: Key, ratings: Iterable[Rating]) -> list[tuple[Rating, KeyItem, str]]:
    """Return every rating with its row and the system that was preferred, or ``none``."""
    items = {item.item: item for item in key.items}
    seen: dict[tuple[str, str], str] = {}
    found = []
    for rating in ratings:
        item = items.get(rating.item)
        if item is None:
            _refuse(
                rating,
                f'the item "{visible(rating.item[:40])}" is not in the key; its items end in '
                f"-{visible(key.export[:40])}. Does the key belong to this sheet?",
            )
        elif (rating.rater, rating.item) in seen:
            _refuse(
                rating,
                f'"{visible(rating.rater[:40])}" already rated the item {visible(rating.item)}, '
                f"in {seen[rating.rater, rating.item]}. Write different names into the column "
                "rater for different raters.",
            )
        else:
            seen[rating.rater, rating.item] = rating.place
            other = "B" if item.left == "A" else "A"
            system = {"left": item.left, "right": other, "none": "none"}[rating.choice]
            found.append((rating, item, system))
    return found


def _refuse(rating: Rating, message: str) -> None:
    path, _, line = rating.place.rpartition(":")
    raise CorpusFormatError(
        f"{rating.place}: {message}", code="E_JUDGEMENTS", path=path, line=int(line)
    )
