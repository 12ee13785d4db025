"""The goldens of screens see every change, and none is left over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import goldens
from support.feeds import two_jobs
from support.screens import GoldenScreen, Size

SIZE: Size = (80, 24)
HERE = Path(__file__).parent


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoldenScreen:
    """Its golden is in a file of its own, and is not accepted again."""
    monkeypatch.setattr(goldens, "IS_ACCEPTING", False)
    return GoldenScreen(tmp_path / "screen.txt")


async def accept(screen: GoldenScreen, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(goldens, "IS_ACCEPTING", True)
        await screen(two_jobs(), SIZE)


async def test_the_same_screen_is_its_golden(
    screen: GoldenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="To accept all: TPUSMI_ACCEPT=1"):
        await screen(two_jobs(), SIZE)
    await accept(screen, monkeypatch)
    await screen(two_jobs(), SIZE)


async def test_another_color_is_another_screen(
    screen: GoldenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accept(screen, monkeypatch)
    with pytest.raises(AssertionError) as failure:
        await screen(two_jobs(), SIZE, colors={"dim": "magenta"})
    changes = [line for line in str(failure.value).splitlines() if re.match(r"[-+]\w", line)]
    assert changes == ["-c dim", "+c dim magenta"]


async def test_another_character_is_another_screen(
    screen: GoldenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accept(screen, monkeypatch)
    with pytest.raises(AssertionError, match=r"(?m)^[+]Graphs show 5 minutes$"):
        await screen(two_jobs(), SIZE, "w")


def test_every_golden_is_of_a_test() -> None:
    for folder in (HERE / "goldens").iterdir():
        file = HERE / f"test_{folder.name}_screens.py"
        tests = set(re.findall(r"def test_(\w+)\(", file.read_text(encoding="utf-8")))
        assert {path.name.partition("-")[0] for path in folder.iterdir()} <= tests
