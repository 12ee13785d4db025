"""The pass over /proc: complete at first, quick again, and sound whatever goes on there."""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.hosts import BUS, NODE, SECOND, AnyMount, add_chips, chip, holder, host, running
from support.users import NOBODY, ROOT, reachable
from support.waits import until

from tpusmi.collect import look
from tpusmi.model import Chip, Host
from tpusmi.sources.holders import Holders, allowance, mount_kinds, open_files, passes, procfs, scan
from tpusmi.sources.holders.describe import Describer
from tpusmi.sources.holders.nodes import Nodes, is_named_like_a_node


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    return host(tmp_path, NODE)


def source(machine: Host, *nodes: str, detailed: bool = False) -> Holders:
    return Holders(machine, lambda: [chip(0, *(nodes or (NODE,)))], detailed)


def path(machine: Host, node: str = NODE) -> Path:
    return Path(machine.path(node))


def links_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The path of every link that is read from now on."""
    read: list[str] = []
    real = os.readlink

    def readlink(name: str, *, dir_fd: int | None = None) -> str:
        above = "" if dir_fd is None else real(f"/proc/self/fd/{dir_fd}") + "/"
        read.append(f"{above}{name}")
        return real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "readlink", readlink)
    return read


def pids(found: Holders, now_s: float) -> list[int]:
    return [p.pid for p in found.read(now_s).processes if p.holds]


def test_a_quiet_process_is_not_looked_through_again(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("f = os.open('/dev/null', 0); say('ready'); wait()") as child:
        child.line()
        found = source(machine)
        found.read(0.0)
        read = links_read(monkeypatch)
        for tick in range(1, 20):
            found.read(tick / 2)
        # But for the one turn of being judged anew, which every process has once a minute.
        assert len([p for p in read if p.endswith(f"/{child.pid}/fd/0")]) <= 1


def test_who_opens_a_node_after_it_was_judged_is_found_within_two_seconds(machine: Host) -> None:
    code = "say('ready'); sys.stdin.readline(); f = hold(sys.argv[1]); say('done'); wait()"
    with running(code, path(machine)) as child:
        child.line()
        found = source(machine)
        at_s = time.monotonic()
        for look in range(4):  # judged, and in the midst of its turns
            assert pids(found, at_s + look * found.period_s) == []
        child.go_on()
        at_s += 4 * found.period_s
        looks = [pids(found, at_s + look * found.period_s) for look in range(1, 5)]
        assert looks[-1] == [child.pid]  # two seconds later, on its own clock


def test_without_inotify_the_number_of_descriptors_tells(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes.Watch, "has_seen_open", lambda self: False)
    code = "say('ready'); sys.stdin.readline(); f = hold(sys.argv[1]); say('done'); wait()"
    with running(code, path(machine)) as child:
        child.line()
        found = source(machine)
        assert pids(found, 0.0) == pids(found, 0.5) == []
        child.go_on()
        assert [child.pid] in [pids(found, 0.5 + tick / 2) for tick in range(1, 5)]


@pytest.mark.parametrize("counts", [True, False], ids=["a kernel that counts", "an older one"])
def test_who_closes_a_node_is_no_holder_any_more(
    machine: Host, monkeypatch: pytest.MonkeyPatch, counts: bool
) -> None:
    monkeypatch.setattr(scan, "_directories_have_counts", lambda proc: counts)
    code = (
        "f = hold(sys.argv[1]); say('holds'); sys.stdin.readline(); os.close(f[0])\n"
        "say('closed'); wait()"
    )
    with running(code, path(machine)) as child:
        child.line()
        found = source(machine)
        assert pids(found, 0.0) == [child.pid]
        child.go_on()
        assert pids(found, 0.5) == []


def test_another_file_under_the_same_number_is_noticed(machine: Host) -> None:
    code = (
        "f = hold(sys.argv[1]); say('ready'); sys.stdin.readline()\n"
        "os.dup2(os.open('/dev/null', 0), f[0]); os.closerange(f[0] + 1, 99); say('done'); wait()"
    )
    with running(code, path(machine)) as child:
        child.line()
        found = source(machine)
        assert pids(found, 0.0) == [child.pid]
        child.go_on()
        assert pids(found, 0.5) == []


def test_a_node_is_known_by_itself_whatever_its_name(machine: Host, tmp_path: Path) -> None:
    other = tmp_path / "dev" / "some-tpu"
    other.hardlink_to(path(machine))
    with holder(other) as pid:
        (found,) = source(machine).read(0.0).processes
    assert (found.pid, found.holds) == (pid, (NODE,))


def test_the_node_of_a_device_beside_that_of_its_group_is_the_same_chips(tmp_path: Path) -> None:
    device = "/dev/vfio/devices/vfio7"
    machine = host(tmp_path, NODE, device)
    both = chip(0, NODE)._replace(other_nodes=((NODE, device),))
    with holder(path(machine, device)) as pid:
        (found,) = Holders(machine, lambda: [both]).read(0.0).processes
    assert (found.pid, found.holds) == (pid, (NODE,))


def test_the_other_node_of_a_function_is_found_in_sysfs_and_its_holder_by_it(
    tmp_path: Path,
) -> None:
    """A kernel with iommufd has a node for each device, beside that of its group."""
    device = "/dev/vfio/devices/vfio7"
    machine = host(tmp_path, NODE, device)
    add_chips(tmp_path, 1)
    (tmp_path / BUS / "0000:00:00.0" / "vfio-dev" / "vfio7").mkdir(parents=True)
    with holder(path(machine, device)) as pid:
        (found,) = [p for p in look(machine).processes if p.holds]
    assert (found.pid, found.holds) == (pid, (NODE,))


def test_without_a_pci_bus_the_nodes_of_devices_are_watched_too(tmp_path: Path) -> None:
    device = "/dev/vfio/devices/vfio7"
    machine = host(tmp_path, device)
    with holder(path(machine, device)) as pid:
        (found,) = Holders(machine, list).read(0.0).processes
    assert (found.pid, found.holds) == (pid, (device,))


def _opens(device: str) -> bool:
    try:
        os.close(os.open(device, os.O_RDWR))
    except OSError:
        return False
    return True


def test_two_nodes_of_one_number_are_kept_apart(tmp_path: Path) -> None:
    device = next((d for d in ("/dev/net/tun", "/dev/fuse", "/dev/vsock") if _opens(d)), None)
    if device is None or os.geteuid():
        pytest.skip("no device to make a second node of")
    machine = host(tmp_path, NODE, SECOND)
    for node in (NODE, SECOND):
        path(machine, node).unlink()
        os.mknod(path(machine, node), 0o020666, os.stat(device).st_rdev)
    with holder(path(machine, SECOND)) as pid:
        (found,) = source(machine, NODE, SECOND).read(0.0).processes
    assert (found.pid, found.holds) == (pid, (SECOND,))


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ESRCH, errno.EACCES])
def test_a_process_may_vanish_at_any_point_of_the_scan(
    machine: Host, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    with holder(path(machine)) as pid:
        needed = 0
        for steps in range(200):
            gone = _Vanishing(pid, steps, error)
            with monkeypatch.context() as patch:
                gone.install(patch)
                found = source(machine, detailed=True).read(0.0)
            assert found.status in ("ok", "denied"), found
            needed = gone.asked
            if needed <= steps:
                assert [p.pid for p in found.processes if p.holds] == [pid]
                break
        else:
            raise AssertionError("a scan asks more often than that")
        assert needed > 10


class _Vanishing:
    """Every question about a process fails after so many of them."""

    def __init__(self, pid: int, after: int, error: int) -> None:
        self._marks = (f"/proc/{pid}/", f"/proc/{pid}")
        self._after, self._error = after, error
        self.asked = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("listdir", "readlink", "stat", "open"):
            patch.setattr(os, name, self._failing(getattr(os, name)))
        patch.setattr("builtins.open", self._failing(open))

    def _failing(self, real: Callable[..., object]) -> Callable[..., object]:
        def asked(name: object, *rest: object, **more: object) -> object:
            text = os.fspath(name) if isinstance(name, str | bytes | os.PathLike) else ""
            text = os.fsdecode(text)
            if self._marks[0] in text or text.endswith(self._marks[1]):
                self.asked += 1
                if self.asked > self._after:
                    raise OSError(self._error, os.strerror(self._error), text)
            return real(name, *rest, **more)

        return asked


def test_who_only_maps_libtpu_is_loaded_and_holds_nothing(machine: Host, tmp_path: Path) -> None:
    library = tmp_path / "libtpu.so"
    library.write_bytes(b"\0" * mmap.PAGESIZE)
    code = (
        "import mmap\nf = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
        "os.unlink(sys.argv[1]); f.close(); say('ready'); wait()"
    )
    still = library.with_name("libtpu.so.1")
    still.write_bytes(library.read_bytes())
    kept = code.replace("os.unlink", "str")
    with running(code, library) as child, running(kept, still) as other:
        child.line()
        other.line()
        assert not library.exists()
        found = {p.pid: p for p in source(machine, detailed=True).read(0.0).processes}
        for pid in (child.pid, other.pid):
            assert found[pid].loaded_only
            assert found[pid].holds == ()
            assert found[pid].stale is None


def test_a_real_libtpu_in_a_real_process_is_seen(machine: Host) -> None:
    found_at = find_spec("libtpu")  # not imported: others look whether it was
    if found_at is None or found_at.origin is None:
        pytest.skip("libtpu is not installed")
    library = Path(found_at.origin).with_name("libtpu.so")
    code = "import ctypes\nlibrary = ctypes.CDLL(sys.argv[1]); say('ready'); wait()"
    with running(code, library, env={"TPU_SKIP_MDS_QUERY": "1"}) as child:
        child.line()
        found = source(machine, detailed=True)
        assert [p.pid for p in found.read(0.0).processes if p.loaded_only and p.pid == child.pid]
        # A monitor comes and goes while we look.
        child.let_go()
        assert child.pid not in [p.pid for p in found.read(0.5).processes]


def test_libtpu_that_is_loaded_later_is_seen_in_time(machine: Host, tmp_path: Path) -> None:
    library = tmp_path / "libtpu.so"
    library.write_bytes(b"\0" * mmap.PAGESIZE)
    code = (
        "import mmap\nsay('ready'); sys.stdin.readline(); f = open(sys.argv[1])\n"
        "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); say('done'); wait()"
    )
    with running(code, library) as child:
        child.line()
        found = source(machine, detailed=True)
        assert child.pid not in [p.pid for p in found.read(0.0).processes]
        child.go_on()
        rounds = 2 + 2 * len(os.listdir("/proc")) // passes.MAPS_AT_ONCE
        seen = [[p.pid for p in found.read(i / 2).processes] for i in range(1, rounds)]
        assert any(child.pid in pids for pids in seen)


def test_a_holder_in_uninterruptible_sleep_is_unkillable_after_a_while(
    machine: Host, tmp_path: Path
) -> None:
    """A parent that waits for its child to open a pipe before exec() is in state D for real."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "f = hold(sys.argv[1]); say('ready')\n"
        "os.posix_spawn('/bin/true', ['true'], {},\n"
        "    file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[2], os.O_RDONLY, 0)])"
    )
    with running(code, path(machine), pipe) as child:
        child.line()
        until(lambda: _state(child.pid) == "D")
        found = source(machine)
        (first,) = (p for p in found.read(0.0).processes if p.pid == child.pid)
        assert first.life is not None
        assert (first.life.state, first.life.signs) == ("D", ())
        (later,) = (p for p in found.read(12.0).processes if p.pid == child.pid)
        assert later.life is not None
        assert [sign.code for sign in later.life.signs] == ["unkillable"]
        opener = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_WRONLY)))
        opener.start()
        opener.join(60)


