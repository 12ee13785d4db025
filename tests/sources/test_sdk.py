"""The SDK source with children that stand in for ours: whatever they do ends in one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path

import pytest
from support.waits import until, with_a_short_limit

from tpusmi.model import ABSENT, FAILED, OK, Host, Outcome, RowKey
from tpusmi.sources.libtpu import sdk
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.libtpu.sdk import LibtpuSdk

READ_MOST_S = 15.0
SUPPORTED = ["tensorcore_util", "ici_link_health", "tpu_throttle_score"]

GOOD = """
import json, os, sys
DATA = {
    "tensorcore_util": ["12.00", "13.50"],
    "ici_link_health": ["tray1.chip0.ici0.int: 0"],
    "tpu_throttle_score": ["1-0: 0", "1-1: 2"],
}
def answer(line, **more):
    wanted = json.loads(line)
    metrics = {n: {"description": n, "data": DATA[n]} for n in wanted if n in DATA}
    print(json.dumps({
        "version": str(os.getpid()), "supported": [*DATA], "metrics": metrics, "errors": {},
        "took_s": 0.1, **more}), flush=True)
"""
ALWAYS = GOOD + "for line in sys.stdin: answer(line)\n"

Start = Callable[..., LibtpuSdk]


@pytest.fixture
def start() -> Iterator[Start]:
    """Makes a source whose child runs that code; nothing of it is left at the end."""
    sources: list[LibtpuSdk] = []

    def make(code: str, *arguments: object, lacking: Container[str] = ()) -> LibtpuSdk:
        command = (sys.executable, "-S", "-c", code, *map(str, arguments))
        sources.append(LibtpuSdk(Host(sdk_command=command), never, lacking=lambda _: lacking))
        return sources[-1]

    descriptors, children = set(os.listdir("/proc/self/fd")), my_children()
    yield make
    for source in sources:
        source.close()
    assert set(os.listdir("/proc/self/fd")) <= descriptors
    assert my_children() <= children


def my_children() -> set[str]:
    """Processes that this one has started and not waited for."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread of another test has just ended
            found.update((task / "children").read_text().split())
    return found


def never() -> bool:
    raise AssertionError("a host with a command of its own is not asked for its chips")


def read(source: LibtpuSdk, after_s: float = 0.0, since_s: float | None = None) -> Outcome:
    """Read as if that much later than now, or than then; never takes long."""
    began_s = time.monotonic()
    found = source.read((began_s if since_s is None else since_s) + after_s)
    assert time.monotonic() - began_s < READ_MOST_S
    assert found.source == "libtpu_sdk"
    assert found.took_s < READ_MOST_S
    return found


