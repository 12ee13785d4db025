"""Start to end of the one-shot commands, as multiples of `python -c pass` in the same round.

    python tests/bench/startup.py [--rounds 15]

Three real JAX jobs with agents and a simulated v5e-8 with its metrics server run meanwhile. Peers
that are installed beside this Python are measured too; their published figures (no TPU there
either) are printed in any case.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = [sys.executable, "-c", "pass"]
PUBLISHED = {
    "tpu-info": 35.4,
    "tpu-info --version": 38.0,
    "tpustat --json": 13.9,
    "tpustat --version": 8.3,
    "nvitop --version": 9.5,
    "google-smi": 11.4,
}
"""Multiples of bare Python, measured on a machine like this one in 2026."""

JOB = """
import os, sys
os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=8")
import tpusmi; tpusmi.start()
import jax, jax.numpy as jnp
keep = [jax.device_put(jnp.ones(i % 50 + 1), d) for i in range(50) for d in jax.devices()]
step = jax.jit(lambda x: x @ x)
for _ in range(50): step(jnp.ones((64, 64))).block_until_ready(); tpusmi.step()
import time; time.sleep(2.5)
print("ready", flush=True)
sys.stdin.read()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    import tpusmi

    compileall.compile_dir(os.path.dirname(tpusmi.__file__), quiet=1)  # as an installer does
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        os.environ["TPUSMI_DIR"] = directory
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        jobs = [start_job() for _ in range(3)]
        host = start_host()
        try:
            assert host.stdout is not None
            compare(rounds, host.stdout.readline().strip())
        finally:
            host.terminate()
            host.wait()
            for job in jobs:
                job.communicate()


def start_job() -> subprocess.Popen[str]:
    """A running job that has published a sample and a profile."""
    job = subprocess.Popen(
        [sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert job.stdout is not None
    job.stdout.readline()
    return job


def start_host() -> subprocess.Popen[str]:
    """A simulated host in training, which says its directory."""
    words = [sys.executable, "-m", "tpusmi", "simulate", "v5e-8", "--age=60"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def compare(rounds: int, simulated: str) -> None:
    """Run every command once per round, each beside a bare Python, and print the medians."""
    ours = [
        ["--version"],
        ["--json"],
        ["--once"],
        ["--query-tpu=index,memory.used", "--format=csv"],
        ["--simulate", simulated, "--json"],
    ]
    command = shutil.which("tpusmi", path=str(Path(sys.executable).parent))
    commands = [[command or "tpusmi", *arguments] for arguments in ours]
    for name in PUBLISHED:
        peer = shutil.which(name.split()[0], path=str(Path(sys.executable).parent))
        commands += [[peer, *name.split()[1:]]] if peer else []
    for words in commands:
        seconds_of(words)
    multiples: dict[int, list[float]] = {i: [] for i in range(len(commands))}
    bare: list[float] = []
    for _ in range(rounds):
        for i, words in enumerate(commands):
            bare.append(seconds_of(BARE))
            multiples[i].append(seconds_of(words) / bare[-1])
    print(f"python -c pass: {statistics.median(bare) * 1e3:.1f} ms (median of {len(bare)})")
    for i, words in enumerate(commands):
        name = " ".join([Path(words[0]).name, *words[1:]]).replace(simulated, "v5e-8")
        middle, low, high = statistics.median(multiples[i]), min(multiples[i]), max(multiples[i])
        print(f"{name}: {middle:.1f} x bare Python ({low:.1f} to {high:.1f}, {rounds} runs)")
    print("published: " + ", ".join(f"{name} {x} x" for name, x in PUBLISHED.items()))


def seconds_of(words: list[str]) -> float:
    """Wall time of a command from its start to its end."""
    started = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
