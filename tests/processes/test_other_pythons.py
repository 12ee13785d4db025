"""Where others made the environment tpusmi works, or says in a sentence what is wrong with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment, tpusmi
from support.simulated_hosts import host_of
from support.terminals import terminal

from tpusmi.model import Host

LIMIT_S = 60.0

host = host_of("v5e-1")


def package(directory: Path, name: str, text: str = "") -> str:
    """A directory in which a package of that name is found first."""
    place = directory.joinpath(*name.split("."))
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(text)
    return str(directory)


def seen_of_libtpu(found: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Status and message of that source, of a command that ended well and said nothing else."""
    assert (found.returncode, found.stderr) == (0, "")
    told = json.loads(found.stdout)
    assert [d["node"] for d in told["devices"]]
    assert {s["status"] for s in told["sources"] if s["name"] in ("sysfs", "agent")} <= {
        "ok", "absent",
    }  # fmt: skip
    (libtpu,) = (s for s in told["sources"] if s["name"] == "libtpu")
    return libtpu["status"], libtpu["message"]


@pytest.mark.parametrize("implementation", [None, "python", "upb", "", "cpp", "nonsense"])
def test_an_implementation_of_protobuf_that_is_not_there_ends_nothing(
    host: Host, implementation: str | None
) -> None:
    found = tpusmi(
        "/", "--json", "--simulate", host.root,
        PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation,
    )  # fmt: skip
    status, message = seen_of_libtpu(found)
    if implementation in (None, "python", "upb"):
        assert status == "ok"
    else:
        assert "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION" in message


@pytest.mark.parametrize("name", ["google.protobuf", "google"])
@pytest.mark.parametrize("text", ["", "raise ImportError('broken')", "raise OSError('cut off')"])
def test_a_broken_protobuf_takes_its_numbers_and_no_more(
    host: Host, tmp_path: Path, name: str, text: str
) -> None:
    path = package(tmp_path, name, text)
    status, message = seen_of_libtpu(
        tpusmi("/", "--json", "--simulate", host.root, PYTHONPATH=path)
    )
    assert status in ("absent", "failed")
    assert "protobuf" in message, message


@pytest.mark.parametrize("text", ["", "raise ImportError('broken')", "raise OSError('cut off')"])
def test_a_broken_grpc_does_not_matter(host: Host, tmp_path: Path, text: str) -> None:
    path = package(tmp_path, "grpc", text)
    found = tpusmi("/", "--json", "--simulate", host.root, PYTHONPATH=path)
    assert seen_of_libtpu(found)[0] == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "that is found here"),
        ("raise ImportError('broken')", "cannot be loaded (broken)"),
        ("raise ImportError('two\\nlines' + '!' * 9000)", "cannot be loaded (two lines!"),
    ],
)
def test_a_simulated_host_without_grpcio_is_refused_in_a_sentence(
    tmp_path: Path, text: str, said: str
) -> None:
    found = tpusmi("/", "-1", "--simulate", "v5e-1", PYTHONPATH=package(tmp_path, "grpc", text))
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.count("\n") == 1
    assert said in found.stderr
    assert "an environment of its own" in found.stderr


def old_textual(directory: Path) -> str:
    path = package(directory, "textual")
    (directory / "textual-0.89.1.dist-info").mkdir()
    return path


def no_self(directory: Path) -> str:
    (directory / "typing_extensions.py").write_text("")
    return str(directory)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (old_textual, "textual 0.89.1 is installed here, and the dashboard needs 8.2 or later"),
        (lambda place: package(place, "textual"), "cannot be loaded"),
        (lambda place: package(place, "rich"), "cannot be loaded"),
        (lambda place: package(place, "rich", "raise OSError('cut off')"), "cut off"),
        (no_self, "cannot be loaded"),
    ],
    ids=["old textual", "no textual", "no rich", "broken rich", "old typing_extensions"],
)
def test_a_dashboard_that_cannot_be_drawn_is_refused_in_a_sentence_and_the_table_is_there(
    host: Host, tmp_path: Path, broken: object, said: str
) -> None:
    path = broken(tmp_path)  # type: ignore[operator]
    arguments = ["--simulate", host.root]
    with terminal([*TPUSMI, *arguments], environment("/", PYTHONPATH=path), 400, 30) as screen:
        assert screen.end() == 1
        screen.take(0.2)
    assert said in screen.text
    assert "tpusmi -1 prints one table" in screen.text
    assert screen.written.count(b"\n") == 1
    assert b"\x1b" not in screen.written
    assert tpusmi("/", "-1", *arguments, PYTHONPATH=path).returncode == 0


