"""The real xprof in its child, against xprof asked directly; and stand-ins for it that do their
worst.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.profiles import unknown

from tpusmi.model import Host
from tpusmi.profiler import xprof_run
from tpusmi.profiler.xprof import with_xprof
from tpusmi.profiler.xprof_run import NOT_INSTALLED, TOO_OLD, pages_of
from tpusmi.sources.host_facts import host_facts
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TimeShares, TraceProfile
from tpusmi.trace.limits import MIB, TraceLimits
from tpusmi.trace.plain_objects import to_object

TRACES = Path(__file__).parents[1] / "data" / "xplane"
V6E = TRACES / "v6e-4_inference" / "tpu_inference.xplane.pb"
GPU = TRACES / "gpu_mi300x" / "gemm.xplane.pb"
MANGLED = TRACES / "corrupt_utf8_mangled" / "tpu_inference.xplane.pb"
XPROF = pytest.mark.skipif(
    importlib.util.find_spec("xprof") is None, reason="xprof is not installed"
)
OWN = unknown()._replace(notes=())
LIMIT_S = 90.0
ASK = """
import json, sys
from xprof.convert import raw_to_tool_data
pages = {}
for name in sys.argv[2:]:
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], name, {})
    pages[name] = json.loads(data)
with open(sys.argv[1] + ".pages", "w") as out:
    json.dump(pages, out)
