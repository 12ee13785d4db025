"""Names of users come when they come, and who has used sudo is seen and not told."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import segments
from support.commands import tpusmi
from support.users import NOBODY, ROOT
from support.waits import until

from tpusmi.sources import users
from tpusmi.sources.users import _UserNames, user_number

SHELL_OF = """
import os, subprocess, sys
os.setresuid(int(sys.argv[1]), 0, 0)
code = "import os; os.setresuid(0, 0, 0); from tpusmi.sources import users; "
subprocess.run([sys.executable, "-c", code + "print(users.user_before_sudo())"])
"""
"""A process of that user, of which one of root has come, as with sudo."""


@ROOT
@pytest.mark.parametrize(
    ("real", "told", "found"),
    [
        (NOBODY, NOBODY, NOBODY),
        (0, NOBODY, None),
        (NOBODY, 1001, None),
        (NOBODY, "-1", None),
        (NOBODY, "9" * 5000, None),
    ],
    ids=["sudo", "only the variable", "another user", "not a number", "endless digits"],
)
def test_who_was_before_sudo_is_a_user_that_runs_one_of_our_ancestors(
    real: int, told: object, found: int | None
) -> None:
    command = [sys.executable, "-c", SHELL_OF, str(real)]
    environment = {**os.environ, "SUDO_UID": str(told)}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (said.stdout.strip(), said.stderr) == (str(found), "")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the thread that looks up may not run for a while."""
    monkeypatch.setattr(users, "WAIT_MOST_S", 20.0)


@pytest.mark.usefixtures("patient")
def test_a_name_that_is_there_at_once_is_given_at_once() -> None:
    assert _UserNames().of(0) == pwd.getpwuid(0).pw_name
    assert _UserNames().of(3_999_999_999) == "3999999999"


def test_names_that_take_long_are_not_waited_for_and_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    asked: list[int] = []

    def slow(uid: int) -> object:
        asked.append(uid)
        release.wait(60)
        if uid == 7:
            raise KeyError(uid)
        return type("entry", (), {"pw_name": f"user{uid}"})

    monkeypatch.setattr(pwd, "getpwuid", slow)
    names = _UserNames()
    started_s = time.monotonic()
    assert [names.of(uid) for uid in (5, 6, 7, 5, 6)] == ["5", "6", "7", "5", "6"]
    assert time.monotonic() - started_s < 15
    release.set()
    until(lambda: names.of(5) == "user5" and names.of(6) == "user6")
    assert [names.of(uid) for uid in (5, 6, 7)] == ["user5", "user6", "7"]
    assert sorted(uid for uid in asked if uid < 10) == [5, 6, 7]  # a test before may still ask


@pytest.fixture
def slow_names(tmp_path: Path) -> str:
    """A PYTHONPATH under which the user database answers after a minute."""
    slow = "import pwd, time\npwd.getpwuid = pwd.getpwnam = lambda user: time.sleep(60)\n"
    (tmp_path / "sitecustomize.py").write_text(slow)
    return f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"


def test_numbers_do_not_wait_for_names(tmp_path: Path, slow_names: str) -> None:
    segments.my_segment(tmp_path)
    (job,) = json.loads(tpusmi(tmp_path, "--json", PYTHONPATH=slow_names).stdout)["processes"]
    assert (job["user"], job["uid"], job["steps"]) == (str(os.getuid()), os.getuid(), 1200)


@pytest.mark.parametrize("command", ["--json", "-1", "--query-processes=pid --format=csv"])
def test_a_user_named_while_names_do_not_come_is_not_said_to_have_nothing(
    tmp_path: Path, slow_names: str, command: str
) -> None:
    segments.my_segment(tmp_path)
    asked = (*command.split(), "-u", "ann")
    found = tpusmi(tmp_path, *asked, PYTHONPATH=slow_names)
    assert (found.returncode, found.stderr.count("\n")) == (4, 1)
    assert "did not return the uid of ann in time: give the uid instead" in found.stderr
    by_number = tpusmi(tmp_path, *asked[:-1], str(os.getuid()), PYTHONPATH=slow_names)
    assert (by_number.returncode, by_number.stderr) == (0, "")
    assert str(os.getpid()) in by_number.stdout


def test_a_users_number_is_found_by_the_name() -> None:
    assert user_number(pwd.getpwuid(0).pw_name) == 0
    assert user_number("no-such-user") is None
    assert user_number("with\0nul") is None


def test_settings_are_looked_for_without_a_home_and_without_a_user_database(
    tmp_path: Path, slow_names: str
) -> None:
    found = tpusmi(tmp_path, "--print-config", HOME=None, PYTHONPATH=slow_names)
    assert (found.returncode, found.stderr) == (0, "")
    assert "/.config/tpusmi/config.toml" in found.stdout


@pytest.mark.usefixtures("patient")
def test_very_many_users_without_a_name_do_not_take_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One user has a whole range of numbers with /etc/subuid."""
    monkeypatch.setattr(users, "KEPT_MOST", 8)
    names = _UserNames()
    names._names = {2**31 + number: str(2**31 + number) for number in range(8)}
    assert names.of(0) == pwd.getpwuid(0).pw_name
