"""Whose metrics port it is: the process's that has the socket, not the one's that names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import hosts, networks
from support.free_ports import free_port
from support.hosts import seen
from support.users import ROOT, reachable

from tpusmi.model import Host, Process, ProcessKey, Snapshot
from tpusmi.sources.libtpu import ports
from tpusmi.sources.libtpu.ports import SocketOwners
from tpusmi.sources.sockets import Listener, listeners

pytestmark = ROOT

SERVES, NAMES, STRANGER = 2001, 2002, 2003
TESTS = str(Path(__file__).parent.parent)
USED = "hbm_used_bytes"

SERVING = f"""
sys.path[:0] = [{TESTS!r}]
from support.metric_servers import MetricServer, of_devices
answers = of_devices(range(2))
MetricServer(answers).stop()  # what it imports, the other user may not read
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
files = hold(*sys.argv[3:])
server = MetricServer(answers, address="127.0.0.1:" + sys.argv[2])
say("serves")
wait()
"""


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    """Four chips with nodes that all may open, and one port that is asked."""
    return hosts.open_machine(tmp_path, 4)._replace(metrics_ports=(free_port(),), sdk_command=())


@contextmanager
def serving(machine: Host, user: int, *chips: int) -> Iterator[int]:
    """A process of that user that serves metrics of two devices and holds those chips."""
    paths = [machine.path(f"/dev/vfio/{n}") for n in chips]
    port = machine.metrics_ports[0]
    with reachable(Path(machine.root)), hosts.running(SERVING, user, port, *paths) as child:
        assert child.line() == "serves"
        yield child.pid


NAMING = """
import ctypes
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as one that was started by that user: he may look into it
files = hold(*sys.argv[2:])
say("holds")
wait()
"""


@contextmanager
def naming(machine: Host, *chips: int, user: int = NAMES) -> Iterator[int]:
    """A process of that user that holds those chips and names the port in its environment."""
    paths = [machine.path(f"/dev/vfio/{n}") for n in chips]
    variable = {"TPU_RUNTIME_METRICS_PORTS": str(machine.metrics_ports[0])}
    running = hosts.running(NAMING, user, *paths, env=variable)
    with reachable(Path(machine.root)), running as child:
        assert child.line() == "holds"
        yield child.pid


def used(s: Snapshot) -> list[float | None]:
    return [s.value(USED, d.key) for d in s.devices]


def notes(s: Snapshot) -> str:
    return " ".join(note for o in s.sources for note in o.notes)


def told(s: Snapshot) -> list[dict[str, Any]]:
    found = s.to_dict()["servers"]
    assert isinstance(found, list)
    return found


def test_a_port_that_two_holders_name_is_of_the_one_that_listens(machine: Host) -> None:
    with serving(machine, SERVES, 0, 1) as owner, naming(machine, 2, 3) as namer:
        s = seen(machine)
    assert [v is not None for v in used(s)] == [True, True, False, False]
    assert [d.owners[0].pid for d in s.devices] == [owner, owner, namer, namer]
    (server,) = told(s)
    assert (server["pid"], server["user"], server["holds_tpu"]) == (owner, str(SERVES), True)
    port = machine.metrics_ports[0]
    why = f"another process, of user {SERVES}, listens on its port {port}"
    assert f"pid {namer} serves no metrics: {why}" in notes(s)


VIEWER = """
import json, os, sys
from tpusmi.collect import open_collector
from tpusmi.model import Host
def look():
    host = Host(root=sys.argv[1], segment_dir=sys.argv[1] + "/none", sdk_command=(),
        metrics_ports=(int(sys.argv[2]),))
    collector = open_collector(host)
    try: return collector.read_once(10.0)
    finally: collector.stop()
