"""A screen as an SVG that looks the same everywhere, and the file it is saved in."""

from __future__ import annotations

import os
import re
import time

FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def self_contained(svg: str) -> str:
    """The picture without fonts from elsewhere, which many viewers do not fetch.

    Glyphs are stretched to the grid instead, and spaces kept, so that columns line up in any font.
    """
    svg = re.sub(r"@font-face \{[^{}]*\}\s*", "", svg)
    svg = re.sub(r"font-family: [^;:]*;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    return svg.replace("<text ", '<text xml:space="preserve" lengthAdjust="spacingAndGlyphs" ')


def save(svg: str, host: str) -> str:
    """Save it in the working directory under a name of its own, which is returned. Raises OSError.

    Never written over another file, nor through a link.
    """
    name = re.sub(r"[^\w.-]", "_", host) or "host"
    stem = f"tpusmi-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(100):
        path = f"{stem}{f'-{number}' if number else ''}.svg"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            continue
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(svg)
        return path
    raise FileExistsError(17, "too many screenshots within a second", stem)