def test_a_killed_holder_of_much_memory_is_releasing_until_the_kernel_has_freed_it(
    machine: Host,
) -> None:
    code = (
        "import mmap\nmemory = mmap.mmap(-1, 1 << 30)\n"
        "for page in range(0, 1 << 30, 4096): memory[page] = 1\n"
        "f = hold(sys.argv[1]); say('ready'); wait()"
    )
    for _ in range(5):  # it takes but a tenth of a second, which we may be made to wait
        with running(code, path(machine)) as child:
            child.line()
            found = source(machine)
            assert pids(found, 0.0) == [child.pid]
            os.kill(child.pid, 9)
            codes = []
            while shown := [p for p in found.read(10.0 * (len(codes) + 1)).processes if p.holds]:
                codes += [s.code for p in shown if p.life for s in p.life.signs]
            if "releasing" in codes:
                return
    raise AssertionError("never seen while it ended")


def _state(pid: int) -> str:
    stat = procfs.read_stat(f"/proc/{pid}")
    return "" if stat is None else stat.state


def test_who_sleeps_now_and_then_is_not_unkillable(tmp_path: Path) -> None:
    """In state D at every description, as in reading from a disk, and running in between."""
    lives(tmp_path, {}, "D")
    stat = tmp_path / "proc77" / "77" / "stat"
    told = Describer(str(tmp_path / "proc77"), False)
    asleep, running_ = stat.read_text(), stat.read_text().replace(") D", ") R")
    for now_s in range(0, 30):
        stat.write_text(running_ if now_s % 2 else asleep)
        (p,) = told.processes({77: (NODE,)}, (), float(now_s))
        assert p.life is not None
        assert p.life.signs == ()