look()  # what it imports, the other user may not read
os.setgroups([]); os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[3]))
print(json.dumps(look().to_dict()))
"""


def seen_by(machine: Host, user: int) -> dict[str, Any]:
    """The JSON that another user gets."""
    arguments = [machine.root, str(machine.metrics_ports[0]), str(user)]
    with reachable(Path(machine.root)):
        said = subprocess.run(
            [sys.executable, "-c", VIEWER, *arguments], capture_output=True, text=True, timeout=60
        )
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert isinstance(found, dict)
    return found


def test_a_user_who_cannot_see_the_listener_does_not_get_its_numbers_on_his_chips(
    machine: Host,
) -> None:
    with serving(machine, SERVES, 0, 1), naming(machine, 2, 3) as namer:
        s = seen_by(machine, NAMES)
    mine = [d for d in s["devices"] if d["pid"] == namer]
    assert [d["node"] for d in mine] == ["/dev/vfio/2", "/dev/vfio/3"]
    assert [d[USED] for d in s["devices"] if d["chip"] is not None] == [None] * 4
    (server,) = s["servers"]
    assert (server["pid"], server["user"], server["holds_tpu"]) == (None, str(SERVES), None)


def test_the_port_of_a_stranger_is_named_and_not_believed(machine: Host) -> None:
    port = machine.metrics_ports[0]
    with serving(machine, STRANGER) as stranger, naming(machine, 0, 1) as namer:
        s = seen(machine)
    assert used(s) == [None] * 4
    whose = f"pid {stranger} of user {STRANGER}"
    assert f"port {port} belongs to {whose}, which holds no TPU" in notes(s)
    assert f"pid {namer} serves no metrics: {whose} listens on its port {port}" in notes(s)
    (server,) = told(s)
    assert (server["pid"], server["user"], server["holds_tpu"]) == (stranger, str(STRANGER), False)
    assert server["device_ids"] == []
    assert [n.code for n in s.warnings if n.pid == namer] == ["no_metrics"]


def test_on_a_machine_whose_chips_are_free_a_strangers_numbers_are_left_out(machine: Host) -> None:
    with serving(machine, STRANGER) as stranger:
        s = seen(machine)
    assert used(s) == [None] * 4
    assert f"belongs to pid {stranger} of user {STRANGER}" in notes(s)
    assert [server["holds_tpu"] for server in told(s)] == [False]
    assert s.latencies == ()


def test_where_no_tpu_can_be_seen_a_server_is_shown_as_what_it_is(tmp_path: Path) -> None:
    host = hosts.host(tmp_path)._replace(metrics_ports=(free_port(),), sdk_command=())
    with serving(host, STRANGER):
        s = seen(host)
    assert len(s.devices) == 2
    assert [n.code for n in s.warnings] == ["no_chips"]


def test_where_the_kernel_does_not_tell_the_variable_does(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.sources.libtpu.listeners", lambda: None)
    with serving(machine, STRANGER), naming(machine, 0, 1) as namer:
        s = seen(machine)
    assert [v is not None for v in used(s)] == [True, True, False, False]
    assert [server["pid"] for server in told(s)] == [namer]


def test_a_holder_that_cannot_be_looked_into_is_believed_of_its_own_users_socket(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = machine.metrics_ports[0]
    monkeypatch.setattr(ports, "visible_sockets", lambda fds: None)
    with serving(machine, NAMES), naming(machine, 0, 1) as namer:
        assert whose(machine, port) == namer
    with serving(machine, STRANGER), naming(machine, 0, 1):
        assert whose(machine, port) is None


def whose(machine: Host, port: int) -> int | None:
    """To which holder the port is put down."""
    holders = [p for p in seen(machine).processes if p.holds]
    unseen = type("Nothing", (), {"pid": lambda s, found: None, "keep": lambda s, every: None})()
    found = ports.find(machine, holders, listeners(), unseen)
    (place,) = [p for p in found.usable if p.port == port]
    return None if place.process is None else place.process.pid


LOOK = """
import json, os, sys, time
from tpusmi.model import Host
from tpusmi.sources.libtpu import Libtpu
def look():
    found = Libtpu(Host(), lambda: ()).read(time.monotonic()).servers
    return [(s.address, s.ids, s.uid, s.process) for s in found]
"""
USUAL = f"""
{LOOK}
import subprocess
sys.path[:0] = [{TESTS!r}]
from contextlib import ExitStack
from support.metric_servers import server_process, saying_port
with ExitStack() as stack:
    for n in (0, 1, 3):
        stack.enter_context(server_process(f"127.0.0.1:{{8431 + n}}", str(4 * n)))
    asked = [look()]
    os.setegid(65534); os.seteuid(65534)
    asked.append(look())
    os.seteuid(0); os.setegid(0)
    alone = ["unshare", "-p", "-f", "--mount-proc", sys.executable, "-c"]
    inside = [*alone, {LOOK!r} + "print(json.dumps(look()))"]
    asked.append(json.loads(subprocess.check_output(inside)))