def is_running(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def utilization(found: Outcome) -> dict[object, float]:
    name = "tensorcore_utilization_percent"
    return {r.subject: r.value for r in found.readings if r.metric == name}


def test_readings_and_links_come_with_the_version(start: Start) -> None:
    found = read(start(ALWAYS))
    assert found.status == OK
    assert utilization(found) == {RowKey("sdk", 0): 12.0, RowKey("sdk", 1): 13.5}
    assert [(link.chip, link.health) for link in found.links] == [(0, 0)]
    assert {r.value for r in found.readings if r.metric == "throttle_percent"} == {0.0, 20.0}
    assert found.libtpu_version is not None
    assert found.message == f"libtpu {found.libtpu_version}"
    assert all(r.fresh_s >= 5.0 and r.source == "libtpu_sdk" for r in found.readings)


def test_one_child_answers_every_read_and_ends_with_the_source(start: Start) -> None:
    source = start(ALWAYS)
    pids = {read(source, after_s).libtpu_version for after_s in (0, 1, 2)}
    (pid,) = pids
    assert is_running(int(pid or 0))
    source.close()
    assert not is_running(int(pid or 0))
    assert read(source).status == ABSENT


def test_what_seldom_changes_is_seldom_asked(start: Start, tmp_path: Path) -> None:
    code = GOOD + "for line in sys.stdin: open(sys.argv[1], 'a').write(line); answer(line)\n"
    source, began_s = start(code, tmp_path / "asked"), time.monotonic()
    for after_s in (0.0, 1.0, 2.0, 5.0):
        read(source, after_s, began_s)
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [SUPPORTED, SUPPORTED[:1], SUPPORTED[:1], SUPPORTED]


def test_everything_is_asked_by_all_its_names_until_the_supported_are_known(
    start: Start, tmp_path: Path
) -> None:
    code = GOOD + "for line in sys.stdin: open(sys.argv[1], 'a').write(line); answer(line)\n"
    code = code.replace("[*DATA]", "['hlo_exec_timing', 'tcp_min_rtt']")
    source = start(code, tmp_path / "asked", lacking={name.metric for name in NAMES})
    read(source)
    read(source, 60.0)
    first, second = map(json.loads, (tmp_path / "asked").read_text().splitlines())
    assert {"hlo_execution_timing", "hlo_exec_timing", "hbm_capacity_usage"} <= {*first}
    assert "hlo_execution_timing" not in second
    assert {"hlo_exec_timing", "tcp_min_rtt"} <= {*second}


def test_no_data_is_absent_with_the_reason_that_libtpu_prints(start: Start) -> None:
    code = GOOD.replace('["12.00", "13.50"]', "[]").replace('["tray1', '[] and ["tray1')
    code = code.replace('["1-0: 0", "1-1: 2"]', "[]")
    silent = read(start(code + "for line in sys.stdin: answer(line)\n"))
    assert (silent.status, silent.readings) == (ABSENT, ())
    assert silent.message.endswith("has no values: no program is loaded")
    warning = (
        "W1128 02:12:37.832742 2822 libtpu_sdk_api_impl.cc:167] TPU Monitoring Library: Failed to "
        "get metric values: UNAVAILABLE: failed; last error: UNKNOWN: ipv4:127.0.0.1:8353: refused"
    )
    code += f"for line in sys.stdin: sys.stderr.write({warning + chr(10)!r}); answer(line)\n"
    talking = read(start(code))
    assert talking.message.endswith("has no values: ipv4:127.0.0.1:8353: refused")


def test_values_are_gone_when_the_program_is(start: Start) -> None:
    code = GOOD + "answer(sys.stdin.readline()); DATA['tensorcore_util'] = []\n"
    source = start(code + "for line in sys.stdin: answer(line)\n")
    assert utilization(read(source))
    assert not utilization(read(source, 1.0))


def test_without_a_command_or_a_tpu_or_libtpu_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(command: object) -> None:
        raise AssertionError("started a process")

    monkeypatch.setattr("tpusmi.sources.child_process.ChildProcess", refuse)
    assert read(LibtpuSdk(Host(sdk_command=()), never)).status == ABSENT
    assert read(LibtpuSdk(Host(root="/nowhere"), never)).status == ABSENT
    laptop = read(LibtpuSdk(Host(), lambda: False))
    assert (laptop.status, laptop.message) == (ABSENT, "no TPU here")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "libtpu", raising=False)  # if JAX started here
    bare = read(LibtpuSdk(Host(), lambda: True))
    assert (bare.status, bare.message) == (ABSENT, sdk.NOT_INSTALLED)


def test_a_command_that_is_not_there_is_failed() -> None:
    found = read(LibtpuSdk(Host(sdk_command=("/nowhere/python",)), never))
    assert found.status == FAILED
    assert "could not be started: No such file or directory" in found.message


CRASH = "import os, signal, sys; open(sys.argv[1], 'a').write('x'); "


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "libtpu's SDK crashed (signal 11)"),
        ("sys.exit(3)", "libtpu's SDK ended (exit code 3)"),
        ("sys.exit('\\x1b[31mboom')", "libtpu's SDK ended (exit code 1): [31mboom"),
        (
            "os.write(2, b'F1128 02:10:26.5 325 field.cc:48] Index out of bounds\\n"
            "    @ 0x7fb4dc69bc54 SendToLog()\\n'); os.abort()",
            "libtpu's SDK crashed (signal 6): Index out of bounds",
        ),
        ("os.close(1); sys.stdin.read()", "libtpu's SDK has closed its output"),
    ],
)
def test_a_child_that_dies_says_how(start: Start, tmp_path: Path, code: str, told: str) -> None:
    quiet = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
    found = read(start(CRASH + quiet + code, tmp_path / "started"))
    assert (found.status, found.message) == (FAILED, told)


