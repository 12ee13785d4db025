"""The examples of README and docs, run as they are written: each line in a shell, each block of
Python in a job with JAX, each cell in a notebook's kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import environment
from support.notebook_kernels import kernel
from support.requirements import needs
from support.simulated_hosts import host_of
from support.terminals import terminal

from tpusmi.cli.exits import Exit
from tpusmi.model import Host

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 100.0
HERE = {
    "PIP_NO_DEPS": "1",  # they are here, or no test would run
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # which turns it off: pip reads `no` as a part of the name
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONPATH": ":".join(p for p in sys.path if p.endswith(("site-packages", "dist-packages"))),
}
"""The variables with which pip installs tpusmi alone, and its environment finds all else here."""

JOB = """
import sys, time, jax, jax.numpy as jnp, tpusmi
data, parameters, tokens = [jnp.ones((8, 8)) * n for n in range(30)], 1e6, 128.0
def train_step(state, batch):
    time.sleep(0.02)
    return state @ batch
state = batch = jnp.ones((8, 8))
names = dict(globals())
for block in sys.stdin.read().split("\\0"):
    exec(compile(block, block[:60], "exec"), names)
"""
CHECK = """
own, until_s = None, time.monotonic() + 60  # the agent samples each second
while (own is None or own.steps != 31) and time.monotonic() < until_s:
    time.sleep(0.2)
    own = next((p for p in tpusmi.snapshot().processes if p.pid == __import__("os").getpid()), own)
print("STEPS", own.steps, own.step_time_s.p95 > 0.02, len(own.devices) == jax.local_device_count())
"""

host = host_of("v5e-4")


def blocks(page: str, language: str) -> list[str]:
    """The examples of a page in that language, without those that a marker is around."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- test-command -->.*?<!-- /test-command -->", "", text, flags=re.DOTALL)
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no example in {language}"
    return found


def in_a_job(directory: Path, *examples: str) -> str:
    """What they print, one after the other in a process with JAX on the CPU."""
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        input="\0".join(examples),
        env=environment(directory, JAX_PLATFORMS="cpu"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_of_the_readme_runs_in_a_training_loop(tmp_path: Path) -> None:
    """Its three lines of snapshot() also with the numbers of a TPU."""
    examples = blocks("README.md", "python")
    (three,) = [block for block in examples if "snapshot" in block]
    assert len(three.splitlines()) == 3
    on_a_tpu = three.replace("tpusmi.snapshot()", 'tpusmi.snapshot(simulate="v5e-8")')
    said = in_a_job(tmp_path, *examples, CHECK, on_a_tpu)
    loop, total, each = said.splitlines()[-3:]
    assert loop == "STEPS 31 True True", "30 batches, and the step with FLOPs"
    assert re.match(r"\d{10,} \[\d", total)
    assert each.count("<Device tpu:") == 8


def test_the_python_of_the_page_about_the_agent_runs_in_a_training_loop(tmp_path: Path) -> None:
    assert "STEPS 31 True True" in in_a_job(tmp_path, *blocks("docs/agent.md", "python"), CHECK)


def test_the_page_about_python_runs_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("docs/python.md", "python"))],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("<Process ", " GiB", "step_time_s.p95", '{"schema": 1', "<Plan: ends"):
        assert words in done.stdout


TRAINING_THREAD = """
import threading
import jax
def train():
    step, x = jax.jit(lambda x: (x @ x).sum()), jax.numpy.ones((64, 64))
    while True:
        step(x).block_until_ready()
threading.Thread(target=train, daemon=True).start()
jax.devices()
"""
"""What the job of the last cell is."""


def test_the_cells_of_the_page_about_notebooks_run(tmp_path: Path) -> None:
    with kernel(tmp_path) as cells:
        cells.run(TRAINING_THREAD)
        shown = []
        for cell in blocks("docs/notebook.md", "python"):
            shown += [m for m in cells.run(cell) if m["msg_type"] == "display_data"]
        assert "tpusmi" in shown[0]["content"]["data"]["text/html"]
        result = cells.run('tpusmi.snapshot(simulate="v5e-8")')
        (panel,) = [m["content"]["data"] for m in result if m["msg_type"] == "execute_result"]
        assert "SIMULATED" in panel["text/html"]
        assert panel["text/plain"].startswith("<Snapshot of ")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this tree, as a reader of README has it."""
    found = tmp_path / "clone"
    shutil.copytree(ROOT / "tpusmi", found / "tpusmi", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE", "pyproject.toml"):
        shutil.copy2(ROOT / name, found / name)
    return found


class Shell:
    """The shell of a reader who has gone to the clone; `python3` is the one that runs the tests."""

    def __init__(self, clone: Path) -> None:
        self._clone = clone
        self._env = environment(clone / "segments", **HERE)
        self._env["PATH"] = f"{Path(sys.executable).parent}:{self._env['PATH']}"

    def run(self, line: str, code: int = 0) -> str:
        """What a line prints that ends by itself with that exit code."""
        done = subprocess.run(
            ["bash", "-c", f"cd {self._clone} && {line}"],
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def see(self, line: str, *words: str) -> None:
        """Look at the screen that a line opens, and press q."""
        command = ["bash", "-c", f"cd {self._clone} && exec {line}"]
        with terminal(command, self._env, 120, 35) as screen:
            for text in words:
                screen.see(text)
            screen.press("q")
            assert screen.end() == 0


SHOWS = {
    "tpusmi": (Exit.ANSWERED, "tpu:0"),
    "tpusmi -1": (Exit.ANSWERED, "tpu:0"),
    "tpusmi -L": (Exit.ANSWERED, "TPU 0: "),
    "tpusmi --json": (Exit.ANSWERED, '"schema": 1'),
    "tpusmi --query-tpu=index,memory.used --format=csv": (Exit.ANSWERED, "memory.used"),
    "tpusmi ps": (Exit.BUSY, "PID"),
    "tpusmi kill --stale": (Exit.ANSWERED, "\n"),
}
"""The commands of README's table that end by themselves, their exit code, and what they print."""
STAY = ("tpusmi simulate v5e-8", "tpusmi demo", "tpusmi serve-tui", "tpusmi.show()")
"""The others: they have tests of their own."""


def commands() -> list[str]:
    """The commands of README's table."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Commands")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)


@needs("bash")
def test_the_shell_lines_of_the_readme_run_from_the_first_to_the_last(
    clone: Path, host: Host
) -> None:
    """One after the other, in one clone: making its environment takes seconds."""
    shell = Shell(clone)
    first, second = blocks("README.md", "sh")

    environment_, install, demo = first.strip().split(" && ")
    assert demo == ".venv/bin/tpusmi demo"
    shell.run(environment_)
    shell.run(install)
    asks = f"{clone}/.venv/bin/python -c 'import tpusmi; print(tpusmi.__file__)'"
    assert shell.run(f"cd / && {asks}").startswith(f"{clone}/.venv/")
    shell.see(demo, "SIMULATED", "tpu:7", "running")

    again, dashboard = second.splitlines()
    assert again.startswith(f"{environment_} && ")
    shell.run(again.removeprefix(f"{environment_} && "))
    shell.see(dashboard, "tpusmi")

    assert {*commands()} == {*SHOWS, *STAY}
    for command, (code, words) in SHOWS.items():
        assert words in shell.run(f".venv/bin/{command} --simulate {host.root} 2>&1", code)
