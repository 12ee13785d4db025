"""The real program on a real pseudo-terminal, beside a real JAX job."""

from __future__ import annotations

import importlib.util
import random
import subprocess
from pathlib import Path

import pytest
from support import segments
from support.commands import TPUSMI, environment
from support.jobs import collector, job, seen
from support.terminals import LEFT_ALTERNATE_SCREEN, terminal
from support.waits import with_a_short_limit

HAS_JAX = importlib.util.find_spec("jax") is not None

TRAINING = """
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp
def keep_weights(): return [jax.device_put(jnp.ones(250_000), d) for d in jax.devices()]
kept = keep_weights()
while True: tpusmi.step(); say("step"); hear()
"""


@pytest.mark.skipif(not HAS_JAX, reason="no JAX here")
def test_a_job_is_watched_from_its_first_step_to_its_death(tmp_path: Path) -> None:
    directory = tmp_path / "segments"
    directory.mkdir()
    with job(directory, TRAINING) as watched, terminal(TPUSMI, environment(directory)) as screen:
        for _ in range(5):
            watched.hear()
            watched.tell("go")
        screen.see(str(watched.pid))
        screen.see("cpu:1")
        screen.see("1.9 MiB live")
        screen.see("keep_weights")
        screen.press("?")
        screen.see("Help of the main page")
        screen.press("\x1b")  # Esc and a letter at once would be Alt and that letter
        screen.see("Help of the main page", gone=True)
        screen.press("/nothing-is-called-this\r")
        screen.see("No process matches the filter 'nothing-is-called-this'")
        screen.see("cpu:1")
        screen.press("\x1b")
        screen.see("keep_weights")
        screen.press("p")
        screen.see("PAUSED")
        screen.press("p")
        screen.see("PAUSED", gone=True)
        watched.process.kill()
        watched.process.wait()
        screen.see("ended")
        screen.press("q")
        assert screen.end() == 0
        assert LEFT_ALTERNATE_SCREEN in screen.written
        assert b"Traceback" not in screen.written
        seen(collector(directory), watched.pid, lambda s, p: p.is_dead)


def test_random_keys_and_sizes_never_break_the_dashboard(tmp_path: Path) -> None:
    segments.my_segment(tmp_path, devices=8)
    segments.segment(tmp_path, segments.dead_identity(), devices=1)
    chance = random.Random(7)
    keys = [
        *"?hoRp+-/abc.<>,[]rZ=_ 0~",
        "\x1b",
        "\r",
        "\t",
        "\x1b[A",
        "\x1b[B",
        "\x1b[6~",
        "\x1bOP",
    ]
    with terminal(TPUSMI, environment(tmp_path)) as screen:
        screen.see("tpu:8")
        for i in range(300):
            screen.press(chance.choice(keys))
            if i % 15 == 0:
                screen.resize(chance.randint(20, 200), chance.randint(3, 60))
        screen.resize(100, 30)
        screen.press("\x1b")
        screen.press("\x1b")
        screen.see("tpusmi")
        screen.child.terminate()
        assert screen.end() == 143
        assert b"Traceback" not in screen.written


@pytest.mark.parametrize("term", ["dumb", None])
def test_on_a_terminal_that_cannot_it_prints_the_table_and_says_why(
    tmp_path: Path, term: str | None
) -> None:
    segments.my_segment(tmp_path)
    with terminal(TPUSMI, environment(tmp_path, TERM=term)) as screen:
        assert screen.end() == 0
        screen.see("tpu:8")
        assert b"one plain table instead of the dashboard" in screen.written
        assert b"\x1b" not in screen.written


def test_a_redirected_stderr_does_not_take_the_dashboard_with_it(tmp_path: Path) -> None:
    segments.my_segment(tmp_path)
    command = ["sh", "-c", '"$0" "$@" 2>/dev/null', *TPUSMI]
    with terminal(command, environment(tmp_path)) as screen:
        screen.see("tpu:8")
        screen.press("q")
        assert screen.end() == 0


def test_on_a_host_without_jobs_it_says_what_to_do(tmp_path: Path) -> None:
    with terminal(TPUSMI, environment(tmp_path)) as screen:
        screen.see("tpusmi.start()")
        screen.see("tpusmi demo")
        screen.press("q")
        assert screen.end() == 0


@pytest.mark.skipif(not HAS_JAX, reason="no JAX here")
def test_the_demo_shows_its_job_and_leaves_nothing(tmp_path: Path) -> None:
    with terminal([*TPUSMI, "demo"], environment(tmp_path)) as screen:
        screen.see("SIMULATED")
        screen.see("tpu:7")
        screen.see("running")
        screen.press("q")
        assert screen.end() == 0


@pytest.mark.skipif(not HAS_JAX, reason="no JAX here")
@with_a_short_limit
def test_the_demo_without_a_terminal_prints_its_job_once(tmp_path: Path) -> None:
    found = subprocess.run(
        [*TPUSMI, "demo"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert found.returncode == 0
    assert "(SIMULATED)" in found.stdout
    assert "tpu:7" in found.stdout
    row = found.stdout.partition("STEPS/s")[2].splitlines()[1].split()
    at = row.index("chips")  # JAX on the CPU knows of no memory in use
    assert row[at - 1] == "GiB"
    assert "." in row[at + 1], "it waits for the first steps: its rate is known"
