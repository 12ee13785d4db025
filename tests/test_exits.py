"""What a command printed is all there, or its exit code says that it is not; whoever runs it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import TPUSMI, USER, environment, tpusmi
from support.run_as import another_user
from support.waits import until

from tpusmi.model import Host
from tpusmi.simulate.host import HostPlan, start

CANNOT_WRITE = 74
LIMIT_S = 60.0
FULL, CLOSED = "No space left on device", "Bad file descriptor"

PRINTS = {
    "--version": 0,
    "--help": 0,
    "--help-query-tpu": 0,
    "--print-config": 0,
    "ps --help": 0,
    "kill --help": 0,
    "simulate --help": 0,
    "serve --help": 0,
    "serve-tui --help": 0,
    "-1 HOST": 0,
    "-L HOST": 0,
    "--json HOST": 0,
    "--query-tpu=index --format=csv HOST": 0,
    "ps HOST": 5,
    "ps --json HOST": 5,
    "kill --stale --dry-run HOST": 0,
    "kill 1 --json --dry-run HOST": 0,
}
"""One-shot commands that print data, and their exit codes."""

both_users = pytest.mark.parametrize("user", [None, USER], ids=["we", "another_user"])


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A simulated host of which no number changes."""
    with start(HostPlan("v5e-4", freeze_s=60.0)) as found:
        yield found


def words(command: str, host: Host) -> list[str]:
    """The command, on that host."""
    return [word for part in command.split() for word in _of(part, host)]


def _of(part: str, host: Host) -> list[str]:
    return ["--simulate", host.root] if part == "HOST" else [part]