def test_a_new_launcher_means_that_the_first_one_has_ended(machine: Host, tmp_path: Path) -> None:
    """Even where nothing else tells: a worker that has made itself the leader of a session."""
    code = (
        "if os.fork(): say('ready'); sys.stdin.readline(); os._exit(0)\n"
        "os.setsid(); f = hold(sys.argv[1]); say('holds', os.getpid()); import time; time.sleep(60)"
    )
    with running(code, path(machine)) as parent:
        words = sorted([parent.line(), parent.line()])
        worker = int(words[0].split()[1])
        found = source(machine)
        (first,) = found.read(0.0).processes
        assert first.pid == worker
        assert first.life is not None
        assert first.life.signs == ()
        parent.let_go()
        (later,) = found.read(3.0).processes
        assert later.life is not None
        assert [s.code for s in later.life.signs] == ["orphaned"]
        os.kill(worker, 9)


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        ("0::/system.slice/docker-" + "ab12" * 16 + ".scope\n", "ab12" * 16),
        ("4:memory:/kubepods/burstable/pod1/" + "cd34" * 16 + "\n0::/\n", "cd34" * 16),
        ("0::/user.slice/session-1.scope\n", None),
        ("", None),
    ],
)
def test_the_container_of_a_holder_is_told(
    tmp_path: Path, cgroup: str, container: str | None
) -> None:
    (life,) = lives(tmp_path, {"cgroup": cgroup, "status": "Uid:\t0\t0\nNSpid:\t77\t5\n"})
    assert (life.container, life.inner_pid) == (container, 5)


