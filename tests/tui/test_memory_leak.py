"""A leak in a simulated job, found by a person at a real pseudo-terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.terminals import Terminal, terminal

from tpusmi.simulate.host import HostPlan, start

TRAINING_S = 30.0
"""At this age the job is in the middle of a long phase of training."""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Terminal]:
    plan = HostPlan("v5e-4", faults=("leak",), agent=True, age_s=TRAINING_S)
    with start(plan) as host:
        command = [*TPUSMI, "--simulate", host.root, "--interval", "0.5"]
        with terminal(command, environment(tmp_path), 80, 24) as found:
            yield found


def test_the_largest_allocation_and_then_the_leak_come_to_the_top(watched: Terminal) -> None:
    watched.see("train.py")
    watched.press("m")
    watched.see_match(r"ALLOCATED BY[^\n]*\n[^\n]*▸ init_optimizer  [^\n]*train.py:58")
    watched.press("bSS")
    watched.see_match(r"\+/-▾ ALLOCATED BY[^\n]*\n[^\n]*\+\d+ ▸ (new )?log_metrics")
    watched.press("q")
    assert watched.end() == 0