"""
NAMES = ("overview_page", "op_profile", "hlo_stats", "roofline_model", "memory_profile")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory for temporary files, which has to be empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def limits(seconds: float = LIMIT_S, **others: int) -> TraceLimits:
    return TraceLimits(until_s=time.monotonic() + seconds, **others)


def joined(path: Path) -> TraceProfile:
    return with_xprof(str(path), OWN, limits())


@pytest.fixture(scope="module", params=[V6E, GPU], ids=["v6e", "gpu"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TraceProfile, dict[str, Any]]:
    """The profile of a trace with xprof's figures, and xprof's own pages of it."""
    if importlib.util.find_spec("xprof") is None:
        pytest.skip("xprof is not installed")
    copy = tmp_path_factory.mktemp("asked") / "copy.xplane.pb"
    shutil.copy(request.param, copy)
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(copy), *NAMES], capture_output=True, timeout=LIMIT_S
    )
    assert asked.returncode == 0, asked.stderr.decode()
    pages = json.loads(Path(f"{copy}.pages").read_text())
    return joined(request.param), pages


def first_row(page: Any, **values: str) -> dict[str, Any]:
    return next(r for r in rows(page) if all(r[k] == v for k, v in values.items()))


def rows(page: Any) -> list[dict[str, Any]]:
    table = page[0] if isinstance(page, list) else page
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (c["v"] for c in row["c"]), strict=True)) for row in table["rows"]]


def test_duty_cycle_and_idle_are_those_of_xprof(both: tuple[TraceProfile, dict[str, Any]]) -> None:
    """xprof's overview rounds to a tenth of a percent, and its duty cycle leaves out waiting for
    the host. It prints neither for a GPU: there the idle operation of op_profile tells.
    """
    profile, pages = both
    printed = pages["overview_page"][0]["p"]
    program = pages["op_profile"]["byProgram"]
    idle = next(c for c in program["children"] if c["name"] == "IDLE")["metrics"]["rawTime"]
    idle_percent = 100 * idle / program["metrics"]["rawTime"]
    assert profile.idle_percent == pytest.approx(idle_percent)
    if "device_idle_time_percent" in printed:
        assert f"{profile.idle_percent:.1f}%" == printed["device_idle_time_percent"]
        assert f"{profile.duty_cycle_percent:.1f}%" == printed["device_duty_cycle_percent"]
    else:
        assert profile.duty_cycle_percent == pytest.approx(100 - idle_percent)
    assert profile.sources["idle_percent"] == profile.sources["duty_cycle_percent"] == "xprof"


def test_rates_and_peaks_are_those_of_its_roofline(
    both: tuple[TraceProfile, dict[str, Any]],
) -> None:
    profile, pages = both
    peaks = pages["roofline_model"][0]["p"]
    assert profile.peak_flops_per_s == pytest.approx(float(peaks["peak_flop_rate"]) * 1e9)
    assert profile.peak_hbm_bytes_per_s == pytest.approx(float(peaks["peak_hbm_bw"]) * 2**30)
    program = first_row(pages["roofline_model"], step="Total", operation="Program")
    if profile.backend == "gpu":
        notes = " ".join(profile.notes)
        assert "xprof counts no FLOPs of custom calls, which take 94 % of the busy time" in notes
        assert profile.mxu_percent is profile.flops_per_s is profile.hbm_bandwidth_percent is None
        return
    assert profile.flops_per_s == pytest.approx(program["measured_flop_rate"] * 1e9)
    assert profile.mxu_percent == pytest.approx(100 * program["compute_efficiency"])
    assert profile.hbm_bandwidth_percent == pytest.approx(
        100 * program["hbm_bw"] / float(peaks["peak_hbm_bw"])
    )


def test_operations_are_those_of_hlo_stats(both: tuple[TraceProfile, dict[str, Any]]) -> None:
    profile, pages = both
    table = rows(pages["hlo_stats"])
    assert len(profile.operations) == len(table)
    for operation, row in zip(profile.operations, table, strict=True):
        assert (operation.name, operation.category) == (row["hlo_op_name"], row["category"])
        assert operation.runs == row["occurrences"]
        assert operation.self_s == pytest.approx(row["total_self_time"] / 1e6)
        assert operation.self_percent == pytest.approx(row["total_self_time_percent"])
        assert (operation.flops_per_s or 0) == pytest.approx(row["model_flop_rate"] * 1e9)
        assert (operation.source or "") in row["source_info"].replace("&lt;", "<")
        assert (operation.framework_name or "") == row["tf_op_name"].rstrip(":")
        assert (operation.hbm_bandwidth_percent or 0) <= 102


def test_operations_reach_the_same_part_of_the_peak_as_in_the_roofline(
    both: tuple[TraceProfile, dict[str, Any]],
) -> None:
    profile, pages = both
    table = [r for r in rows(pages["roofline_model"]) if r["include_infeed_outfeed"]]
    named = {(r["operation"], r["total_self_time"]): r for r in table if r["step"] == "Total"}
    for operation, row in zip(profile.operations, rows(pages["hlo_stats"]), strict=True):
        efficiency = named[operation.name, row["total_self_time"]]["compute_efficiency"]
        assert (operation.mxu_percent or 0) == pytest.approx(100 * efficiency, rel=1e-5)


def test_memory_is_that_of_memory_profile(both: tuple[TraceProfile, dict[str, Any]]) -> None:
    profile, pages = both
    allocators = pages["memory_profile"]["memoryProfilePerAllocator"]
    of_devices = {k: v["profileSummary"] for k, v in allocators.items() if "host" not in k}
    assert [m.peak_bytes for m in profile.memory] == [
        int(of_devices[k]["peakStats"]["peakBytesInUse"]) for k in sorted(of_devices)
    ]
    assert {m.capacity_bytes for m in profile.memory} == {
        int(s["memoryCapacity"]) for s in of_devices.values()
    }


def test_shares_add_up(both: tuple[TraceProfile, dict[str, Any]]) -> None:
    profile, _ = both
    parts = profile.shares._replace(compile_percent=None)
    assert sum(part for part in parts if part is not None) == pytest.approx(100)


def test_what_xprof_prints_as_zero_is_unknown(both: tuple[TraceProfile, dict[str, Any]]) -> None:
    profile, pages = both
    assert pages["overview_page"][0]["p"]["mxu_utilization_percent"] == "0.0%"
    assert profile.steps is None
    assert profile.input_bound_percent is None


@XPROF
def test_the_trace_has_no_caches_beside_it_and_each_one_its_own_numbers() -> None:
    before = {path: sorted(path.iterdir()) for path in TRACES.iterdir()}
    v6e, mangled, gpu = (with_xprof(str(path), OWN, limits()) for path in (V6E, MANGLED, GPU))
    assert (v6e.device_type, gpu.device_type) == ("TPU v6 Lite", "AMD GPU - gfx942")
    assert mangled.notes == ("xprof cannot read this trace.",)
    assert {path: sorted(path.iterdir()) for path in TRACES.iterdir()} == before


@XPROF
@pytest.mark.parametrize("path", [V6E, GPU], ids=["v6e", "gpu"])
def test_our_own_reading_agrees_with_xprof(path: Path) -> None:
    """Within a point, or a note would say so. On a GPU xprof counts copies as idle, which belong to
    no program: 0.6 points here.
    """
    own = read_trace(str(path), limits())
    profile = with_xprof(str(path), own, limits())
    theirs = joined(path)
    assert not any("tpusmi's own reading" in note for note in profile.notes)
    assert own.idle_percent == pytest.approx(theirs.idle_percent, abs=1.0)
    assert own.duty_cycle_percent == pytest.approx(theirs.duty_cycle_percent, abs=1.0)
    assert len(profile.operations) >= len(theirs.operations)
    assert [op.name for op in profile.operations][:4] == [op.name for op in own.operations][:4]
    assert (profile.cores, profile.programs) == (own.cores, own.programs)
    assert json.loads(json.dumps(to_object(profile), allow_nan=False))


# What can go wrong.

FAKE = """
import os, sys, time, ctypes, signal
def xspace_to_tool_data(paths, tool, params):
    print("noise on stdout", flush=True)
    {does}