def test_a_removed_container_is_a_sign(tmp_path: Path) -> None:
    (life,) = lives(tmp_path, {"cgroup": f"0::/docker/{'ab12' * 16} (deleted)\n"})
    assert [s.code for s in life.signs] == ["container_gone"]


@pytest.mark.parametrize(
    ("state", "flags", "pending", "sign"),
    [
        ("S", 0, 0x100, "releasing"),
        ("S", 4, 0, "releasing"),
        ("D", 0, 0x100, "unkillable"),
        ("S", 0, 0, None),
    ],
)
def test_a_process_that_ends_and_one_that_cannot_are_told_apart(
    tmp_path: Path, state: str, flags: int, pending: int, sign: str | None
) -> None:
    (life,) = lives(
        tmp_path,
        {"status": f"Uid:\t0\nShdPnd:\t{pending:016x}\n", "wchan": "vfio_unpin"},
        state,
        flags,
    )
    assert [s.code for s in life.signs] == ([sign] if sign else [])
    assert all("vfio_unpin" in s.message for s in life.signs if s.code == "unkillable")


@pytest.mark.parametrize(
    ("parent", "session", "group"),
    [
        pytest.param(55, 40, 40, id="a parent that cannot be seen: hidepid"),
        pytest.param(0, 0, 0, id="all of them outside the container"),
        pytest.param(1, 0, 0, id="a child of the container's init, its group outside"),
        pytest.param(1, 1, 1, id="a child of the container's init, in its session"),
    ],
)
def test_who_may_have_a_launcher_is_no_orphan(
    tmp_path: Path, parent: int, session: int, group: int
) -> None:
    (life,) = lives(tmp_path, {}, family=(parent, group, session))
    assert life.signs == ()


