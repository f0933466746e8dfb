"""Options as such: ranges, older spellings, the page that is written from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
from cyclopts import App, Group, Parameter
from pydantic import BaseModel, Field
from tests.command_line import assert_refused, treelm_inside

from treelm.cli.main import OLD_SPELLINGS
from treelm.cli.ranges import OutOfRange, Range
from treelm.cli.reference import reference


@pytest.mark.parametrize(
    ("allowed", "good", "bad", "shown"),
    [
        (Range(least=1), [1, 10**9], [0, -1], "1 or more"),
        (Range(least=1, most=3), [1, 3], [0, 4], "between 1 and 3"),
        (
            Range(above=0, below=1),
            [0.5],
            [0.0, 1.0, float("nan")],
            "greater than 0 and less than 1",
        ),
        (Range(least=0, below=1), [0, 0.9], [1, -0.1], "at least 0 and less than 1"),
        (Range(above=0), [1e-9], [0], "greater than 0"),
        (Range(most=5), [5, -7], [6], "at most 5"),
    ],
)
def test_ranges_accept_and_name_what_they_say(
    allowed: Range, good: list[float], bad: list[float], shown: str
) -> None:
    allowed(int, good)
    for number in bad:
        with pytest.raises(OutOfRange, match=f"it must be {shown}."):
            allowed(int, [*good, number])
    allowed(int, None)
    assert str(allowed) == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parse", "--k", "0"], "--k is 0; it must be 1 or more"),
        (["evaluate", "oracle", "a", "b", "-k", "5", "0"], "-k is 0; it must be 1 or more"),
        (
            ["score", "-m", "x", "--floor", "1"],
            "--floor is 1.0; it must be greater than 0 and less",
        ),
        (["score", "-m", "x", "--floor", "nan"], "--floor is nan; it must be"),
        (["surprisal", "-m", "x", "--best=0"], "--best is 0; it must be 1 or more"),
        (["evaluate", "pairs", "-m", "x", "--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (
            ["counts", "build", "--order", "99", "-o", "x"],
            "--order is 99; it must be between 1 and",
        ),
        (["vocabulary", "-o", "x", "--probability", "2"], "--probability is 2.0; it must be"),
        (["compare", "a", "b", "--rounds", "0"], "--rounds is 0; it must be 1 or more"),
        (["convert", "a", "b", "--threads", "0"], "--threads is 0; it must be between 1 and 1024"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_number_out_of_range_is_wrong_usage(
    capfdbinary: pytest.CaptureFixture[bytes], arguments: list[str], message: str
) -> None:
    assert_refused(treelm_inside(capfdbinary, *arguments), 2, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parse", "--trees", "0"], "--k is 0"),
        (["parse", "--k-best=0"], "--k is 0"),
        (["evaluate", "oracle", "a", "b", "--trees", "0"], "--k is 0"),
        (["surprisal", "-m", "x", "--beliefs"], "--parser-states"),
        (["score", "-m", "x", "--kbest"], "--k-best"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_older_spellings_are_those_of_today(
    capfdbinary: pytest.CaptureFixture[bytes], arguments: list[str], message: str
) -> None:
    assert_refused(treelm_inside(capfdbinary, *arguments), 2, message)


def test_older_spellings_are_not_shown() -> None:
    page = reference()
    for command, names in OLD_SPELLINGS.items():
        section = page.partition(f"## `treelm {' '.join(command)}`")[2].partition("\n## ")[0]
        assert section
        for old, new in names.items():
            assert f"`{old} " not in section
            assert f"`{new} " in section or new in page


class _Config(BaseModel):
    """A config as models have it."""

    depth: Annotated[int, Field(ge=1, le=6)] = 4
    """How deep."""


@Parameter(name="*", group=Group("Shared things", sort_key=9))
@dataclass(frozen=True)
class _Shared:
    loud: bool = False
    """Be | loud."""


_CONFIG, _SHARED = _Config(), _Shared()


def test_reference_describes_any_program() -> None:
    program = App(name="prog")

    @program.command(help_epilogue="Example: `prog one x`")
    def one(
        files: list[str] | None = None,
        /,
        *,
        config: Annotated[_Config, Parameter(name="*")] = _CONFIG,
        shared: _Shared = _SHARED,
    ) -> None:
        """Do one thing, unlike `prog two`; see --loud.

        Args:
            files: What is read.
        """

    @program.command
    def two(*, name: str, shared: _Shared = _SHARED) -> None:
        """Do two things."""

    page = reference(program)
    one_section = page.partition("## `prog one`")[2].partition("\n## ")[0]
    assert "unlike [`prog two`](#prog-two); see `--loud`." in one_section
    assert "Usage: `prog one [FILES...] [OPTIONS]`" in one_section
    assert "| `FILES...` | none | What is read. |" in one_section
    assert "| `--depth INT` | `4` | How deep. Between 1 and 6. |" in one_section
    assert "And the [shared things](#shared-things)." in one_section
    assert "```sh\nprog one x\n```" in one_section
    assert "Usage: `prog two --name STR [OPTIONS]`" in page
    assert page.count("| `--loud` | off | Be \\| loud. |") == 1