def test_crashes_are_tried_again_ever_later(start: Start, tmp_path: Path) -> None:
    started = tmp_path / "started"
    source, began_s = start(CRASH + "sys.exit(1)", started), time.monotonic()
    # Again after 1, 2 and 600 s; between two lies more than a slow machine needs for a crash.
    for after_s, starts in ((0, 1), (0.9, 1), (40, 2), (41.9, 2), (80, 3), (670, 3), (720, 4)):
        found = read(source, after_s, began_s)
        assert (len(started.read_text()), found.status) == (starts, FAILED)
    assert "(4 times; tried again in 10 minutes)" in found.message


def test_a_child_that_dies_after_an_answer_leaves_it_with_its_age(start: Start) -> None:
    source = start(GOOD + "answer(sys.stdin.readline()); sys.stdin.readline()")
    first = read(source)
    later = read(source, 1.0)
    assert (later.status, later.message) == (FAILED, "libtpu's SDK ended (exit code 0)")
    assert later.readings == first.readings
    assert later.links == first.links
    assert read(source, 2.5).status == OK


@with_a_short_limit
def test_old_links_are_not_shown_as_the_state_of_today(start: Start) -> None:
    code = GOOD + "answer(sys.stdin.readline()); sys.stdin.read()"
    source = start(code)
    assert read(source).links
    assert not read(source, 60.0).links


HANG = "import sys, time; sys.stdout.flush(); sys.stdin.readline(); time.sleep(600)"


@with_a_short_limit
def test_a_child_that_hangs_is_starting_then_failed_and_killed(start: Start) -> None:
    source = start(HANG)
    found = read(source)
    assert (found.status, found.message) == (ABSENT, "libtpu's SDK is starting")
    assert source._child is not None
    pid = source._child.pid
    found = read(source, 10.0)
    assert (found.status, found.message) == (FAILED, "libtpu's SDK has not answered for 10 s")
    assert not is_running(pid)


