"""What each entry point loads: start-up time is a feature."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support import segments
from support.commands import environment

import tpusmi

OF_SERVERS = {"aiohttp", "prometheus_client"}
HEAVY = {
    "textual", "rich", "jax", "jaxlib", "libtpu", "grpc", "google", "numpy", "psutil", *OF_SERVERS,
}  # fmt: skip


def loaded_by(code: str, directory: Path) -> set[str]:
    """The modules a fresh interpreter has after running the code, less those it starts with."""
    script = (
        "import sys; before = set(sys.modules)\n"
        f"{code}\n"
        "sys.stderr.write('MODULES ' + ' '.join(set(sys.modules) - before))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "MODULES" in found.stderr, found.stderr
    return set(found.stderr.rpartition("MODULES ")[2].split())


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture
def no_server() -> None:
    """grpc is loaded where a metrics server can be, and another test or a TPU may have one here."""
    try:
        socket.create_connection(("localhost", 8431), timeout=1).close()
    except OSError:
        return
    pytest.skip("there is a metrics server on this machine")


def test_importing_tpusmi_loads_nothing_but_itself(tmp_path: Path) -> None:
    assert roots(loaded_by("import tpusmi", tmp_path)) <= {"tpusmi", "__future__"}


@pytest.mark.parametrize(
    "code",
    [
        "import tpusmi; tpusmi.start; tpusmi.step",
        "import tpusmi; tpusmi.start(); tpusmi.step(flops=1e12); tpusmi.stop()",
        "import tpusmi; tpusmi.track(len)",
        "import tpusmi.wire.__main__",
    ],
)
def test_the_agent_loads_the_standard_library_only(tmp_path: Path, code: str) -> None:
    loaded = loaded_by(code, tmp_path)
    assert roots(loaded) - {"tpusmi"} <= set(sys.stdlib_module_names)
    assert not {name for name in loaded if name.startswith(("tpusmi.api", "tpusmi.report"))}


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("call", ["snapshot()", "show()", "show", "watch(count=1)"])
def test_the_reader_loads_the_standard_library_only(tmp_path: Path, call: str) -> None:
    found = roots(loaded_by(f"import tpusmi; tpusmi.{call}", tmp_path))
    assert found - {"tpusmi"} <= set(sys.stdlib_module_names)


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("flags", ["--json", "--once", "-L", "--query-tpu=index --format=csv"])
def test_a_one_shot_command_loads_no_heavy_library(tmp_path: Path, flags: str) -> None:
    segments.my_segment(tmp_path)
    code = f"from tpusmi.cli import main; main({flags.split()!r})"
    found = loaded_by(code, tmp_path)
    assert not roots(found) & HEAVY
    assert not found & {
        "dataclasses",
        "inspect",
        "asyncio",
        "socket",
        "subprocess",
        "importlib.metadata",
        "tomllib",
        "tpusmi.settings",
    }


FOR_WHAT_IS_THERE = {
    "tpusmi.cli.looks",
    "tpusmi.memprofile",
    "tpusmi.merge.memory_watch",
    "tpusmi.merge.sole_holder",
    "tpusmi.metricproto",
    "tpusmi.pprof",
    "tpusmi.sources.holders.passes",
    "tpusmi.sources.holders.procfs",
    "tpusmi.sources.child_process",
    "tpusmi.sources.libtpu.client",
    "tpusmi.sources.libtpu.names",
    "tpusmi.sources.profiles",
    "tpusmi.sources.segments.job_segment",
    "tpusmi.merge.traced",
    "tpusmi.trace.figures",
    "tpusmi.profiler",
    "tpusmi.wire.reader",
}
"""Modules that only a node, a server, a job, the SDK's child, a terminal or a capture needs."""
MODULES_MOST = 67
"""Each costs a command about 0.2 ms, and bare Python starts in 10 ms."""


@pytest.mark.usefixtures("no_server")
def test_where_nothing_is_the_modules_of_what_could_be_there_are_not_loaded(tmp_path: Path) -> None:
    loaded = loaded_by("from tpusmi.cli import main; main(['--json'])", tmp_path)
    assert "tpusmi.collect" in loaded
    assert not loaded & FOR_WHAT_IS_THERE
    assert len([name for name in loaded if name.startswith("tpusmi")]) <= MODULES_MOST


def test_the_dashboard_loads_nothing_of_captures_before_the_first(tmp_path: Path) -> None:
    loaded = loaded_by("import tpusmi.tui.app", tmp_path)
    assert {name for name in loaded if name.startswith("tpusmi.tui.capturing.")} == {
        "tpusmi.tui.capturing.capturing_app"
    }
    parts = ("tpusmi.trace", "tpusmi.profiler", "tpusmi.tui.profile")
    assert not {name for name in loaded if name.startswith(parts)}


def test_the_exporter_loads_no_screen_and_no_library_of_jobs(tmp_path: Path) -> None:
    code = "import tpusmi.cli.serve, tpusmi.exporter.scrape_server, tpusmi.exporter.textfile"
    found = loaded_by(code, tmp_path)
    assert "tpusmi.exporter.of_snapshot" in found
    assert not roots(found) & (HEAVY - OF_SERVERS)
    assert not roots(found) & {"yaml", "bcrypt", "textual_serve"}


ONE_SHOTS = (
    "--json",
    "--once",
    "-L",
    "--query-tpu=index --format=csv",
    "--query-processes=pid --format=csv",
)


@pytest.mark.parametrize("flags", ONE_SHOTS)
def test_a_one_shot_command_compiles_no_annotation(tmp_path: Path, flags: str) -> None:
    """The first costs a millisecond, as much as a whole look at the machine."""
    segments.my_segment(tmp_path)
    code = (
        "import typing; seen = []; init = typing.ForwardRef.__init__\n"
        "def noted(self, *words, **more): seen.append(words); init(self, *words, **more)\n"
        "typing.ForwardRef.__init__ = noted\n"
        f"from tpusmi.cli import main; assert main({flags.split()!r}) == 0; assert not seen, seen"
    )
    assert "tpusmi.collect" in loaded_by(code, tmp_path)


@pytest.mark.parametrize("part", ["model", "sources"])
def test_a_module_with_named_tuples_compiles_no_annotation(part: str) -> None:
    """Also one that only a metrics server, the SDK or a left-over holder needs."""
    modules = [*Path(tpusmi.__file__).with_name(part).rglob("*.py")]
    texts = {module.name: module.read_text("utf-8") for module in modules}
    future = "\nfrom __future__ import annotations\n"
    assert modules
    assert not [name for name, text in texts.items() if "(NamedTuple)" in text and future in text]


def test_the_dashboard_loads_no_jax(tmp_path: Path) -> None:
    found = roots(loaded_by("import tpusmi.tui.app, tpusmi.cli.dashboard", tmp_path))
    assert "textual" in found
    assert not found & {"jax", "jaxlib", "libtpu", "numpy", "grpc"}


def test_the_version_needs_little_more_than_argparse(tmp_path: Path) -> None:
    code = "from tpusmi.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass"
    found = loaded_by(code, tmp_path)
    assert not found & {"typing", "json", "threading", "tpusmi.model", "tpusmi.collect"}
