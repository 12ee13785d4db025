"""A child at the keyboard: every key there is, in any order, while the window changes its size."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest
from support.commands import environment
from support.terminals import LEFT_ALTERNATE_SCREEN, Terminal, terminal

from tpusmi.tui.pages import every_key as bindings

KEYS, RESIZES = 700, 35
"""On each of three machines."""
CHILD = f"""
import sys
sys.path[:0] = {[*map(os.path.abspath, sys.path)]!r}
from support import capturers, profiles
from support.holder_feeds import ScriptedEnder, holders
from support.feeds import Job, many_devices
from tpusmi.tui import Options, run
DEVICES = int(sys.argv[1])
feed = many_devices(DEVICES, busy=True, tick_s=1.0, past_s=60) if DEVICES else holders()
capturer = capturers.printing(profiles.healthy)
sys.exit(run(feed, Options(interval_s=0.25, capturer=capturer, **ScriptedEnder().options)))
"""
SPELLED = {
    **{"escape": "\x1b", "enter": "\r", "tab": "\t", "backspace": "\x7f", "space": " "},
    **{"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D"},
    **{"home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~", "pagedown": "\x1b[6~"},
    **{"shift+tab": "\x1b[Z", "shift+left": "\x1b[1;2D", "shift+right": "\x1b[1;2C"},
    **{"f1": "\x1bOP", "f5": "\x1b[15~", "f9": "\x1b[20~", "ctrl+p": "\x10"},
    **{"f2": "\x1bOQ", "f12": "\x1b[24~", "ctrl+r": "\x12"},
    **{"question_mark": "?", "slash": "/", "plus": "+", "equals_sign": "=", "minus": "-"},
    **{"underscore": "_", "colon": ":", "comma": ",", "full_stop": "."},
    **{"less_than_sign": "<", "greater_than_sign": ">"},
    **{"left_square_bracket": "[", "right_square_bracket": "]"},
    **{"left_curly_bracket": "{", "right_curly_bracket": "}"},
}
MOUSE = ("\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m", "\x1b[<64;{x};{y}M", "\x1b[<65;{x};{y}M")
QUITS, SAVES = {"quit", "interrupt"}, {"picture"}


def every_key() -> list[str]:
    """What the keyboard sends for each key of each page, besides those that leave."""
    names = {name for b in bindings() if b.id not in QUITS | SAVES for name in b.key.split(",")}
    return [SPELLED[name] if len(name) > 1 else name for name in sorted(names)]


@pytest.mark.parametrize(("devices", "seed"), [(8, 1), (256, 2), (0, 3)])
def test_two_thousand_keys_and_a_hundred_sizes_do_no_harm(
    tmp_path: Path, devices: int, seed: int
) -> None:
    dice = random.Random(seed)
    keys = [*every_key(), *"abc09 ", SPELLED["backspace"], SPELLED["escape"], SPELLED["enter"]]
    command = [sys.executable, "-c", CHILD, str(devices)]
    with terminal(command, environment(tmp_path), 100, 30) as found:
        found.see("DEVICE")
        for n in range(KEYS):
            if n % (KEYS // RESIZES) == 0:
                found.resize(dice.randint(1, 250), dice.randint(1, 80))
            found.press(_pressed(dice, keys, found))
            found.take(0.002)
        found.resize(160, 50)
        _leave(found)
        assert found.child.returncode == 0, found.written[-6000:].decode(errors="replace")
        assert LEFT_ALTERNATE_SCREEN in found.written
        assert b"Traceback" not in found.written


def _pressed(dice: random.Random, keys: list[str], found: Terminal) -> str:
    if dice.random() < 0.1:
        at = {"x": dice.randint(1, found.screen.columns), "y": dice.randint(1, found.screen.lines)}
        return dice.choice(MOUSE).format(**at)
    return dice.choice(keys)


def _leave(found: Terminal) -> None:
    """Out of every page, dialog and prompt, and out of the program."""
    until_s = time.monotonic() + 30
    while found.child.poll() is None and time.monotonic() < until_s:
        found.press(SPELLED["escape"])
        found.take(0.3)
        if found.child.poll() is None:
            found.press("q")
            found.take(0.3)
    found.end()