print(json.dumps(asked))
"""


def test_who_cannot_see_the_holders_asks_the_usual_ports_that_listen() -> None:
    """Another user, and root in a container that shares the network of its host."""
    said = subprocess.run(
        networks.alone(sys.executable, "-c", USUAL), capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 0, said.stderr
    root, *others = json.loads(said.stdout)
    assert [address for address, *_ in root] == ["localhost:8431"]
    expected = [
        [f"localhost:{port}", [4 * n + i for i in range(4)], 0, None]
        for n, port in ((0, 8431), (1, 8432), (3, 8434))
    ]
    assert others == [expected, expected]


def test_an_environment_that_was_read_and_is_empty_is_not_unknown(machine: Host) -> None:
    code = "os.execve(sys.executable, ['x', '-c', sys.argv[1]], {})"
    inner = "import os, sys; os.open(sys.argv[1], 2); os.write(1, b'holds\\n'); sys.stdin.read()"
    node = machine.path("/dev/vfio/0")
    with hosts.running(code, inner.replace("sys.argv[1]", repr(node))) as child:
        assert child.line() == "holds"
        s = seen(machine)
        os.kill(child.pid, 9)
    unset = "TPU_RUNTIME_METRICS_PORTS is not set"
    assert f"pid {child.pid} serves no metrics: {unset}" in notes(s)


def test_devices_whose_ids_are_the_same_are_told_apart_by_their_index(machine: Host) -> None:
    code = SERVING.replace("range(2)", "range(1)").replace("sys.argv[2]", '"0"')
    with ExitStack() as stack:
        for n in range(4):
            node = machine.path(f"/dev/vfio/{n}")
            child = stack.enter_context(hosts.running(code, 0, 0, node))
            assert child.line() == "serves"
        s = seen(machine)
    assert [d.id for d in s.devices] == [0] * 4
    assert [d.name for d in s.devices] == [f"tpu:{n}" for n in range(4)]
    assert None not in used(s)


def holder(pid: int, uid: int, named: range) -> Process:
    """A holder that nobody may look into, which names those ports."""
    variable = {"TPU_RUNTIME_METRICS_PORTS": ",".join(map(str, named))}
    key = ProcessKey(10**8 + pid, 1)
    known = ("live", None, None, None, {})
    return Process(key, None, "", *known, holds=("/dev/vfio/0",), environment=variable, uid=uid)


def test_a_user_with_very_many_ports_is_asked_at_some_and_hides_no_other_users(
    tmp_path: Path,
) -> None:
    many = range(20_000, 20_000 + 20 * ports.NAMED_MOST)
    theirs = [
        holder(n, STRANGER, many[n * ports.NAMED_MOST : (n + 1) * ports.NAMED_MOST])
        for n in range(20)
    ]
    other, own = holder(30, NAMES, range(9000, 9002)), holder(31, os.geteuid(), range(9100, 9116))
    listening = {
        **{port: Listener(port, STRANGER) for port in many},
        **{port: Listener(port, NAMES) for port in range(9000, 9002)},
        **{port: Listener(port, os.geteuid()) for port in range(9100, 9116)},
    }
    host = hosts.host(tmp_path)
    found = ports.find(host, [*theirs, other, own], listening, SocketOwners("/proc"))
    asked = Counter(place.uid for place in found.usable)
    assert asked == {STRANGER: ports.OF_USER_MOST, NAMES: 2, os.geteuid(): 16}
    assert found.unasked == {p.key for p in theirs[1:]}


def test_ports_of_very_many_users_have_a_bound_and_who_is_not_asked_is_a_missing_witness(
    tmp_path: Path,
) -> None:
    holders = [holder(n, 3000 + n, range(9000 + 8 * n, 9008 + 8 * n)) for n in range(20)]
    listening = {9000 + n: Listener(n + 1, 3000 + n // 8) for n in range(160)}
    host = hosts.host(tmp_path)
    found = ports.find(host, holders, listening, SocketOwners("/proc"))
    assert len(found.usable) == ports.OF_OTHERS_MOST
    assert found.unasked == {p.key for p in holders[ports.OF_OTHERS_MOST // 8 :]}


def test_the_verdict_on_a_holder_whose_port_is_not_asked_is_unknown(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "OF_USER_MOST", 0)
    with serving(machine, SERVES, 0) as owner:
        s = seen(machine)
    assert [m.process and m.process.pid for m in s.missing] == [owner]
    assert f"pid {owner} cannot be asked for its metrics: holders have too many ports" in notes(s)


def test_owners_of_very_many_ports_are_looked_for_in_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dear(fds: str) -> set[int]:
        until_s = time.thread_time() + 0.02
        while time.thread_time() < until_s:
            pass
        return set()

    monkeypatch.setattr("tpusmi.sources.libtpu.ports.visible_sockets", dear)
    strangers = SocketOwners("/proc")
    started_s = time.thread_time()
    found = {strangers.pid(Listener(10**9 + n, os.geteuid())) for n in range(100)}
    assert found == {None}
    assert time.thread_time() - started_s < 1.0
