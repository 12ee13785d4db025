"""A host on which another user has done what he can: segments, a metrics server, command lines.

`python -m support.hostile_machine DIR`, in `tests/`, builds it in namespaces of its own, in that
empty directory, looks at it with every one-shot command and with the dashboard, and prints what
each gave as JSON. It needs root.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import networks, segments
from support.commands import TPUSMI, environment
from support.terminals import terminal
from tpusmi.wire import identity
from tpusmi.wire.layout import FACTS_JSON, PROFILE_PPROF, Identity
from tpusmi.wire.writer import SegmentWriter

STRANGER = 1001
SEGMENTS = 64
DEVICES = 1024
OWN_STEPS = 1200.0
OWN_ARGV = ["python", "own_train.py"]
QUOTES = "\"'" * 4000 + "key"
COMMANDS = {
    "json": ["--json"],
    "once": ["-1"],
    "list": ["-L"],
    "query": ["--query-tpu=index,memory.used", "--format=csv"],
    "processes": ["--query-processes=pid,command,steps", "--format=csv"],
    "ps": ["ps"],
    "ps_json": ["ps", "--json"],
    "stale": ["kill", "--stale", "--all-users", "--dry-run", "--json"],
}

_NEW_MOUNTS, _PRIVATE, _BIND = 0x20000, 0x40000 | 0x4000, 0x1000
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Build the host, look at it, print."""
    networks.enter()
    _enter_own_files(Path(sys.argv[1]))
    with _child(_own_job) as own, _child(_as_stranger(_stranger), own):
        looks = {name: _look(arguments) for name, arguments in COMMANDS.items()}
        looks["dashboard"] = _look_at_dashboard()
        json.dump({"own": own, "looks": looks, "alive": _is_there(own)}, sys.stdout)


def _enter_own_files(directory: Path) -> None:
    """A /dev with a node of a TPU, and an empty /dev/shm."""
    _checked(_libc.unshare(_NEW_MOUNTS))
    _mount(None, "/", None, _PRIVATE)
    dev = directory / "dev"
    dev.mkdir()
    _mount("none", dev, "tmpfs", 0)
    for name, major, minor in (
        *(("null", 1, 3), ("zero", 1, 5), ("random", 1, 8), ("urandom", 1, 9)),
        *(("tty", 5, 0), ("accel0", 1, 7)),
    ):
        os.mknod(dev / name, 0o666 | 0o020000, os.makedev(major, minor))
        (dev / name).chmod(0o666)
    for name in ("shm", "pts"):
        (dev / name).mkdir()
    os.symlink("pts/ptmx", dev / "ptmx")
    os.symlink("/proc/self/fd", dev / "fd")
    _mount("none", dev / "shm", "tmpfs", 0)
    (dev / "shm").chmod(0o1777)
    _mount("/dev/pts", dev / "pts", None, _BIND)
    _mount(dev, "/dev", None, _BIND | 0x4000)
    for taken in ("/tmp", "/run/user"):
        os.makedirs(taken, exist_ok=True)
    _mount("none", "/run/user", "tmpfs", 0)


def _mount(source: Path | str | None, target: Path | str, kind: str | None, flags: int) -> None:
    words = [None if w is None else os.fsencode(w) for w in (source, target, kind)]
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), None))


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@contextmanager
def _child(work: Callable[[int, Callable[[], None]], None], *arguments: int) -> Iterator[int]:
    """A forked child that works until it is ended; its pid, once it says that it is ready."""
    ready, says = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(ready)
            work(*arguments, lambda: os.write(says, b"."))  # type: ignore[call-arg]
        except BaseException:  # noqa: BLE001  # nothing of it may get back into our caller
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(says)
    try:
        assert os.read(ready, 1) == b".", "a child ended before it was ready"
        yield pid
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _own_job(ready: Callable[[], object]) -> None:
    """A job of root's that holds no node, and whose agent says what is compared."""
    directory = "/dev/shm/tpusmi-0"
    os.mkdir(directory, 0o755)
    me = identity.me()
    writer = segments.segment(directory, me, 2, segments.facts(2, argv=OWN_ARGV, platform="cpu"))
    while True:
        now = time.monotonic()
        process = {**segments.RUNNING, "steps": OWN_STEPS, "profile_at_s": now}
        writer.append(
            segments.slot(now, process, [segments.device(0), segments.device(1)], time.time())
        )
        ready()
        time.sleep(0.25)


def _as_stranger(work: Callable[..., None]) -> Callable[..., None]:
    def become(*arguments: Any) -> None:
        from support import metric_servers

        identity.me()  # what Python loads for that, the stranger may not be able to read
        metric_servers.MetricServer(metric_servers.of_devices([0])).stop()
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)
        work(*arguments)

    return become


def _stranger(own: int, ready: Callable[[], object]) -> None:
    """All at once: segments, a command line that holds a node, and a metrics server."""
    directory = f"/dev/shm/tpusmi-{STRANGER}"
    os.mkdir(directory, 0o755)
    for number in range(SEGMENTS):
        _forge(directory, number, own)
    os.symlink("tpusmi-loop", "/dev/shm/tpusmi-loop")
    os.symlink("a" * 300, f"/dev/shm/tpusmi-{STRANGER}0")
    _hold_node()
    _serve(ready)


