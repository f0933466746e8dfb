"""Judgements of people: sheets, keys, preference, agreement, power."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.tasks.refused_files import assert_content_refused

from treelm.errors import CorpusFormatError, TreelmError, UsageError
from treelm.tasks.judge.agreement import fleiss_kappa, krippendorff_alpha
from treelm.tasks.judge.export import Export, export_pairs, key_beside
from treelm.tasks.judge.key import Key, KeyItem, read_key
from treelm.tasks.judge.power import approximate_pairs, exact_pairs, sign_test_power
from treelm.tasks.judge.preference import Preference, import_judgements, measure_preference
from treelm.tasks.judge.sheet import Choice, Rating, read_ratings

# -- power ----------------------------------------------------------------------------------


def test_required_pairs_are_those_of_the_literature() -> None:
    assert approximate_pairs() == 783
    assert sign_test_power(783) == pytest.approx(0.789, abs=5e-4)
    assert exact_pairs() == 820
    assert sign_test_power(819) < 0.8
    assert all(sign_test_power(n) >= 0.8 for n in range(820, 900))


def test_power_by_hand() -> None:
    # Six pairs: only 0 or 6 wins are significant (2/64 <= 0.05).
    assert sign_test_power(6, 0.9) == pytest.approx(0.9**6 + 0.1**6)
    assert sign_test_power(5, 0.9) == 0
    assert sign_test_power(0) == 0
    assert approximate_pairs(0.6) < approximate_pairs(0.55) < approximate_pairs(0.55, power=0.9)


@pytest.mark.parametrize(("preference", "power"), [(0.5, 0.8), (1.0, 0.8), (0.6, 1.0), (0.6, 0.01)])
def test_impossible_plans_are_refused(preference: float, power: float) -> None:
    with pytest.raises(UsageError):
        approximate_pairs(preference, power)


# -- agreement ------------------------------------------------------------------------------


def test_krippendorff_alpha_with_missing_ratings_by_hand() -> None:
    # Krippendorff's example of four observers and twelve units; the last unit has one rating.
    observers = ["123321412___", "1233224125_3", "_3332342251_", "12332441251_"]
    units = [[o[u] for o in observers if o[u] != "_"] for u in range(12)]
    # 40 pairable values, 9 x 1, 13 x 2, 10 x 3, 5 x 4, 3 x 5; disagreeing pairs: unit 2 has
    # three 2 and a 3 (6/3), unit 6 four different (12/3), unit 8 three 1 and a 2 (6/3).
    totals = Counter(value for unit in units if len(unit) > 1 for value in unit)
    assert dict(totals) == {"1": 9, "2": 13, "3": 10, "4": 5, "5": 3}
    expected = 1 - 39 * (2 + 4 + 2) / (40**2 - (81 + 169 + 100 + 25 + 9))
    assert expected == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units) == pytest.approx(expected, abs=1e-12)


def test_fleiss_kappa_by_hand() -> None:
    # Three raters, four things; they agree in 1, 1/3, 1/3, 1; A and B are equally frequent.
    units = ["AAA", "AAB", "ABB", "BBB"]
    chance = 0.5
    agreed = (1 + 1 / 3 + 1 / 3 + 1) / 4
    assert fleiss_kappa(units) == pytest.approx((agreed - chance) / (1 - chance), abs=1e-12)
    assert fleiss_kappa(["AB", "AB"]) == -1
    # Fleiss' kappa of two raters is Scott's pi: agreement 3/4, chance (5/8)^2 + (3/8)^2.
    assert fleiss_kappa(["AA", "AA", "AB", "BB"]) == pytest.approx((0.75 - 34 / 64) / (30 / 64))


def test_agreement_that_is_not_defined() -> None:
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha(["A", "B"]) is None
    assert krippendorff_alpha(["AA", "AA"]) is None
    assert krippendorff_alpha(["AA", "BBB"]) == 1
    assert fleiss_kappa([]) is None
    assert fleiss_kappa(["AA", "ABB"]) is None
    assert fleiss_kappa(["A", "B"]) is None
    assert fleiss_kappa(["AA", "AA"]) is None


# -- preference -----------------------------------------------------------------------------


def key_of(pairs: int, *, left: str = "A", repeated: tuple[int, ...] = ()) -> Key:
    items = [KeyItem(item=f"{p}-x", pair=p, left=left) for p in range(1, pairs + 1)]  # type: ignore[arg-type]
    items += [KeyItem(item=f"{p}r-x", pair=p, left="B", repeated=True) for p in repeated]
    return Key(
        export="x",
        seed=1,
        systems={"A": "a.txt", "B": "b.txt"},
        sha256={},
        pairs=pairs,
        identical=2,
        items=items,
    )


def rated(answers: dict[str, dict[str, Choice]]) -> list[Rating]:
    """Return ratings by rater and item."""
    return [
        Rating(item, rater, choice, f"f.csv:{line}")
        for rater, found in answers.items()
        for line, (item, choice) in enumerate(found.items(), 2)
    ]


def test_preference_is_a_mean_over_pairs_not_ratings() -> None:
    answers: dict[str, dict[str, Choice]] = {
        "r1": {"1-x": "left", "2-x": "right", "3-x": "none"},
        "r2": {"1-x": "left", "3-x": "left"},
        "r3": {"1-x": "none"},
    }
    found = measure_preference(key_of(4), rated(answers))
    # Shares for A: (1 + 1 + 1/2)/3, 0, (1/2 + 1)/2.
    assert found.rate == pytest.approx((2.5 / 3 + 0 + 0.75) / 3)
    assert (found.pairs, found.decided, found.for_a, found.for_b) == (3, 3, 2, 1)
    assert (found.unrated, found.identical, found.ratings, found.raters) == (1, 2, 6, 3)
    assert found.p == 1.0
    assert found.kappa is None
    assert found.left_share == pytest.approx(3 / 4)
    assert found.low <= found.rate <= found.high
    assert found == measure_preference(key_of(4), reversed(rated(answers)))


def test_sides_are_unblinded() -> None:
    everything: dict[str, dict[str, Choice]] = {"r": {f"{p}-x": "left" for p in range(1, 10)}}
    assert measure_preference(key_of(9), rated(everything)).rate == 1
    found = measure_preference(key_of(9, left="B"), rated(everything))
    assert (found.rate, found.low, found.high) == (0, 0, 0)
    assert found.p == 2 / 2**9
    assert "a.txt preferred to b.txt in 0.0%" in found.summary


def test_repeated_pairs_measure_raters_and_not_systems() -> None:
    answers: dict[str, dict[str, Choice]] = {
        "r1": {"1-x": "left", "1r-x": "right", "2-x": "left", "2r-x": "left"},
        "r2": {"2r-x": "none"},
    }
    found = measure_preference(key_of(2, repeated=(1, 2)), rated(answers))
    assert (found.rate, found.ratings, found.repeated, found.raters) == (1, 2, 2, 2)
    assert found.self_agreement == 0.5


def test_ties_are_not_decided() -> None:
    answers: dict[str, dict[str, Choice]] = {"r1": {"1-x": "left"}, "r2": {"1-x": "right"}}
    found = measure_preference(key_of(1), rated(answers))
    assert (found.rate, found.decided, found.p) == (0.5, 0, 1)
    assert "not significant" in found.summary


def test_nothing_rated_is_refused() -> None:
    with pytest.raises(CorpusFormatError) as caught:
        measure_preference(key_of(1), [])
    assert caught.value.code == "E_NO_DATA"


# -- sheets ---------------------------------------------------------------------------------


def export(folder: Path, **options: object) -> Export:
    (folder / "a.txt").write_text("".join(f'a{n} , "x"\n' for n in range(100)), encoding="utf-8")
    (folder / "b.txt").write_text(
        "".join(f'a{n} , "x"\n' if n % 10 == 0 else f"=b{n}\n" for n in range(100)),
        encoding="utf-8",
    )
    return export_pairs(
        folder / "a.txt", folder / "b.txt", folder / "pairs.csv", **{"seed": 1} | options
    )  # type: ignore[arg-type]


def rows_of(sheet: Path) -> list[dict[str, str]]:
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_export_is_blind_seeded_and_complete(tmp_path: Path) -> None:
    done = export(tmp_path)
    assert (done.pairs, done.identical, done.repeated) == (90, 10, 4)
    assert done.key == tmp_path / "pairs.key.json"
    rows, key = rows_of(done.sheet), read_key(done.key)
    assert [row["item"] for row in rows] == [item.item for item in key.items]
    assert list(rows[0]) == ["item", "left", "right", "preference", "rater", "comment"]
    shown = [item.pair for item in key.items]
    assert shown != sorted(shown)
    assert Counter(shown).total() == 94
    sides = Counter(item.left for item in key.items)
    assert min(sides.values()) > 25
    for row, item in zip(rows, key.items, strict=True):
        texts = [f'a{item.pair - 1} , "x"', f"'=b{item.pair - 1}"]
        assert [row["left"], row["right"]] == (texts if item.left == "A" else texts[::-1])
    before = (done.sheet.read_bytes(), done.key.read_bytes())
    export(tmp_path)
    assert (done.sheet.read_bytes(), done.key.read_bytes()) == before
    export(tmp_path, seed=2)
    assert done.sheet.read_bytes() != before[0]


def test_export_chooses_and_shows_the_source(tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    source.write_text("".join(f"s{n}\n" for n in range(100)), encoding="utf-8")
    done = export(tmp_path, number=7, repeated=0.0, source=source)
    assert done.pairs == len(rows_of(done.sheet)) == 7
    for row, item in zip(rows_of(done.sheet), read_key(done.key).items, strict=True):
        assert row["source"] == f"s{item.pair - 1}"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"number": 0}, "E_USAGE"),
        ({"number": 91}, "E_USAGE"),
        ({"repeated": 1.5}, "E_USAGE"),
    ],
)
def test_impossible_exports_are_refused(
    tmp_path: Path, options: dict[str, object], code: str
) -> None:
    with pytest.raises(TreelmError) as caught:
        export(tmp_path, **options)
    assert caught.value.code == code
    assert not (tmp_path / "pairs.csv").exists()
    assert not (tmp_path / "pairs.key.json").exists()


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\n", encoding="utf-8")
    (tmp_path / "b").write_text("x\n", encoding="utf-8")
    with pytest.raises(CorpusFormatError, match=r"2 lines and .* has 1") as caught:
        export_pairs(tmp_path / "a", tmp_path / "b", tmp_path / "o.csv", seed=1)
    assert caught.value.code == "E_LENGTH_MISMATCH"
    with pytest.raises(CorpusFormatError, match="no pair differs"):
        export_pairs(tmp_path / "a", tmp_path / "a", tmp_path / "o.csv", seed=1)
    with pytest.raises(UsageError, match="replace this input"):
        export_pairs(tmp_path / "a", tmp_path / "b", tmp_path / "a", seed=1)
    for name in ("-", "pairs.csv.gz"):
        with pytest.raises(UsageError, match="beside it"):
            key_beside(name)


def fill(sheet: Path, target: Path, choice: str, rater: str = "", separator: str = ",") -> Path:
    rows = rows_of(sheet)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=separator)
        writer.writeheader()
        writer.writerows({**row, "preference": choice, "rater": rater} for row in rows)
    return target


def test_what_was_exported_comes_back(tmp_path: Path) -> None:
    done = export(tmp_path)
    sheets = [
        fill(done.sheet, tmp_path / "one.csv", "Left"),
        fill(done.sheet, tmp_path / "two.csv", " right ", separator=";"),
        fill(done.sheet, tmp_path / "three.csv", "none", "anna", separator="\t"),
    ]
    found = import_judgements(sheets, done.key)
    assert isinstance(found, Preference)
    assert (found.rate, found.raters, found.pairs, found.ratings) == (0.5, 3, 90, 270)
    assert found.kappa == pytest.approx(-0.5)
    assert json.loads(json.dumps(found.to_record()))["required"] == 783


SHEET = "item,left,right,preference,rater,comment\n"


@pytest.mark.parametrize(
    ("content", "line", "part"),
    [
        ("", 1, "empty"),
        ("a,b\n", 1, "no column item"),
        ("item,left\n1-x,a\n", 1, "no column preference"),
        ("item,preference,item\n", 1, "two columns item"),
        ("item,preference,mood\n", 1, '"mood"'),
        (SHEET + "1-x,a,b,left,,\n2-x,a,b,up,,\n", 3, '"up"'),
        (SHEET + '1-x,"a\nb",b,left,,\n2-x,a,b,\x1b[31m,,\n', 4, r"\x1b[31m"),
        (SHEET + "1-x,a,b,left,\n", 2, "5 fields"),
        (SHEET + ",a,b,left,,\n", 2, "no item"),
        (SHEET + '1-x,"a"b,b,left,,\n', 2, "not CSV"),
        (SHEET + '1-x,"a,b,left,,\n', 2, "not CSV"),
        (SHEET + "9-y,a,b,left,,\n", 2, '"9-y" is not in the key'),
        (SHEET + "1-x,a,b,left,,\n\n1-x,a,b,right,,\n", 4, "already rated the item 1-x"),
    ],
)
def test_malformed_sheets_are_refused_with_their_line(
    tmp_path: Path, content: str, line: int, part: str
) -> None:
    sheet, key = tmp_path / "rated.csv", tmp_path / "k.json"
    sheet.write_text(content, encoding="utf-8")
    key.write_bytes(key_of(3).to_json())
    with pytest.raises(CorpusFormatError) as caught:
        import_judgements([sheet], key)
    assert caught.value.code == "E_JUDGEMENTS"
    assert caught.value.line == line
    assert f"rated.csv:{line}: " in str(caught.value)
    assert part in str(caught.value)


def test_empty_rows_and_cells_are_missing_ratings(tmp_path: Path) -> None:
    sheet = tmp_path / "r.csv"
    sheet.write_text(SHEET + ",,,,,\n1-x,a,b,,,\n2-x,a,b,NONE,me,hm\n", encoding="utf-8")
    assert [(r.item, r.rater, r.choice) for r in read_ratings(sheet)] == [("2-x", "me", "none")]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": "treelm-judge-key"}',
        key_of(1).to_json().replace(b'"A": "a.txt",', b""),
        key_of(1).to_json().replace(b'"version": 1', b'"version": 2'),
        key_of(2).to_json().replace(b"2-x", b"1-x"),
        key_of(1).to_json().replace(b'"seed"', b'"extra": 1, "seed"'),
        key_of(1).to_json()[:-20],
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_keys_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    assert_content_refused(read_key, tmp_path / "k.json", content, "E_JUDGE_KEY")
