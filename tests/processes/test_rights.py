"""Whose processes one may end, by uids alone; what is refused is in the report; real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.hosts import IS_FREE, IS_ROOT, NODE, SECOND, add_chips, as_stale, holder, host, running
from support.users import NOBODY, ROOT, reachable
from support.waits import where_all_can_be_seen

import tpusmi
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Request
from tpusmi.actions.planning import me, planned
from tpusmi.collect import look
from tpusmi.model import Host

pytestmark = pytest.mark.usefixtures("only_ours")
STRANGER = 54321
"""A uid that has no login here, and no process of which the test comes."""
FORKS = """
import time
f = hold(sys.argv[1])
child = os.fork()
if child:
    os.close(f[0]); say('holds', child)
    try: os.wait()
    finally: os._exit(0)
time.sleep(60)
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Two chips, which tpusmi.free() takes for those of this machine."""
    add_chips(tmp_path, 2)
    found = host(tmp_path, NODE, SECOND, device=IS_ROOT)
    monkeypatch.setattr("tpusmi.freeing.this_host", lambda: found)
    return found


def at(machine: Host, node: str) -> Path:
    return Path(machine.path(node))


@contextmanager
def open_to_all(machine: Host) -> Iterator[None]:
    at(machine, NODE).chmod(0o666)
    with reachable(Path(machine.root)):
        yield


def freed(*pids: int, **more: object) -> Report:
    found = tpusmi.free(pids, grace_s=5.0, wait_s=5.0, **more)  # type: ignore[arg-type]
    assert isinstance(found, Report)
    return found


def is_true_in_child(check: Callable[[], bool], *uids: int) -> bool:
    """What a child finds whose parent has these uids: real, effective and saved."""
    middle = os.fork()
    if middle:
        return os.waitstatus_to_exitcode(os.waitpid(middle, 0)[1]) == 0
    code = 1
    try:
        if uids:
            os.setresuid(*uids)
        child = os.fork()
        if not child:
            try:
                if uids:
                    os.setresuid(0, 0, 0)
                code = 0 if check() else 1
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        os._exit(code)


@ROOT
def test_a_variable_gives_no_rights(machine: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's shell may have SUDO_UID from anywhere."""
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert me(machine).uids == {0}
    with open_to_all(machine), holder(at(machine, NODE), user=STRANGER) as pid:
        s = as_stale(look(machine), pid)
        for request in (Request((pid,)), Request(stale=True)):
            plan = planned(machine, s, request)
            assert plan.targets == ()
            assert plan.refused[0].why == f"belongs to user {STRANGER}: add --all-users to end it"


@ROOT
def test_the_user_before_sudo_is_whom_the_kernel_shows_above_us(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mine(*uids: int) -> Callable[[], bool]:
        return lambda: me(machine).uids == set(uids)

    shell_of_user = (STRANGER, STRANGER, 0)
    assert is_true_in_child(mine(0), *shell_of_user)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert is_true_in_child(mine(0, STRANGER), *shell_of_user)
    monkeypatch.setenv("SUDO_UID", str(STRANGER + 1))
    assert is_true_in_child(mine(0), *shell_of_user)


@ROOT
@where_all_can_be_seen
def test_free_reports_whom_it_refuses_and_does_not_call_the_chip_free(machine: Host) -> None:
    with open_to_all(machine), holder(at(machine, NODE), user=NOBODY) as pid:
        report = freed(pid)
        assert report.is_free is False
        assert [(r.pid, r.nodes) for r in report.refused] == [(pid, (NODE,))]
        assert "add --all-users" in report.refused[0].why
        assert report.still_held == {NODE: (pid,)}
        assert freed(pid, all_users=True).is_free is True


def test_who_handed_its_node_on_to_a_child_is_not_free_of_it(machine: Host) -> None:
    with running(FORKS, at(machine, NODE)) as parent:
        child = int(parent.line().split()[1])
        report = freed(parent.pid)
        assert report.is_free is False
        assert (report.still_held, report.also_held_by) == ({NODE: (child,)}, (child,))
        assert f"pid {child}, which it started, holds {NODE}" in report.refused[0].why
        os.kill(parent.pid, signal.SIGKILL)
        parent.process.wait(20)
        # By now the kernel does not tell any more that the child was its.
        assert freed(parent.pid).is_free is None


@where_all_can_be_seen
def test_what_was_not_asked_for_is_neither_free_nor_held(machine: Host) -> None:
    with holder(at(machine, NODE)) as pid:
        assert freed(2**22 + 1).is_free is None
        assert freed(chips=(1,)).is_free is IS_FREE
        report = freed(pid)
        assert (report.is_free, report.nodes) == (IS_FREE, (NODE,))


@where_all_can_be_seen
def test_of_a_stale_and_a_healthy_holder_one_is_ended_and_its_node_is_free(machine: Host) -> None:
    from tpusmi.actions.end import Order, carry_out

    with holder(at(machine, NODE)) as stale, holder(at(machine, SECOND)) as healthy:
        s = as_stale(look(machine), stale)
        plan = planned(machine, s, Request(stale=True))
        report = carry_out(machine, s.chips, plan, Order(grace_s=5.0))
        assert [r.process.pid for r in report.results] == [stale]
        assert (report.nodes, report.is_free) == ((NODE,), IS_FREE)
        os.kill(healthy, 0)


@ROOT
def test_what_another_users_simulated_host_says_ends_no_process(machine: Host) -> None:
    """Its directory may lead to any node and any bus; the processes are those of the machine."""
    simulated = machine._replace(simulated=True)
    with holder(at(machine, NODE)) as pid:
        request = Request((pid,), all_users=True)
        assert [t.process.pid for t in planned(simulated, look(simulated), request).targets]
        os.chown(machine.root, STRANGER, STRANGER)
        plan = planned(simulated, look(simulated), request)
        os.chown(machine.root, 0, 0)
    assert (plan.targets, plan.lock_files) == ((), ())
    why = "is listed by a simulated host of another user"
    assert [(r.pid, r.why) for r in plan.refused] == [(pid, why)]
