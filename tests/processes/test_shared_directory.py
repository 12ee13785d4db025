"""A TPUSMI_DIR that several users share: no one keeps the segment of another one out of it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support import run_as
from support.commands import USER
from support.jobs import collector, job, seen
from support.namespaces import shared
from support.users import NOBODY, ROOT

from tpusmi.model import Process, Snapshot

__all__ = ["shared"]

pytestmark = [
    ROOT,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX here"),
]
TRAINING = """
from tpusmi.agent import segment
segment.CHECK_S = 0.3
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp
kept = jnp.ones(3000)
tpusmi.step()
say("ready")
hear()
tpusmi.step()
say("done")
hear()
"""


def stepped(count: int) -> Callable[[Snapshot, Process], bool]:
    def is_whole(s: Snapshot, p: Process) -> bool:
        is_known = p.state == "live" and len(s.devices_of(p.key)) == 2
        return is_known and s.value("steps", p.key) == count

    return is_whole


@pytest.mark.parametrize("take", [Path.touch, os.mkfifo, os.mkdir])
@pytest.mark.parametrize("ending", ["", ".new"])
def test_a_name_that_another_user_took_is_left_for_another_name(
    shared: str, ending: str, take: Callable[[Path], None]
) -> None:
    directory = Path(shared)
    with job(directory, TRAINING, *run_as.another_user(USER)) as trainer:
        assert trainer.hear() == "ready"
        seen(collector(directory), trainer.pid, stepped(1))
        path = next(directory.glob(f"{trainer.pid}-*.seg"))
        path.unlink()
        taken = Path(f"{path}{ending}")
        take(taken)
        os.chown(taken, NOBODY, NOBODY)
        before = os.lstat(taken)
        trainer.tell("step")
        assert trainer.hear() == "done"
        seen(collector(directory), trainer.pid, stepped(2))
        found = os.lstat(taken)
        assert (found.st_ino, found.st_uid) == (before.st_ino, NOBODY)
        assert found.st_size == before.st_size
        assert trainer.end() == 0
        assert trainer.stderr == ""