def _forge(directory: str, number: int, own: int) -> None:
    """One segment: of the own job's pid, of ours, of a pid of another namespace; too large."""
    me = identity.me()
    ticks = identity.start_ticks("/proc", own) or 0
    who = [
        Identity(own, STRANGER, ticks, me.boot_id, me.pid_namespace + 1),
        Identity(me.pid, STRANGER, me.start_ticks, me.boot_id, me.pid_namespace),
        Identity(100_000 + number, STRANGER, number, me.boot_id, me.pid_namespace + 1),
    ][min(number, 2)]
    devices = DEVICES if number % 2 else 8
    said = segments.facts(devices, argv=[QUOTES, "xmrig"], platform="tpu")
    text = json.dumps(said)
    header = segments.plan(who, devices, 100.0, 1_700_000_000.0)
    half = max(header.facts_half, len(text) + 4096)
    writer = SegmentWriter(
        f"{directory}/{who.pid}-{who.start_ticks}.seg", _with_facts_half(header, half)
    )
    writer.facts.write(FACTS_JSON, text.encode(), 100.0)
    writer.profile.write(PROFILE_PPROF, _bomb(), 99.0)
    now = time.monotonic()
    process = {**segments.RUNNING, "phase": 3.0, "since_last_step_s": 7200.0, "profile_at_s": now}
    for back in range(8, -1, -1):
        values = [segments.device(i) for i in range(devices)]
        writer.append(segments.slot(now - back, process, values, time.time() - back))
    os.utime(writer.path, (time.time() + 86400, time.time() + 86400))


def _with_facts_half(header: Any, half: int) -> Any:
    """The same with room for so long facts, and a short past."""
    more = 2 * (half - header.facts_half)
    return header._replace(
        facts_half=half,
        profile_offset=header.profile_offset + more,
        newest_offset=header.newest_offset + more,
        slots_offset=header.slots_offset + more,
        slots=16,
    )


def _bomb() -> bytes:
    """A profile of five kilobytes: a location with 20,000 lines in a file of a long name."""

    def number(n: int) -> bytes:
        found = bytearray()
        while n > 127:
            found.append(n & 127 | 128)
            n >>= 7
        return bytes([*found, n])

    def field(tag: int, payload: bytes) -> bytes:
        return number(tag << 3 | 2) + number(len(payload)) + payload

    def whole(tag: int, n: int) -> bytes:
        return number(tag << 3) + number(n)

    name = b"/jax/" + b"x" * 5_000_000 + b"/functools.py"
    lines = field(4, whole(1, 1) + whole(2, 7)) * 20_000
    made = field(6, b"") + field(6, name) + field(6, b"space") + field(6, b"bytes")
    made += field(1, whole(1, 2) + whole(2, 3)) * 2
    made += field(5, whole(1, 1) + whole(2, 1) + whole(4, 1))
    made += field(4, whole(1, 1) + lines)
    made += field(2, field(1, number(1)) + field(2, number(1) + number(64)))
    return gzip.compress(made)


def _hold_node() -> None:
    """A holder with quotes in its command line, that another of ours has started."""
    subprocess.Popen(
        ["/bin/sh", "-c", "exec 9<>/dev/accel0; read line", QUOTES],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: _libc.prctl(1, signal.SIGKILL),  # dies with us
    )


def _serve(ready: Callable[[], object]) -> None:
    """A metrics server on the usual port whose devices have other ids at each answer."""
    from support.metric_servers import MetricServer, of_devices

    server = MetricServer(of_devices(range(DEVICES)), address="127.0.0.1:8431")
    first = 0
    while True:
        ready()
        first += DEVICES
        server.answers = of_devices(range(first, first + DEVICES))
        time.sleep(0.2)


def _look(arguments: list[str]) -> dict[str, Any]:
    """A command's output, exit code, time and memory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        started_s = time.monotonic()
        child = subprocess.Popen(
            [*TPUSMI, *arguments],
            env=environment("", TPUSMI_DIR=None),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
        )
        kill = threading.Timer(60, child.kill)
        kill.start()
        _, status, used = os.wait4(child.pid, 0)
        kill.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.monotonic() - started_s
        out.seek(0)
        errors.seek(0)
        return {
            "code": child.returncode,
            "out": out.read(8_000_000).decode(),
            "err": errors.read(100_000).decode(),
            "took_s": took_s,
            "mib": used.ru_maxrss / 1024,
        }


def _look_at_dashboard() -> dict[str, Any]:
    """The dashboard for some seconds: the first screen with the own job, its memory, its end."""
    started_s = time.monotonic()
    with terminal(TPUSMI, environment("", TPUSMI_DIR=None), 160, 50) as screen:
        screen.see("own_train.py")
        took_s = time.monotonic() - started_s
        screen.take(8.0)
        text = screen.text
        status = Path(f"/proc/{screen.child.pid}/status").read_text()
        kib = int(next(x for x in status.splitlines() if x.startswith("VmHWM")).split()[1])
        asked_s = time.monotonic()
        screen.press("q")
        code = screen.end()
        quit_s = time.monotonic() - asked_s
    return {"code": code, "out": text, "took_s": took_s, "quit_s": quit_s, "mib": kib / 1024}


def _is_there(pid: int) -> bool:
    return identity.start_ticks("/proc", pid) is not None


if __name__ == "__main__":
    main()
