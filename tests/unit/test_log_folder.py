"""Log folders of TensorBoard: which traces are in them, and how one is saved."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.run_as import another_user
from support.users import reachable

from tpusmi.profiler import log_folder, saved_trace
from tpusmi.profiler.log_folder import found_in, save, session_name
from tpusmi.profiler.trace_files import contents_of
from tpusmi.trace.troubles import CaptureError, Trouble

REAL = Path(__file__).parents[1] / "data/xplane/v6e-4_inference/tpu_inference.xplane.pb"
OLDER, NEWER = "2025_01_31_10_00_00", "2025_02_01_09_00_00"


def made(folder: Path, *names: str) -> list[str]:
    """Empty files of those names in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return [str(folder / name) for name in names]


def traces_in(path: str) -> list[str]:
    """Without the note."""
    return found_in(path).traces


def trouble_of(path: Path | str) -> tuple[Trouble, str]:
    with pytest.raises(CaptureError) as caught:
        traces_in(str(path))
    return caught.value.trouble, str(caught.value)


# -- finding


def test_a_session_has_a_trace_of_each_host_by_name(tmp_path: Path) -> None:
    b, a, _ = made(tmp_path, "b.xplane.pb", "a.xplane.pb", "a.trace.json.gz")
    assert traces_in(str(tmp_path)) == [a, b]


def test_the_newest_session_of_a_log_folder_is_chosen_by_its_name(tmp_path: Path) -> None:
    sessions = tmp_path / "plugins/profile"
    newer = made(sessions / NEWER, "host.xplane.pb")
    made(sessions / OLDER, "host.xplane.pb")  # copied later: its file is newer
    for path in (tmp_path, tmp_path / "plugins", sessions):
        assert traces_in(str(path)) == newer


def test_a_session_with_a_name_of_its_own_has_the_time_of_its_file(tmp_path: Path) -> None:
    sessions = tmp_path / "plugins/profile"
    made(sessions / NEWER, "host.xplane.pb")
    named = made(sessions / "before-the-fix", "host.xplane.pb")
    assert traces_in(str(tmp_path)) == named
    os.utime(named[0], (0, 0))
    assert NEWER in traces_in(str(tmp_path))[0]


def test_the_newest_session_of_several_runs_is_chosen(tmp_path: Path) -> None:
    made(tmp_path / "run1/tb/plugins/profile" / OLDER, "host.xplane.pb")
    newer = made(tmp_path / "run2/tb/plugins/profile" / NEWER, "host.xplane.pb")
    made(tmp_path / "run2/checkpoints/1000", "weights")
    assert traces_in(str(tmp_path)) == newer


def test_links_in_a_loop_end_the_walk_and_links_to_a_run_are_followed(tmp_path: Path) -> None:
    elsewhere = made(tmp_path / "disk" / NEWER, "host.xplane.pb")
    runs = tmp_path / "runs"
    made(runs / "a", "notes")
    (runs / "a" / "up").symlink_to(runs)
    (runs / "self").symlink_to("self")
    (runs / "latest").symlink_to(tmp_path / "disk")
    (found,) = traces_in(str(runs))
    assert os.path.samefile(found, elsewhere[0])


def test_a_walk_through_a_huge_folder_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, *map(str, range(50)))
    made(tmp_path / "deep" / NEWER, "host.xplane.pb")
    monkeypatch.setattr(log_folder, "ENTRIES_MOST", 40)
    trouble, sentence = trouble_of(tmp_path)
    assert trouble == Trouble.ABSENT
    assert sentence.endswith("name the folder of the session")


def test_a_walk_that_is_cut_short_looks_at_the_newest_names_first_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year in range(2000, 2050):
        made(tmp_path / f"{year}_01_01_00_00_00", "host.xplane.pb")
    monkeypatch.setattr(log_folder, "ENTRIES_MOST", 60)
    found = found_in(str(tmp_path))
    assert "2049_01_01_00_00_00" in found.traces[0]
    assert found.note.endswith("2049_01_01_00_00_00 may not be the newest.")
    notes = contents_of(str(tmp_path)).notes
    assert notes == (found.note,)
    monkeypatch.undo()
    assert found_in(str(tmp_path)).note == ""


def test_a_walk_ends_at_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / NEWER, "host.xplane.pb")
    monkeypatch.setattr(log_folder, "LOOK_MOST_S", -1.0)
    assert "name the folder of the session" in trouble_of(tmp_path)[1]


