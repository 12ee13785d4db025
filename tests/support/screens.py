"""A screen of the dashboard as text: the characters of every cell, and a letter for its style."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.pilot import Pilot

from support.dashboards import dashboard, press, settle
from support.goldens import same_as_golden
from tpusmi.tui import Feed

Size = tuple[int, int]
Step = str | Callable[[Pilot[None]], Awaitable[None] | None]
"""A key, or what happens between two."""

SIZES = [(80, 24), (120, 35), (200, 60)]
AT_EVERY_SIZE = pytest.mark.parametrize("size", SIZES, ids=[f"{w}x{h}" for w, h in SIZES])
STYLES, LEGEND = "-- styles", "-- legend"
LETTERS = string.ascii_letters + string.digits + "".join(map(chr, range(0x3B1, 0x3CA)))

ATTRIBUTES = "bold dim italic underline underline2 overline reverse strike blink conceal"
PLAIN = "plain"

Legend = Mapping[str, str]
"""The letter of each style, which is told in words. The style of most cells has a space."""


class GoldenScreen:
    """Compares screens with the golden of this test."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(
        self, feed: Feed, size: tuple[int, int], *steps: Step, **options: object
    ) -> None:
        """The screen of that feed after those steps: keys, and what happens between them."""
        async with dashboard(feed, size, **options) as pilot:
            for step in steps:
                await _take(pilot, step)
            now = await self.now(pilot)
        same_as_golden(now, self._path)

    async def now(self, pilot: Pilot[None]) -> str:
        """The screen as text, with the letters of the golden."""
        await pilot.wait_for_scheduled_animations()
        golden = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        return screen_text(pilot.app, legend_of(golden))

    async def compare(self, pilot: Pilot[None]) -> None:
        """Compare the screen of a running dashboard."""
        same_as_golden(await self.now(pilot), self._path)


async def _take(pilot: Pilot[None], step: Step) -> None:
    if isinstance(step, str):
        await press(pilot, step)
        return
    done = step(pilot)
    if done is not None:
        await done
    await settle(pilot)


def screen_text(app: App[None], legend: Legend) -> str:
    """The screen of a running app. Styles of the legend keep their letters, for a short diff."""
    rows = list(_rows(app))
    styles = [[_words(s.style) for s in row for _ in range(cell_len(s.text))] for row in rows]
    letters = _letters(Counter(name for row in styles for name in row), legend)
    return "\n".join(
        [
            *("".join(s.text for s in row).rstrip() for row in rows),
            STYLES,
            *("".join(letters[name] for name in row).rstrip() for row in styles),
            LEGEND,
            *(f"{letter} {name}" for name, letter in sorted(letters.items(), key=lambda x: x[1])),
            "",
        ]
    )


def legend_of(text: str) -> Legend:
    """The legend of a screen that was written before."""
    lines = text.partition(f"\n{LEGEND}\n")[2].splitlines()
    return {line[2:]: line[0] for line in lines}


def _rows(app: App[None]) -> Iterator[list[Segment]]:
    # What a screenshot is made of, with the screens that show through the upper one.
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    for strips in update.strips:
        yield [segment for strip in strips for segment in strip if not segment.control]


def _words(style: Style | None) -> str:
    """What a person sees of the style; "plain" is the terminal's own colors."""
    if style is None:
        return PLAIN
    on = [name for name in ATTRIBUTES.split() if getattr(style, name)]
    return " ".join([*on, *_color(style.color), *_color(style.bgcolor, "on ")]) or PLAIN


def _color(color: Color | None, prefix: str = "") -> list[str]:
    return [] if color is None or color.is_default else [prefix + color.name]


def _letters(used: Counter[str], legend: Legend) -> dict[str, str]:
    kept = {name: letter for name, letter in legend.items() if name in used}
    if " " not in kept.values():
        kept[used.most_common(1)[0][0]] = " "
    letters = set(kept.values())
    free = (letter for letter in LETTERS if letter not in letters)
    return kept | {name: next(free) for name in used if name not in kept}
