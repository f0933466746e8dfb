"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from treelm.corpus.sample_treebank import sample_path

# Nothing here depends on a clock: a busy machine takes longer for the same examples.
settings.register_profile(
    "treelm", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("treelm")

TESTS = Path(__file__).resolve().parent
SHARED_DATA = TESTS.parents[1] / "shared" / "data"
#: Tests that start programs of their own: most of the time goes into these.
SLOW_FOLDERS = frozenset({"benchmarks", "cli", "examples", "experiments", "hostile", "web"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option that runs whole products where the suite takes a few combinations."""
    parser.addoption("--campaign", action="store_true", help="test all combinations, for hours")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave folders of slow tests unread where these are not wanted: reading takes long as well."""
    unwanted = config.getoption("markexpr") == "not slow" and collection_path.parent == TESTS
    return True if unwanted and collection_path.name in SLOW_FOLDERS else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and mark and skip those that read treebanks a user does not have."""
    missing = not SHARED_DATA.is_dir()
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs_data)
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"no treebanks at {SHARED_DATA}"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of treebanks and texts beside the checkout."""
    return SHARED_DATA


@pytest.fixture(scope="session")
def sample_file() -> Path:
    """The packaged treebank."""
    return sample_path()
