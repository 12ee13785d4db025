"""What leaves the dashboard: text for the clipboard, and a screenshot."""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Callable

LIMIT_S = 1.0
"""A limit for tmux, which takes a few milliseconds. If it hangs, the whole screen hangs."""


def copy_text(text: str, write: Callable[[str], object], is_web: bool = False) -> str:
    """Send a text to the clipboard; returns a sentence about where it went.

    `write` sends to the terminal, which does not confirm that it took the text. In tmux the text
    is put into a buffer: with most settings tmux ignores what programs send to the clipboard.
    """
    what = f"pid {text}" if text.isdigit() else text
    if is_web:
        write(_sequence(text))
        return f"{what} sent to the browser's clipboard"
    if "TMUX" in os.environ:
        for option in ("-w", ""):  # tmux before 3.2 cannot send it on
            if _tmux_takes(text, option):
                sent = " and sent to the terminal's clipboard" if option else ""
                return f"{what} copied to the tmux buffer{sent}"
        write(_wrapped(_sequence(text).replace("\x1b", "\x1b\x1b"), "tmux;"))
    if "STY" in os.environ:
        write(_wrapped(_sequence(text)))
    else:
        write(_sequence(text))
    return f"{what} sent to the terminal's clipboard"


def _tmux_takes(text: str, option: str) -> bool:
    """True if tmux took the text in time, and knows the option."""
    import subprocess

    command = ["tmux", "load-buffer", *filter(None, [option]), "-"]
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _sequence(text: str) -> str:
    """The escape sequence OSC 52."""
    return f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\a"


def _wrapped(sequence: str, whose: str = "") -> str:
    """The sequence as a multiplexer passes it on to its terminal."""
    return f"\x1bP{whose}{sequence}\x1b\\"


FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def self_contained(svg: str) -> str:
    """The picture without fonts from the web, which many viewers do not fetch.

    Glyphs are stretched to the grid, and spaces kept, so that columns line up in any font.
    """
    svg = re.sub(r"@font-face \{[^{}]*\}\s*", "", svg)
    svg = re.sub(r"font-family: [^;:]*;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    return svg.replace("<text ", '<text xml:space="preserve" lengthAdjust="spacingAndGlyphs" ')


def save_screenshot(svg: str, host: str) -> str:
    """Save it in the working directory under a new name, which is returned. Raises OSError.

    Never overwrites a file, nor follows a link.
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