"""
EATING = "a = []\n    while True: a.append(b'x' * (1 << 20)); time.sleep(0.0005)"


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """A package named xprof that does that."""
    package = folder / "fake" / "xprof" / "convert"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").write_text("")
    (package / "raw_to_tool_data.py").write_text(FAKE.format(does=does))
    monkeypatch.setenv("PYTHONPATH", str(folder / "fake"))


def failure(seconds: float = LIMIT_S, **others: int) -> str:
    """The only note of a profile whose figures are all our own."""
    own = OWN
    profile = with_xprof(str(V6E), own, limits(seconds, **others))
    assert profile._replace(notes=()) == own
    assert profile.shares == TimeShares()
    (note,) = profile.notes
    assert note.endswith(".")
    return note[:-1]


@pytest.mark.parametrize(
    ("does", "sentence"),
    [
        ("ctypes.string_at(0)", "xprof crashed (signal 11)"),
        ("os._exit(3)", "xprof ended (exit code 3)"),
        ("os.kill(os.getppid(), 9); time.sleep(9)", "xprof crashed (signal 9)"),
        ("raise ValueError('a\\x1b[31m b')", "xprof cannot read this trace: ValueError: a [31m b"),
        ("return b'{', ''", "xprof cannot read this trace: JSONDecodeError: "),
        ("return b'[' * 100000, ''", "xprof cannot read this trace: RecursionError: "),
        ("return None, ''", "xprof cannot read this trace"),
        ("open(paths[0] + '.big', 'wb').truncate(2 << 30)", "xprof wrote more than 1 GiB of files"),
    ],
)
def test_whatever_xprof_does_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, sentence: str
) -> None:
    fake(tmp_path, monkeypatch, does)
    assert failure().startswith(sentence)


def test_an_endless_loop_ends_with_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, "ctypes.CDLL(None).pause()")
    begun_s = time.monotonic()
    assert re.fullmatch(r"xprof needed more than \d+\.\d s", failure(seconds=0.9))
    assert time.monotonic() - begun_s < LIMIT_S / 2


def test_endless_output_ends_with_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "while True: os.write(1, b'x' * 65536), os.write(2, b'y' * 65536)")
    assert re.fullmatch(r"xprof needed more than \d+\.\d s", failure(seconds=0.9))


def test_memory_is_limited_by_what_is_used_not_by_what_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, "import mmap; m = mmap.mmap(-1, 8 << 30); return b'{}', ''")
    assert pages_of(str(V6E), limits(memory_most=200 * MIB)).pages
    (tmp_path / "fake" / "xprof" / "convert" / "raw_to_tool_data.py").write_text(
        FAKE.format(does=EATING)
    )
    assert failure(memory_most=200 * MIB) == "xprof needed more than 0.195 GiB of memory"


def test_xprof_gets_half_of_the_memory_that_is_left_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = host_facts(Host())._replace(memory_available_bytes=300 * MIB)
    monkeypatch.setattr(xprof_run, "host_facts", lambda host: left)
    fake(tmp_path, monkeypatch, EATING)
    assert failure() == "xprof needed more than 0.146 GiB of memory"


def test_a_huge_page_is_cut_to_its_largest_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(
        tmp_path,
        monkeypatch,
        "import json\n"
        "    row = {'c': [{'v': 'n' * 1500}, {'v': 1.0}]}\n"
        "    cols = [{'id': 'hlo_op_name'}, {'id': 'total_self_time'}]\n"
        "    return json.dumps({'cols': cols, 'rows': [row] * 2500}), ''",
    )
    answer = pages_of(str(V6E), limits())
    table = answer.pages["hlo_stats"][0]
    assert len(table["rows"]) == 2000
    assert len(table["rows"][0]["c"][0]["v"]) == 800


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"xprof/__init__.py": ""}, TOO_OLD),
        ({"xprof/__init__.py": "", "xprof/convert/__init__.py": ""}, TOO_OLD),
        (
            {"xprof/__init__.py": "raise ImportError('libstdc++')"},
            "xprof cannot be loaded: ImportError: libstdc++",
        ),
        (
            {"xprof/__init__.py": "raise KeyError('x')"},
            "xprof cannot be loaded: KeyError: 'x'",
        ),
    ],
)
def test_an_xprof_that_cannot_be_used_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], sentence: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert failure() == sentence


@pytest.mark.parametrize("forerunner", [True, False])
def test_without_xprof_the_note_says_how_to_get_it(tmp_path: Path, forerunner: bool) -> None:
    if forerunner:
        (tmp_path / "tensorboard_plugin_profile.py").write_text("")
    script = f"""
