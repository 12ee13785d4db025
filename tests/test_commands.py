"""The tests start tpusmi as its users do: with no variable of Python's in its environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment

TESTS = Path(__file__).parent
VARIABLE = re.compile(r"\bPYTHON[A-Z0-9]{3,}\b")
ABOUT_IT = {
    "conftest.py": "PYTHONUNBUFFERED",  # why there is none
    "test_booted.py": "PYTHONPATH",  # systemd starts the exporter of this tree
    "test_cli.py": "PYTHONUTF8 PYTHONCOERCECLOCALE PYTHONIOENCODING",
    "test_config.py": "PYTHONIOENCODING",
    "test_exits.py": "PYTHONUNBUFFERED",
    "test_fleet_command.py": "PYTHONPATH",  # a Python in which something is missing
    "test_one_line_each.py": "PYTHONPATH",  # a copy of the package with one line more
    "test_other_pythons.py": "PYTHONPATH",  # an environment that others made
    "test_python_without_tls.py": "PYTHONPATH",  # a Python without ssl
    "test_simulated_directory.py": "PYTHONPATH",  # a job that starts slowly
    "test_quick_start.py": "PYTHONPATH",  # pip's environment finds what is installed here
    "test_sdk_child.py": "PYTHONPATH",  # where a libtpu is found
    "test_serve.py": "PYTHONPATH",  # the same
    "test_serve_tui.py": "PYTHONPATH",  # a Python in which something is missing
    "test_simulated_host.py": "PYTHONSAFEPATH",  # a path without the script
    "test_users.py": "PYTHONPATH",  # names of users that come over the network
    "test_slice_with_old_jax.py": "PYTHONPATH",  # where another JAX is
    "test_xprof.py": "PYTHONPATH",  # stand-ins for xprof
    "startup.py": "PYTHONDONTWRITEBYTECODE",
    "test_commands.py": None,
}
"""Tests that are about such a variable, and about which."""


def test_no_variable_of_pythons_is_set_where_tests_run() -> None:
    assert [name for name in os.environ if name.startswith("PYTHON")] == []
    assert [name for name in environment("/") if name.startswith("PYTHON")] == []


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.name)
def test_a_test_names_a_variable_of_pythons_only_when_it_is_about_it(path: Path) -> None:
    about = ABOUT_IT.get(path.name, "")
    if about is not None:
        assert set(VARIABLE.findall(path.read_text())) <= set(about.split())


def test_the_command_is_the_one_that_is_installed() -> None:
    assert os.path.isabs(TPUSMI[0])
    assert os.path.basename(TPUSMI[0]) == "tpusmi"


def test_a_job_that_is_told_no_directory_leaves_none_in_the_usual_places() -> None:
    code = (
        "import time, tpusmi\nagent = tpusmi.start()\n"
        "while 'publishing' not in repr(agent): time.sleep(0.01)\n"
        "print(agent); tpusmi.stop()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert f"publishing to {os.environ['TPUSMI_DIR']}/" in done.stdout, done.stderr
