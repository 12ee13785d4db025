"""Where no thread can be started a command ends, with what it could read or with a sentence."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from another import another_user
from commands import TPUSMI, environment

from tpusmi.model import Host
from tpusmi.simulate.host import Plan, start

LONELY = 23457
"""A user of whom nothing else runs: the limit counts whatever is the user's."""
LIMIT_S = 25.0


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with start(Plan("v5e-4")) as found:
        yield found


@pytest.mark.parametrize("threads", [1, 2, 4, 6, 8, 10])
@pytest.mark.parametrize("command", ["--json", "-1", "ps", "kill --stale --dry-run"])
def test_a_command_ends_in_a_sentence_and_without_a_traceback(
    host: Host, command: str, threads: int
) -> None:
    shell = f'ulimit -c 0; ulimit -u {threads}; exec "$@"'
    words = [*TPUSMI, *command.split(), "--simulate", host.root]
    found = subprocess.run(
        another_user(LONELY, "bash", "-c", shell, "bash", *words),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert found.returncode in (0, 1, 3, 4), found.stderr
    assert "Traceback" not in found.stderr
    assert "Fatal" not in found.stderr
    if command == "--json":
        failed = [s["message"] for s in json.loads(found.stdout)["sources"]]
        assert threads > 1 or "not asked: can't start new thread" in failed


def test_a_simulated_host_that_cannot_be_started_is_told_in_a_sentence() -> None:
    shell = 'ulimit -c 0; ulimit -u 1; exec "$@"'
    found = subprocess.run(
        another_user(LONELY, "bash", "-c", shell, "bash", *TPUSMI, "-1", "--simulate", "v5e-1"),
        env=environment("/", HOME="/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert found.returncode == 1
    assert found.stderr.startswith("tpusmi: the simulated host did not start: ")
    assert found.stderr.count("\n") == 1