def test_paths_without_a_trace_say_why(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    made(tmp_path / "browser", "perfetto_trace.json.gz", "host.trace.json.gz")
    for path, trouble, words in [
        (empty, Trouble.ABSENT, "No trace (*.xplane.pb) in"),
        (tmp_path / "browser", Trouble.UNREADABLE, "only traces for a browser"),
    ]:
        found, sentence = trouble_of(path)
        assert (found, words in sentence) == (trouble, True), sentence


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's folders are needed")
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    code = (
        "import sys; from tpusmi.profiler.log_folder import found_in\n"
        "from tpusmi.trace.troubles import CaptureError\n"
        "for path in sys.argv[1:]:\n"
        "    try: found_in(path)\n"
        "    except CaptureError as e: print(e.trouble.name, e)\n"
    )
    command = another_user(41001, sys.executable, "-c", code, str(tmp_path))
    with reachable(tmp_path):
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    denied = f"DENIED No trace below {tmp_path}; {private} may not be read\n"
    assert run.stdout == denied, run.stderr


# -- saving


def test_a_saved_trace_is_found_again(tmp_path: Path) -> None:
    path = save(str(REAL), str(tmp_path), OLDER, "worker-0")
    assert path == str(tmp_path / "plugins/profile" / OLDER / "worker-0.xplane.pb")
    assert Path(path).read_bytes() == REAL.read_bytes()
    assert traces_in(str(tmp_path)) == [path]


def test_hosts_of_one_session_are_saved_side_by_side(tmp_path: Path) -> None:
    paths = [save(str(REAL), str(tmp_path), OLDER, host) for host in ("b", "a")]
    assert traces_in(str(tmp_path)) == sorted(paths)


def test_an_existing_trace_is_not_replaced(tmp_path: Path) -> None:
    first = Path(save(str(REAL), str(tmp_path), OLDER, "host"))
    first.write_bytes(b"kept")
    second = save(str(REAL), str(tmp_path), OLDER, "host")
    assert (first.read_bytes(), Path(second).name) == (b"kept", "host-2.xplane.pb")


def test_a_link_where_the_trace_would_go_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    session = tmp_path / "logs/plugins/profile" / OLDER
    session.mkdir(parents=True)
    (session / "host.xplane.pb").symlink_to(victim)
    assert save(str(REAL), str(tmp_path / "logs"), OLDER, "host").endswith("host-2.xplane.pb")
    assert not victim.exists()


def test_a_file_system_without_hard_links_keeps_other_files_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: str) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(saved_trace.os, "link", refuse)
    first, second = (save(str(REAL), str(tmp_path), OLDER, "host") for _ in range(2))
    assert first != second
    assert {Path(path).stat().st_size for path in (first, second)} == {REAL.stat().st_size}
    assert sorted(traces_in(str(tmp_path))) == sorted([first, second])


def test_names_from_outside_stay_in_the_folder(tmp_path: Path) -> None:
    path = save(str(REAL), str(tmp_path), "../../up", "[::1]:9012/../x\n")
    assert os.path.relpath(path, tmp_path / "plugins/profile") == (
        "_.._up/___1__9012_.._x_.xplane.pb"
    )
    assert save(str(REAL), str(tmp_path), "..", "").endswith("/unnamed/unnamed.xplane.pb")


def test_a_saved_trace_has_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = save(str(REAL), str(tmp_path), OLDER, "host")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be longer than 4096 bytes; writing more fails as on a full disk."""
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with full_disk(), pytest.raises(CaptureError, match=r"Cannot save the trace in .*: File too"):
        save(str(REAL), str(logs), OLDER, "host")
    assert not logs.exists()


def test_saving_again_and_again_leaves_room_for_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "some.xplane.pb"
    trace.write_bytes(b"x" * 100)
    disk = os.statvfs(tmp_path)
    disk = os.statvfs_result((disk[0], 1, *disk[2:4], 199, *disk[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    with pytest.raises(CaptureError, match="most of the free room") as refused:
        save(str(trace), str(tmp_path / "log"), "session", "host")
    assert refused.value.trouble is Trouble.FAILED
    assert [*tmp_path.iterdir()] == [trace]


def test_a_trace_is_not_saved_into_a_bucket(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="is not on this machine"):
        save(str(REAL), "gs://bucket/logs", OLDER, "host")
    assert not (tmp_path / "gs:").exists()


def test_xprof_lists_a_saved_session_with_its_hosts(tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    for host in ("worker-0", "worker-1"):
        save(str(REAL), str(tmp_path), OLDER, host)
    code = (
        "import sys; from xprof import server\n"
        "from xprof.profile_plugin import ProfilePlugin\n"
        "folder, context = sys.argv[1], server.TBContext\n"
        "provider = server.DataProvider(folder)\n"
        "plugin = ProfilePlugin(context(folder, provider, context.Flags(False)))\n"
        "for run in plugin.generate_runs():\n"
        "    hosts = plugin.host_impl(run, 'trace_viewer@')\n"
        "    print(run, *sorted(host['hostname'] for host in hosts))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    hosts = run.stdout.split()
    assert hosts[0] == OLDER, run.stderr
    assert {"worker-0", "worker-1"} <= set(hosts)


def test_the_name_of_a_session_is_that_of_tensorboard() -> None:
    at_s = time.mktime((2025, 1, 31, 10, 0, 0, 0, 0, -1))
    assert session_name(at_s) == OLDER