def shell(
    line: str, *command: str, user: int | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """A line of the shell in which "$@" is that command of tpusmi's."""
    whole = ["bash", "-c", line, "bash", *TPUSMI, *command]
    return subprocess.run(
        whole if user is None else another_user(user, *whole),
        env=environment("/nowhere", **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
    )


def assert_same(found: str, expected: str) -> None:
    """Both are whole, but for numbers that were read at another time."""
    assert found[:10] == expected[:10]
    assert found[-4:] == expected[-4:]
    assert 0.95 < len(found) / len(expected) < 1.05


# -- who runs it


@both_users
@pytest.mark.parametrize("command", PRINTS)
def test_a_command_prints_into_a_pipe_and_into_a_file(
    tmp_path: Path, host: Host, command: str, user: int | None
) -> None:
    found = tpusmi(host.root, *words(command, host), user=user)
    # Another user does not see what we have open.
    code = 3 if user is not None and PRINTS[command] == 5 else PRINTS[command]
    assert (found.returncode, "Traceback" in found.stderr) == (code, False)
    assert len(found.stdout) >= len("tpusmi 0.1.0\n")
    with (tmp_path / "out").open("wb") as file:
        run = [*TPUSMI, *words(command, host)]
        subprocess.run(
            run if user is None else another_user(user, *run),
            env=environment("/nowhere", HOME="/"),
            stdout=file,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
        )
    assert_same((tmp_path / "out").read_text(encoding="utf-8"), found.stdout)


@both_users
def test_a_host_can_be_simulated_for_one_command(tmp_path: Path, user: int | None) -> None:
    found = tpusmi(tmp_path, "--simulate", "v5e-4", "--json", user=user)
    assert (found.returncode, found.stderr) == (0, "")
    told = json.loads(found.stdout)
    assert (told["simulated"], len(told["devices"])) == (True, 4)
    assert told["host"]["name"]


@both_users
def test_a_host_can_be_simulated_in_the_foreground(user: int | None) -> None:
    run = [*TPUSMI, "simulate", "v5e-1"]
    with subprocess.Popen(
        run if user is None else another_user(user, *run),
        env=environment("/nowhere"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        directory = process.stdout.readline().strip()
        assert os.stat(directory).st_uid == (os.getuid() if user is None else user)
        process.terminate()
        assert process.wait(LIMIT_S) == 0
    assert not os.path.exists(directory)


# -- where nothing can be written


@pytest.mark.parametrize("unbuffered", [None, "1"], ids=["", "unbuffered"])
@pytest.mark.parametrize("command", PRINTS)
def test_data_that_cannot_be_written_are_told_by_the_exit_code(
    host: Host, command: str, unbuffered: str | None
) -> None:
    more = {"PYTHONUNBUFFERED": unbuffered} if unbuffered else {}
    for redirect, why in ((">&-", CLOSED), (">/dev/full", FULL)):
        found = shell(f'"$@" {redirect}', *words(command, host), **more)
        assert (found.returncode, found.stdout) == (CANNOT_WRITE, b""), redirect
        assert found.stderr.decode().splitlines()[-1:] == [f"tpusmi: cannot write: {why}"]
        assert b"Traceback" not in found.stderr
    for redirect in (">&- 2>&-", "<&- >&- 2>&-"):
        found = shell(f'"$@" {redirect}', *words(command, host), **more)
        assert found.returncode == CANNOT_WRITE, redirect


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "<&- 2>&-"])
@pytest.mark.parametrize("command", ["--version", "ps HOST", "-1 --id 77 HOST", "--json HOST"])
def test_talk_that_cannot_be_written_changes_nothing(
    host: Host, command: str, redirect: str
) -> None:
    whole = shell('"$@"', *words(command, host))
    found = shell(f'"$@" {redirect}', *words(command, host))
    assert found.returncode == whole.returncode
    assert_same(found.stdout.decode(), whole.stdout.decode())


def test_what_prints_nothing_needs_no_stdout() -> None:
    for redirect in (">&-", ">/dev/full"):
        assert shell(f'"$@" {redirect}', "--nonsense").returncode == 2
        assert shell(f'"$@" {redirect}', "serve-tui", "--host", "192.0.2.1").returncode == 2


SMALL_DISK = """
mount -t tmpfs -o size=4k none "$1" && cd "$1" && shift && "$@" > file
code=$?; test $(stat -c %s file) -le 4096 && exit $code
"""


def test_a_disk_that_fills_up_is_told_by_the_exit_code(tmp_path: Path, host: Host) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace here")
    for command in ("--help-query-tpu", "--json HOST"):
        found = subprocess.run(
            ["unshare", "-m", "sh", "-c", SMALL_DISK, "sh", tmp_path, *TPUSMI,
             *words(command, host)],
            env=environment("/nowhere"), capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        assert found.returncode == CANNOT_WRITE
        assert found.stderr == f"tpusmi: cannot write: {FULL}\n"


# -- a reader


def small_pipe() -> tuple[int, int]:
    """One that does not block who writes, and holds a page."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # type: ignore[attr-defined]
    os.set_blocking(writer, False)
    return reader, writer


def is_full(reader: int) -> bool:
    """Whether it has no room for the rest of what is written."""
    waiting = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0]
    return bool(waiting > 2000)


@pytest.mark.parametrize("unbuffered", [None, "1"], ids=["", "unbuffered"])
@pytest.mark.parametrize("command", ["--json HOST", "--help-query-tpu"])
def test_a_full_pipe_that_does_not_block_gets_all_of_it(
    host: Host, command: str, unbuffered: str | None
) -> None:
    expected = tpusmi("/nowhere", *words(command, host)).stdout
    assert len(expected) > 4096
    reader, writer = small_pipe()
    with subprocess.Popen(
        [*TPUSMI, *words(command, host)],
        env=environment("/nowhere", PYTHONUNBUFFERED=unbuffered),
        stdout=writer,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writer)
        until(lambda: is_full(reader), LIMIT_S, "it fills up")
        with open(reader, encoding="utf-8") as file:
            found = file.read()
        assert process.wait(LIMIT_S) == 0
    assert_same(found, expected)


IMPATIENT = """
import sys
from tpusmi.cli import exits, main
exits.TAKEN_WITHIN_S = 0.3
sys.exit(main(sys.argv[1:]))
"""


def test_a_reader_that_takes_nothing_is_not_waited_for_forever(host: Host) -> None:
    reader, writer = small_pipe()
    found = subprocess.run(
        [sys.executable, "-c", IMPATIENT, "--help-query-tpu"],
        env=environment("/nowhere"), stdout=writer, stderr=subprocess.PIPE, timeout=LIMIT_S,
    )  # fmt: skip
    os.close(writer)
    os.close(reader)
    assert found.returncode == CANNOT_WRITE
    assert found.stderr == b"tpusmi: cannot write: its reader has read nothing for 0 s\n"


@pytest.mark.parametrize(
    ("command", "code"), [("--help", 0), ("--json HOST", 0), ("ps HOST", 5), ("--version", 0)]
)
def test_a_reader_that_has_left_has_read_enough(host: Host, command: str, code: int) -> None:
    found = shell('"$@" | true; exit ${PIPESTATUS[0]}', *words(command, host))
    assert (found.returncode, found.stderr) == (code, b"")
    found = shell('"$@" | head -1; exit ${PIPESTATUS[0]}', *words(command, host))
    assert (found.returncode, found.stderr) == (code, b"")
    assert found.stdout.count(b"\n") == 1


def test_an_interrupt_ends_what_waits_for_its_reader() -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # type: ignore[attr-defined]
    with subprocess.Popen(
        [*TPUSMI, "--help-query-tpu"],
        env=environment("/nowhere"),
        stdout=writer,
        stderr=subprocess.PIPE,
    ) as process:
        until(lambda: is_full(reader), LIMIT_S, "it waits")
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    os.close(writer)
    os.close(reader)


# -- other ways to start it


@pytest.mark.parametrize("module", ["tpusmi --help", "tpusmi.wire FILE", "tpusmi --version"])
def test_a_module_ends_as_the_command_does(module: str) -> None:
    name, argument = module.split()
    golden = Path(__file__).parent / "segments" / "v1.2.seg"
    argument = argument.replace("FILE", str(golden))

    def run(line: str) -> subprocess.CompletedProcess[bytes]:
        whole = ["bash", "-c", line, sys.executable, "-m", name, argument]
        return subprocess.run(whole, env=environment("/"), capture_output=True, timeout=LIMIT_S)

    whole = run('"$0" "$@"')
    assert whole.returncode == 0
    assert whole.stdout
    full = run('"$0" "$@" >/dev/full')
    assert full.returncode == CANNOT_WRITE
    assert full.stderr.endswith(f"tpusmi: cannot write: {FULL}\n".encode())
    assert b"Traceback" not in full.stderr
    assert run('"$0" "$@" >&-').returncode == CANNOT_WRITE
    left = run('"$0" "$@" | true; exit ${PIPESTATUS[0]}')
    assert (left.returncode, left.stderr) == (0, b"")


SIGNALLED = """
import os, signal, sys
from tpusmi.cli.exits import ended
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
real_write = os.write
def write(*arguments):
    written = real_write(*arguments)
    signal.raise_signal(signal.SIGTERM)
    return written
os.write = write
sys.exit(ended(lambda: print("once") or 0))
"""


def test_a_signal_that_comes_while_something_is_written_does_not_write_it_twice() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SIGNALLED],
        env=environment("/"), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert (found.returncode, found.stdout, found.stderr) == (7, "once\n", "")
