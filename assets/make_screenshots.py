"""Writes the pictures of the documentation: the real dashboard on a simulated host.

    python assets/make_screenshots.py [--check]

The same bytes at every run, so a difference in git is a difference on the screen. With --check it
writes nothing, and fails when a picture is not the one that it would write.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("assets", "tests"))]

from posed import PosedFeed  # noqa: E402
from support.feeds import Inline  # noqa: E402
from support.holder_feeds import ScriptedEnder, holders  # noqa: E402

from tpusmi.tui import Options  # noqa: E402
from tpusmi.tui.app import Dashboard  # noqa: E402
from tpusmi.tui.export import self_contained  # noqa: E402


class Picture(NamedTuple):
    """One screen: what is on the host, how large the terminal is, and which keys lead there."""

    name: str
    feed: Callable[[], Any]
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (132, 36)


@lru_cache
def _host() -> PosedFeed:
    return PosedFeed("v5e-8")


@lru_cache
def _slice() -> PosedFeed:
    return PosedFeed("v5e-256", chips=256)


PICTURES = (
    Picture("dashboard", _host, size=(132, 40)),
    Picture("compact", _host, ("c",), (100, 30)),
    Picture("heat", _slice, ("g",)),
    Picture("device", _host, ("d",)),
    Picture("memory", _host, ("m", "enter")),
    Picture("job", _host, ("j",)),
    # A stale holder, as a script has it: why it is stale depends on the machine's own init.
    Picture("kill", holders, ("k",), (110, 30)),
    Picture("help", _host, ("question_mark",), (110, 60)),
)


async def screenshot(picture: Picture) -> str:
    """The screen as SVG, once it has come to rest."""
    app = Dashboard(picture.feed(), Options(**ScriptedEnder().options), reader=Inline)  # type: ignore[arg-type]
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            await pilot.press(*filter(None, [key]))
            for _ in range(5):
                await pilot.pause()
        return self_contained(app.export_screenshot(title="tpusmi"))


def main() -> None:
    """Write the pictures, or compare them."""
    os.environ["TZ"] = "UTC"
    os.environ.pop("NO_COLOR", None)
    time.tzset()
    check, other = "--check" in sys.argv, []
    for picture in PICTURES:
        path = ROOT / "assets" / f"{picture.name}.svg"
        svg = asyncio.run(screenshot(picture))
        if not check:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != svg:
            other.append(path.name)
    if other:
        raise SystemExit(f"not what is on the screen: {', '.join(other)}; run this without --check")


if __name__ == "__main__":
    main()