import sys
sys.path[:] = [p for p in sys.path if "-packages" not in p]
sys.path.insert(0, {str(tmp_path)!r})
sys.argv[0] = {child_path()!r}
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    command = (sys.executable, "-S", "-c", script)
    answer = pages_of(str(V6E), limits(), command)
    assert answer.failure == (TOO_OLD if forerunner else NOT_INSTALLED)


def child_path() -> str:
    from tpusmi.profiler import xprof_child

    return os.path.abspath(xprof_child.__file__)


@XPROF
def test_what_the_environment_prints_at_the_start_is_not_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert not pages_of(str(V6E), limits()).failure


def test_no_module_of_the_current_directory_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xprof").mkdir()
    (tmp_path / "xprof" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    pages_of(str(V6E), limits())
    monkeypatch.setenv("PYTHONPATH", ":.")
    pages_of(str(V6E), limits())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/nowhere/x.xplane.pb", "xprof was not asked: No such file or directory"),
        ("/dev/zero", "xprof reads files only"),
    ],
)
def test_what_is_no_trace_is_not_given_to_xprof(path: str, sentence: str) -> None:
    assert with_xprof(path, OWN, limits()).notes == (f"{sentence}.",)


def test_a_large_trace_and_a_late_one_are_not_given_to_xprof() -> None:
    assert failure(bytes_most=1000) == "xprof was not asked: the trace has 0 MiB, more than 0 MiB"
    assert failure(seconds=-1) == "xprof was not asked: no time was left"


PROGRAM = """
import sys, tempfile, time
from tpusmi.profiler.xprof_run import pages_of
from tpusmi.trace.limits import TraceLimits
tempfile.tempdir = sys.argv[2]
pages_of(sys.argv[1], TraceLimits(until_s=time.monotonic() + 60))
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_program_is_killed(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    """Whatever ends it: the guard removes the directory of a program that is gone."""
    ready = tmp_path / "ready"
    fake(
        tmp_path,
        monkeypatch,
        f"open({str(ready)!r}, 'w').write(f'{{os.getpid()}} {{os.getppid()}}')\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
        "    while True: pass",
    )
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{Path(__file__).parents[2]}")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(V6E), str(temporary)], stderr=subprocess.DEVNULL
    )
    wait_for(lambda: ready.exists() and len(ready.read_text().split()) == 2)
    children = [int(pid) for pid in ready.read_text().split()]
    assert list(temporary.iterdir()) != []
    program.send_signal(end)
    program.wait(LIMIT_S)
    wait_for(lambda: not any(is_running(pid) for pid in children))
    wait_for(lambda: not list(temporary.iterdir()))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Any) -> None:
    until_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_the_worker_has_no_network_and_goes_first_when_memory_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    fake(
        tmp_path,
        monkeypatch,
        "import json\n"
        "    net = os.readlink('/proc/self/ns/net')\n"
        "    score = open('/proc/self/oom_score_adj').read().strip()\n"
        f"    json.dump([net, score, os.nice(0), os.getcwd()], open({str(told)!r}, 'w'))\n"
        "    return b'{}', ''",
    )
    pages_of(str(V6E), limits())
    network, score, niceness, directory = json.loads(told.read_text())
    assert (score, niceness, directory) == ("1000", min(19, os.nice(0) + 10), "/")
    if os.getuid() == 0:
        assert network != os.readlink("/proc/self/ns/net")


def test_an_installed_tpusmi_does_not_take_its_own_module_for_xprof(tmp_path: Path) -> None:
    place = tmp_path / "site-packages"
    shutil.copytree(Path(xprof_run.__file__).parents[1], place / "tpusmi")
    child = place / "tpusmi" / "profiler" / "xprof_child.py"
    code = f"import sys; sys.path.insert(0, {str(child.parent)!r}); import xprof_child as c; "
    code += "c.leave_no_trace(); print([p for p in sys.path if p.endswith('profiler')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_current_directory_may_have_been_removed(tmp_path: Path) -> None:
    child = Path(xprof_run.__file__).with_name("xprof_child.py")
    code = f"import os, sys; sys.path[:0] = ['.', {str(child.parent)!r}]; import xprof_child as c; "
    code += "os.rmdir(os.getcwd()); c.leave_no_trace(); print(os.getcwd())"
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=gone, capture_output=True, text=True, timeout=30
    )
    assert (done.stdout, done.stderr) == ("/\n", "")