@with_a_short_limit
def test_a_late_answer_is_taken_by_the_next_read(start: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    source = start(GOOD + "open(sys.argv[1]).read()\nfor line in sys.stdin: answer(line)\n", fifo)
    assert read(source).message == "libtpu's SDK is starting"
    fifo.write_text("go")
    found = read(source)
    assert found.status == OK
    assert found.readings[0].at_s == pytest.approx(time.monotonic(), abs=10)


@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize("piece", ["b'x' * 65536", "b'x\\n' * 32768"])
@with_a_short_limit
def test_a_flood_is_read_in_bounds_and_stopped(start: Start, stream: int, piece: str) -> None:
    source = start(f"import os\nwhile True: os.write({stream}, {piece})")
    found = read(source)
    assert source._child is None or len(source._child._talk) <= 8192
    found = read(source, 10.0)
    assert found.status == FAILED
    assert "libtpu's SDK" in found.message
    assert len(found.message) < 300


def test_an_answer_is_heard_through_much_talk(start: Start) -> None:
    code = "for line in sys.stdin: os.write(2, b'noise ' * 50000); answer(line)\n"
    assert read(start(GOOD + code)).status == OK


@pytest.mark.parametrize(
    "line",
    ["garbage", "[]", "null", "3", "\\xff\\xfe", "[" * 100_000, "9" * 5000, '{"metrics":', ""],
    ids=lambda line: line[:12],
)
def test_a_line_that_is_no_answer_is_failed(start: Start, line: str) -> None:
    code = f"import sys; sys.stdin.readline(); sys.stdout.buffer.write(b'{line}\\n')"
    found = read(start(code + "; sys.stdout.flush(); sys.stdin.read()"))
    assert (found.status, found.message) == (
        FAILED,
        "libtpu's SDK sent an invalid reply",
    )


@pytest.mark.parametrize(
    "more",
    [
        {"version": 3, "supported": 5, "metrics": [1], "errors": "no"},
        {"version": "\x1b[2J", "supported": [1, None], "metrics": {"tensorcore_util": 5}},
        {"metrics": {"tensorcore_util": {"data": {"a": 1}}, "other": None}, "took_s": "x"},
        {"metrics": {"tensorcore_util": {"data": [None, [[]], {}]}, "ici_link_health": {}}},
        {},
    ],
)
def test_an_answer_of_wrong_types_gives_no_readings(start: Start, more: dict[str, object]) -> None:
    code = "import sys\nfor line in sys.stdin: print(sys.argv[1], flush=True)"
    found = read(start(code, json.dumps(more)))
    assert found.status == ABSENT
    assert not found.readings
    assert found.message.isprintable()


def test_a_metric_that_fails_is_a_note(start: Start) -> None:
    code = GOOD + "for line in sys.stdin: answer(line, errors={'ici_link_health': 'a\\x1b[2Jb'})"
    found = read(start(code))
    assert found.status == OK
    assert found.notes == ("ici_link_health: a [2Jb",)


def test_a_libtpu_that_cannot_be_imported_says_why(start: Start) -> None:
    found = read(start(GOOD + "answer(sys.stdin.readline(), errors={'import': 'ImportError: x'})"))
    assert (found.status, found.message) == (
        FAILED,
        "libtpu's SDK cannot be used: ImportError: x",
    )


def test_the_child_gets_four_pipes_and_nothing_else(start: Start) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        code = "fds = sorted(map(int, os.listdir('/proc/self/fd')))[:-1]\n"
        code += "group = os.getpgrp() == os.getpid()\n"
        code += "for line in sys.stdin: answer(line, version=f'{fds} {group}')"
        found = read(start(GOOD + code))
    finally:
        os.close(reading)
        os.close(writing)
    assert found.libtpu_version == "[0, 1, 2, 3] True"


def test_the_child_starts_where_our_own_stdin_and_stdout_are_closed() -> None:
    code = (
        "import os, sys, time; sys.path[:0] = sys.argv[2:]\n"
        "os.close(0); os.close(1)\n"
        "from tpusmi.model import Host; from tpusmi.sources.libtpu.sdk import LibtpuSdk\n"
        "s = LibtpuSdk(Host(sdk_command=(sys.executable, '-c', sys.argv[1])), lambda: True)\n"
        "f = s.read(time.monotonic()); s.close(); sys.exit(f.status)"
    )
    command = (sys.executable, "-c", code, ALWAYS, *sys.path)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.stderr == b"ok\n"


@with_a_short_limit
def test_closing_ends_a_read_that_waits(start: Start) -> None:
    source = start(HANG)
    took: list[float] = []

    def wait() -> None:
        took.append(source.read(time.monotonic()).took_s)

    thread = threading.Thread(target=wait)
    thread.start()
    while source._child is None:
        time.sleep(0.001)
    source.close()
    thread.join(READ_MOST_S)
    assert took
    assert took[0] < 1.0  # a read that waits takes 1.3 s


@with_a_short_limit
def test_a_second_read_at_the_same_time_does_not_wait(start: Start) -> None:
    source = start(HANG)
    thread = threading.Thread(target=source.read, args=(time.monotonic(),))
    thread.start()
    while source._child is None:
        time.sleep(0.001)
    assert source.read(time.monotonic()).took_s < 0.2
    source.close()
    thread.join(READ_MOST_S)


@pytest.mark.parametrize("ending", ["killed by us", "ends alone"])
def test_what_the_child_has_forked_goes_with_it(start: Start, ending: str) -> None:
    last = "os._exit(0)" if ending == "ends alone" else ""
    code = GOOD + (
        "for line in sys.stdin:\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        import time; time.sleep(600)\n"
        "    answer(line, version=str(pid))\n"
        f"    {last}\n"
    )
    source = start(code)
    grandchild = int(read(source).libtpu_version or 0)
    assert still_runs(grandchild)
    if ending == "ends alone":
        read(source, 10.0)
    source.close()
    until(lambda: not still_runs(grandchild), what="the grandchild ends with its parent")


def still_runs(pid: int) -> bool:
    """Whether it does anything yet: whoever inherits a dead one may not reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
