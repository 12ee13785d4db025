"""Copying. A terminal does not answer whether it took a text, so that only the sending is said."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable

LIMIT_S = 1.0
"""For tmux, which takes a few milliseconds. It is the screen: where it hangs nothing is seen."""


def copy(text: str, write: Callable[[str], object], is_web: bool = False) -> str:
    """Hand a text to the clipboard; what was done with it, as a sentence.

    `write` sends to the terminal. In tmux the text is put into a buffer of it: with most settings
    tmux ignores what a program sends to the clipboard.
    """
    what = f"pid {text}" if text.isdigit() else text
    if is_web:
        write(_sequence(text))
        return f"{what} sent to the browser's clipboard"
    if "TMUX" in os.environ:
        for option in ("-w", ""):  # tmux before 3.2 cannot send it on
            if _tmux_takes(text, option):
                sent = " and sent to the terminal's clipboard" if option else ""
                return f"{what} put into tmux's buffer{sent}"
        write(_wrapped(_sequence(text).replace("\x1b", "\x1b\x1b"), "tmux;"))
    if "STY" in os.environ:
        write(_wrapped(_sequence(text)))
    else:
        write(_sequence(text))
    return f"{what} sent to the terminal's clipboard"


def _tmux_takes(text: str, option: str) -> bool:
    """False where tmux cannot be asked, does not answer in time, or does not know the option."""
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
    """OSC 52."""
    return f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\a"


def _wrapped(sequence: str, whose: str = "") -> str:
    """For the terminal around a multiplexer, which it passes on."""
    return f"\x1bP{whose}{sequence}\x1b\\"
