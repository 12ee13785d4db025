"""What is said of copying is what was done: a terminal does not answer."""

from __future__ import annotations

import base64
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.simulated_hosts import host_of

from tpusmi.model import Host
from tpusmi.tui.export import copy_text

SENT = f"\x1b]52;c;{base64.b64encode(b'4321').decode()}\a"
LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def _no_multiplexer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)


def test_a_terminal_gets_one_sequence_and_nothing_is_claimed_of_it() -> None:
    written: list[str] = []
    assert copy_text("4321", written.append) == "pid 4321 sent to the terminal's clipboard"
    assert written == [SENT]


def test_screen_passes_it_on_to_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STY", "1.pts-0")
    written: list[str] = []
    copy_text("4321", written.append)
    assert written == [f"\x1bP{SENT}\x1b\\"]


@pytest.mark.parametrize(
    "program", ["exit 1", "exec sleep 30", None], ids=["fails", "hangs", "absent"]
)
def test_a_tmux_that_cannot_be_asked_gets_the_sequence_wrapped_and_plain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str | None
) -> None:
    if program is not None:
        (tmp_path / "tmux").write_text(f"#!/bin/sh\nexec 0<&- ; {program}\n")
        (tmp_path / "tmux").chmod(0o755)
    monkeypatch.setenv("TMUX", "/nowhere,1,0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if program else str(tmp_path))
    written: list[str] = []
    began_s = time.monotonic()
    assert copy_text("4321", written.append) == "pid 4321 sent to the terminal's clipboard"
    assert time.monotonic() - began_s < 25
    doubled = SENT.replace("\x1b", "\x1b\x1b")
    assert written == [f"\x1bPtmux;{doubled}\x1b\\", SENT]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs a command of a tmux of our own; what it prints."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")

    def run(*words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "socket"), *words]
        done = subprocess.run(
            command, env=environment(tmp_path), capture_output=True, text=True, timeout=LIMIT_S
        )
        return done.stdout

    yield run
    run("kill-server")


PRESSED_EVERY_S = 5.0
"""Longer than a message stays on the screen."""


def seen(tmux: Callable[..., str], words: str, key: str = "") -> str:
    """The screen, once the words are on it. The key is pressed until they are: a message goes
    again, and this machine may have stood still meanwhile.
    """
    until_s, pressed_s = time.monotonic() + LIMIT_S, -PRESSED_EVERY_S
    while time.monotonic() < until_s:
        screen = tmux("capture-pane", "-p")
        if words in screen:
            return screen
        now_s = time.monotonic()
        if key and now_s >= pressed_s + PRESSED_EVERY_S:
            tmux("send-keys", key)
            pressed_s = now_s
        time.sleep(0.1)
    raise AssertionError(f"no {words!r} on\n{screen}")


host = host_of("v5e-1")


@pytest.mark.parametrize("setting", ["off", "external", "on"])
def test_in_tmux_what_is_copied_is_in_a_buffer_whatever_is_set_there(
    tmux: Callable[..., str], host: Host, setting: str
) -> None:
    command = shlex.join([*TPUSMI, "--simulate", host.root])
    tmux("new-session", "-d", "-x", "120", "-y", "30", f"{command}; sleep 60")
    tmux("set", "-s", "set-clipboard", setting)
    seen(tmux, "train.py")  # the row that is copied
    screen = seen(tmux, "copied to the tmux buffer", key="y")
    assert "Copied" not in screen
    pid = screen.split(" copied to the tmux buffer")[0].split("pid ")[-1]
    assert tmux("show-buffer") == pid
    assert pid.isdigit()