def lives(
    tmp_path: Path,
    files: dict[str, str],
    state: str = "S",
    flags: int = 0,
    family: tuple[int, int, int] = (1, 77, 77),
) -> list[Any]:
    """What is told of a holder, pid 77, whose files in /proc are these. `family` are its parent,
    group and session.
    """
    proc = tmp_path / "proc77"
    parent, group, session = family
    stat = f"{state} {parent} {group} {session} 0 -1 {flags} 0 0 0 0 5 5 0 0 20 0 2 0 1000 0"
    init = f"S 0 {min(group, 1)} {min(session, 1)} 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 1 0"
    for pid, line in ((77, stat), (1, init)):
        (proc / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "stat").write_text(f"{pid} (x) {line}")
    (proc / "uptime").write_text("100.0 50.0\n")
    for name, content in files.items():
        (proc / "77" / name).write_text(content)
    return [p.life for p in Describer(str(proc), False).processes({77: (NODE,)}, (), 0.0)]


def test_the_nodes_themselves_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the root of the host, once."""
    watched: list[str] = []
    watch = passes.Watch.__init__
    monkeypatch.setattr(
        passes.Watch, "__init__", lambda self, paths: (watched.extend(paths), watch(self, paths))[1]
    )
    machine = host(tmp_path, NODE)
    found = source(machine)
    assert pids(found, 0.0) == pids(found, 0.5) == []
    found.close()
    assert watched == [machine.path(NODE)]


def test_chips_that_come_later_are_looked_for(tmp_path: Path) -> None:
    machine = host(tmp_path, NODE, SECOND)
    chips: list[Chip] = [chip(0, NODE)]
    found = Holders(machine, lambda: chips)
    with holder(path(machine, SECOND)) as pid:
        assert pids(found, 0.0) == []
        chips.append(chip(1, SECOND))
        assert pids(found, 0.5) == [pid]
    found.close()


def test_files_on_servers_and_in_user_space_are_not_looked_at(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer would hold us for ever. Its path may well have /dev/ in it."""
    data = path(machine).parent / "data"
    data.touch()
    with holder(data) as pid, holder(path(machine)) as other:
        kinds: dict[str, str] = {str(pid): "fuse.sshfs"}
        monkeypatch.setattr(mount_kinds, "namespace", lambda p, kind: None)  # each has its own
        monkeypatch.setattr(
            mount_kinds,
            "mount_types",
            lambda p: AnyMount(kinds.get(p.rpartition("/")[2], "tmpfs")),
        )
        looked: list[str] = []
        real = open_files.node_of
        monkeypatch.setattr(open_files, "node_of", lambda p, n: (looked.append(p), real(p, n))[1])
        assert pids(source(machine), 0.0) == [other]
        assert not [link for link in looked if f"/{pid}/" in link]


