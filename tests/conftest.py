"""What tests of several folders share."""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from support import costs, leftovers, requirements
from support.goldens import IS_ACCEPTING
from support.hosts import is_marked

# A CI that runs in the background, or under nohup, ignores these, and all that it starts does too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same for files that a test makes for another user, whoever runs the tests.
os.umask(0o022)

# What a test starts runs as it does for a user, who has none of these: PYTHONUNBUFFERED alone hides
# that output is lost at the end.
for _name in [name for name in os.environ if name.startswith("PYTHON")]:
    del os.environ[_name]


# Python remembers for good that there is no such encoding when its module cannot be read: as by a
# test that acts as another user, and is the first to ask for it.
for _name in ("ascii", "latin-1", "utf-8-sig", "utf-16", "idna", "cp437"):
    codecs.lookup(_name)


# Examples have no limit of time: a machine that stands still for a moment would be a failure. They
# are the same in each run; tests/fuzz tries new ones.
hypothesis.settings.register_profile(
    "tpusmi",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tpusmi")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named after their argument: those of a gzip file differ at each start, and parallel
    workers must agree on the names of the tests.
    """
    return argname if isinstance(val, bytes) and len(val) > 16 else None


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in costs.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    if IS_ACCEPTING:
        config.option.update_snapshots = True  # pictures are accepted as goldens are


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function):
            costs.mark(item)


MOST_WORKERS = 4
"""More would only wait for each other: many tests start JAX, which takes every core there is."""


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which need not be there
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: on average a test waits for longer than it computes."""
    return min(len(os.sched_getaffinity(0)) + 2, MOST_WORKERS)


_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if not _IS_WORKER:
    os.environ[leftovers.RUN] = f"{os.getpid()}-{time.monotonic_ns()}"
    os.environ["TPUSMI_DIR"] = leftovers.segment_directory()

_BEFORE = pytest.StashKey[set[str]]()
_LEFT = pytest.StashKey[list[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_BEFORE] = leftovers.names()


@pytest.hookimpl(trylast=True)  # the workers have ended by then
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The tests leave no process and no file of tpusmi: a run that does has failed."""
    if _IS_WORKER or session.config.option.collectonly:
        return
    found = leftovers.left(session.config.stash[_BEFORE])
    session.config.stash[_LEFT] = found
    if found and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    if not _IS_WORKER:
        shutil.rmtree(os.environ["TPUSMI_DIR"], ignore_errors=True)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(_LEFT, []):
        terminalreporter.write_line(f"LEFT BEHIND: {line}", red=True)


BLOCKED = signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""As we were started."""


def _skips_without_a_program() -> Generator[None, object, object]:
    """A usual program that is not here skips the test that starts it."""
    try:
        return (yield)
    except FileNotFoundError as error:
        if error.filename in requirements.USUAL:
            pytest.skip(f"no {error.filename} here")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    return (yield from _skips_without_a_program())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    return (yield from _skips_without_a_program())


@pytest.fixture(scope="session", autouse=True)
def directories_that_others_may_enter(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Those above the tests' own: parallel workers share them, and none may close them."""
    base = tmp_path_factory.getbasetemp()
    for directory in (base, *base.parents):
        if Path(tempfile.gettempdir()) in directory.parents and os.getuid() == 0:
            directory.chmod(directory.stat().st_mode | 0o055)


@pytest.fixture(autouse=True)
def leaves_signals_alone() -> Iterator[None]:
    """What a test blocks would stay blocked for all that later ones start, and nothing end that."""
    yield
    assert signal.pthread_sigmask(signal.SIG_SETMASK, BLOCKED) == BLOCKED


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment names no proxy."""
    for name in [*os.environ]:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def only_ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process is signalled that no test has started: what is about to be is stopped, and fails
    the test, on whichever thread it was tried.
    """
    refused: list[int] = []
    real_send, real_kill = signal.pidfd_send_signal, os.kill

    def check(pid: int) -> None:
        if not is_marked(pid):
            refused.append(pid)
            raise PermissionError(f"pid {pid} is not of a test")

    def send(descriptor: int, number: int) -> None:
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            pid = int(next(x for x in file if x.startswith("Pid:")).split()[1])
        if pid > 0:  # -1 is one that has ended
            check(pid)
        real_send(descriptor, number)

    def kill(pid: int, number: int) -> None:
        check(pid)
        real_kill(pid, number)

    monkeypatch.setattr(signal, "pidfd_send_signal", send)
    monkeypatch.setattr(os, "kill", kill)
    yield
    assert refused == []
