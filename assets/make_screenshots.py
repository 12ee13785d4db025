"""Writes assets/dashboard.svg: the real dashboard on a script of eight chips and two jobs.

    python assets/make_screenshots.py

The same bytes at every run, so a difference in git is a difference on the screen.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "tui")]

from held import ScriptedEnder  # noqa: E402
from scripted import Inline, two_jobs  # noqa: E402

from tpusmi.tui import Options  # noqa: E402
from tpusmi.tui.app import Dashboard  # noqa: E402

SIZE = (132, 31)
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


async def screenshot() -> str:
    """The dashboard as SVG, once it has drawn its first snapshot."""
    options = Options(ender=ScriptedEnder())
    app = Dashboard(two_jobs(on_chips=True), options, reader=Inline)  # type: ignore[arg-type]
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(5):
            await pilot.pause()
        return app.export_screenshot(title="tpusmi")


def self_contained(svg: str) -> str:
    """The picture without fonts from elsewhere, which a README's viewer does not fetch.

    Glyphs are stretched to the grid instead, and spaces kept, so that columns line up in any font.
    """
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;]*;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    return svg.replace("<text ", '<text xml:space="preserve" lengthAdjust="spacingAndGlyphs" ')


def main() -> None:
    """Write the picture."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    svg = self_contained(asyncio.run(screenshot()))
    (ROOT / "assets" / "dashboard.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