@pytest.mark.parametrize("is_ours", [False, True], ids=["of a user", "among our mounts"])
def test_an_overlay_of_another_user_namespace_is_looked_at_only_if_our_mounts_show_it(
    machine: Host, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    """Any user can lay one over a file system that never answers; only root can mount one here."""
    with holder(path(machine)) as pid:
        own = {"7": "0:99"} if is_ours else {}
        monkeypatch.setattr(mount_kinds, "mount_types", lambda p: AnyMount("overlay"))
        monkeypatch.setattr(mount_kinds, "is_overlay_trusted", lambda p: f"/{pid}" not in p)
        monkeypatch.setattr(
            mount_kinds, "overlays", lambda p: own if p == "/proc/self" else AnyMount("0:99")
        )
        outcome = source(machine).read(0.0)
        held = [p.pid for p in outcome.processes if p.holds]
        assert held == ([pid] if is_ours else [])
        assert outcome.visibility.not_inspected >= (not is_ours)


CROWD = """
n = int(sys.argv[2])
nothing, node = os.open('/dev/null', 0), os.open(sys.argv[1], os.O_RDWR)
for _ in range(n): os.dup(nothing)
say('ready'); wait()
"""


@ROOT
def test_a_user_with_very_many_open_files_hides_neither_others_nor_himself(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "FREE_DESCRIPTORS", 3000)
    monkeypatch.setattr(allowance, "USER_DESCRIPTORS", 1000)
    path(machine).chmod(0o666)
    with (
        reachable(path(machine).parent),
        holder(path(machine)) as mine,
        running(CROWD, path(machine), 900, user=NOBODY) as one,
        running(CROWD, path(machine), 900, user=NOBODY) as two,
        running(CROWD, path(machine), 900, user=NOBODY) as three,
        running(CROWD, path(machine), 900, user=NOBODY) as four,
        running(CROWD, path(machine), 900, user=NOBODY) as five,
    ):
        crowd = [child for child in (one, two, three, four, five) if child.line() == "ready"]
        read = links_read(monkeypatch)
        found = source(machine).read(0.0)
        held = {p.pid for p in found.processes if p.holds}
        assert mine in held
        left_out = [child.pid for child in crowd if child.pid not in held]
        assert left_out
        assert found.visibility.not_inspected >= len(left_out)
        assert not [link for link in read if link.split("/")[-3] in map(str, left_out)]
    assert not allowance.Allowance().refuses("/proc/self", 10**9)  # ours have no limit


def test_the_file_system_of_a_descriptor_is_known() -> None:
    with open("/dev/null") as file, open(f"/proc/self/fdinfo/{file.fileno()}") as info:
        mount = next(line.split()[1] for line in info if line.startswith("mnt_id:"))
    assert procfs.mount_types("/proc/self")[mount] in ("devtmpfs", "tmpfs")
    assert "999999" not in procfs.mount_types("/proc/self")
    assert procfs.mount_types("/proc/none") == {}


def test_a_text_that_was_harmless_in_one_dev_may_be_a_node_in_another() -> None:
    assert is_named_like_a_node("/root/dev/vfio/5")
    assert is_named_like_a_node("/dev/vfio/devices/vfio3")
    assert is_named_like_a_node("/dev/accel0")
    assert not is_named_like_a_node("/dev/null")
    assert not is_named_like_a_node("/dev/shm/x")


def test_a_process_of_which_nothing_may_be_read_is_hidden_and_not_gone(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with hidepid=1: its directory is there, and every file in it is refused."""
    with holder(path(machine)) as pid:
        gone = _Vanishing(pid, 0, errno.EACCES)
        with monkeypatch.context() as patch:
            gone.install(patch)
            patch.setattr(os.path, "isdir", lambda p: True)
            found = source(machine).read(0.0)
    assert found.visibility.not_inspected >= 1
    assert "no holder visible (" in found.message


def test_a_list_of_processes_without_the_first_hides_others(tmp_path: Path) -> None:
    """As with hidepid=2."""
    (tmp_path / "proc" / "77").mkdir(parents=True)
    looked = scan.Scan(str(tmp_path / "proc"), Nodes({}, {}, ()), ())
    looked.look(0.0)
    assert looked.result().hides_others