def test_a_fleet_whose_dashboard_cannot_be_drawn_names_its_own_table(tmp_path: Path) -> None:
    path = package(tmp_path, "textual")
    words = ["fleet", "--simulate", "2"]
    with terminal([*TPUSMI, *words], environment("/", PYTHONPATH=path), 400, 30) as screen:
        assert screen.end() == 1
        screen.take(0.2)
    assert "tpusmi fleet --once prints one table" in screen.text
    assert tpusmi("/", *words, "--once", PYTHONPATH=path).returncode == 0


@pytest.mark.parametrize("name", ["prometheus_client", "aiohttp", "yaml", "bcrypt"])
@pytest.mark.parametrize("error", ["ImportError('broken')", "OSError('cut off')"])
def test_an_exporter_with_a_broken_package_is_refused_in_a_sentence(
    tmp_path: Path, name: str, error: str
) -> None:
    path = package(tmp_path, name, f"raise {error}")
    config = tmp_path / "web.yml"
    config.write_text("{}")
    words = ("serve", "--port", "0", "--web-config", str(config))
    done = tpusmi("/", *words, PYTHONPATH=path)
    why = error.replace("('", ": ").rstrip("')")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"tpusmi: {name} cannot be loaded ({why}): pip install 'tpusmi[serve]'"
    ]


RUN = """
import os, sys
from tpusmi.cli import main
sys.executable = sys.argv.pop(1) if sys.argv[1] != "None" else (sys.argv.pop(1), None)[1]
sys.exit(main())
"""


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A program that tells when it was started, and has a Python's name."""
    path = tmp_path / "python3"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 60\n")
    path.chmod(0o755)
    return path


def run_with(executable: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """tpusmi in a Python that takes itself for that program."""
    return subprocess.run(
        [sys.executable, "-c", RUN, executable, *arguments],
        env=environment("/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip


@pytest.mark.parametrize("executable", ["", "None", "/bin/true", "/no/such/python3", "wrapper"])
@pytest.mark.parametrize(
    "command", ["-1 --simulate v5e-1", "simulate v5e-1", "demo --json", "serve-tui --port 0"]
)
def test_a_python_that_is_not_this_one_is_not_started(
    marker: Path, executable: str, command: str
) -> None:
    found = run_with(str(marker) if executable == "wrapper" else executable, *command.split())
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert "sys.executable is" in found.stderr
    assert not (marker.parent / "started").exists()


@pytest.mark.parametrize("executable", ["", "None", "wrapper"])
def test_what_needs_no_other_python_goes_on(host: Host, marker: Path, executable: str) -> None:
    path = str(marker) if executable == "wrapper" else executable
    found = run_with(path, "--json", "--simulate", host.root)
    assert seen_of_libtpu(found)[0] == "ok"
    assert json.loads(found.stdout)["devices"][0]["hbm_used_bytes"] > 0
    assert not (marker.parent / "started").exists()


def test_a_linked_python_is_this_one(host: Host, tmp_path: Path) -> None:
    link = tmp_path / "python3"
    os.symlink(os.path.realpath(sys.executable), link)
    code = "from tpusmi.interpreter import why_unknown; print(repr(why_unknown()))"
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [link, "-c", code], env=environment("/", PYTHONPATH=path), capture_output=True, text=True
    )
    assert done.stdout == "''\n", done.stderr


@pytest.mark.parametrize(("columns", "lines"), [("40", "8"), ("500", "200"), ("x", "")])
def test_the_terminals_own_size_beats_what_a_shell_exported(
    host: Host, columns: str, lines: str
) -> None:
    env = environment("/", COLUMNS=columns, LINES=lines)
    with terminal([*TPUSMI, "--simulate", host.root], env, 120, 30) as screen:
        screen.see_match(r"(.*\n){29}.*Quit")
        assert "every 1s" in screen.screen.display[0]
        screen.press("q")
        assert screen.end() == 0
    for command in ("-1", "ps"):
        with terminal([*TPUSMI, command, "--simulate", host.root], env, 90, 30) as screen:
            screen.end()
            screen.take(0.2)
        assert max(len(line.rstrip()) for line in screen.screen.display) > 60
        assert b"\r\n" in screen.written
