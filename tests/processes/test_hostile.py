"""Another user has done what he can: every command still answers, rightly and within bounds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import hostile_machine
from support.commands import environment
from support.users import ROOT

MOST_MIB = 150
MOST_S = 20.0
"""Far from a hang, on however slow a machine."""

pytestmark = [ROOT, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each look gave."""
    directory = tmp_path_factory.mktemp("hostile")
    if subprocess.run(["unshare", "-m", "-n", "true"], check=False).returncode:
        pytest.skip("namespaces may not be made here")
    done = subprocess.run(
        [sys.executable, "-m", "support.hostile_machine", str(directory)],
        cwd=Path(__file__).parents[1],
        env=environment(directory, TPUSMI_DIR=None),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=380,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [*hostile_machine.COMMANDS, "dashboard"])
def test_a_look_takes_little_memory_and_ends(seen: dict[str, Any], name: str) -> None:
    look = seen["looks"][name]
    assert look["mib"] < MOST_MIB
    assert "Traceback" not in look["out"] + look.get("err", "")
    assert look["took_s"] < MOST_S


def test_the_sources_answer_within_their_time(seen: dict[str, Any]) -> None:
    sources = json.loads(seen["looks"]["json"]["out"])["sources"]
    assert {s["name"]: s["took_s"] < MOST_S for s in sources} == {s["name"]: True for s in sources}
    assert next(s["status"] for s in sources if s["name"] == "agent") == "ok"


def test_the_own_job_has_its_own_numbers(seen: dict[str, Any]) -> None:
    shown = json.loads(seen["looks"]["json"]["out"])
    own = [p for p in shown["processes"] if p["pid"] == seen["own"] and p["verified"]]
    assert [(p["user"], p["uid"], p["command"], p["steps"]) for p in own] == [
        ("root", 0, " ".join(hostile_machine.OWN_ARGV), hostile_machine.OWN_STEPS)
    ]
    assert own[0]["devices"]
    used = {d["hbm_used_bytes"] for d in shown["devices"] if d["pids"] == [seen["own"]]}
    assert used == {hostile_machine.segments.GIB * n for n in (1, 2)}


@pytest.mark.parametrize("name", ["once", "processes", "dashboard"])
def test_the_own_job_is_in_every_view(seen: dict[str, Any], name: str) -> None:
    lines = [x for x in seen["looks"][name]["out"].splitlines() if str(seen["own"]) in x]
    assert any("own_train.py" in line for line in lines)


def test_the_strangers_numbers_are_on_no_chip_of_others(seen: dict[str, Any]) -> None:
    shown = json.loads(seen["looks"]["json"]["out"])
    owned = [d for d in shown["devices"] if seen["own"] in d["pids"]]
    assert len(owned) == 2
    assert "xmrig" not in {p["command"].split()[-1] for p in shown["processes"] if p["verified"]}


def test_the_command_line_of_the_holder_is_read_and_the_holder_is_seen(
    seen: dict[str, Any],
) -> None:
    for name in ("ps", "ps_json"):
        assert seen["looks"][name]["code"] in (5, 6)
    holders = [p for p in json.loads(seen["looks"]["ps_json"]["out"])["processes"] if p["holds"]]
    assert [(p["uid"], p["verified"]) for p in holders] == [(hostile_machine.STRANGER, True)]


def test_nothing_is_ended_for_what_the_stranger_says(seen: dict[str, Any]) -> None:
    plan = json.loads(seen["looks"]["stale"]["out"])["plan"]
    assert seen["own"] not in [p["pid"] for p in plan["end"]]
    assert seen["alive"]
