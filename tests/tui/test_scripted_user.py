"""Somebody with a question, on a real pseudo-terminal and a simulated host: at most five keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.terminals import Terminal, terminal
from support.users import ROOT
from support.waits import until

from tpusmi.collect import look
from tpusmi.model import Holding, Host
from tpusmi.model.holding import status
from tpusmi.simulate.host import HostPlan, start

KEYS_MOST = 5
ENTER = "\r"


class User:
    """Presses keys, and counts them."""

    def __init__(self, screen: Terminal) -> None:
        self.screen = screen
        self.pressed = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.screen.press(key)
        self.pressed += len(keys)


@ROOT
def test_a_stale_holder_is_found_and_freed(tmp_path: Path) -> None:
    with start(HostPlan("v5e-4", faults=("orphan",))) as host, watching(host, tmp_path) as screen:
        user = User(screen)
        screen.see_match(r"\nL +\d+")  # the letter of a stale holder
        user.press("x", "k")
        screen.see("orphaned")
        user.press(ENTER)
        screen.see_match(r"ended by SIG(TERM|KILL)")
        until(lambda: status(look(host)) == Holding.FREE, what="the chips are seen free")
        assert user.pressed <= KEYS_MOST


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        pytest.param("m", r"ALLOCATED BY[^\n]*\n[^\n]*GiB[^\n]*init_optimizer", id="allocation"),
        pytest.param("j", r"step time[^\n]*p95 +[\d.]+ m?s ", id="p95"),
    ],
)
def test_a_question_about_a_job_is_answered(tmp_path: Path, key: str, answer: str) -> None:
    plan = HostPlan("v5e-4", agent=True, age_s=30.0)
    with start(plan) as host, watching(host, tmp_path) as screen:
        user = User(screen)
        screen.see("train.py")
        user.press(key)
        screen.see_match(answer)
        assert user.pressed <= KEYS_MOST


def watching(host: Host, tmp_path: Path):  # type: ignore[no-untyped-def]
    command = [*TPUSMI, "--simulate", host.root, "--interval", "0.5"]
    return terminal(command, environment(tmp_path), 80, 24)
