"""What docs/where.md says about what is seen from where: each claim with real namespaces that stand
in for a container, a pod, a batch job or another login.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import run_as
from support.commands import TPUSMI, USER, environment, tpusmi
from support.namespaces import inside, shared
from support.private_dev import ON_A_MACHINE, on_a_machine
from support.run_as import another_user
from support.users import ROOT, acting_as, reachable
from support.waits import with_a_short_limit

from tpusmi.model import Host
from tpusmi.sources.segments import Segments

__all__ = ["shared"]
PAGE = (Path(__file__).resolve().parents[1] / "docs/where.md").read_text(encoding="utf-8")
OTHER_USER = USER + 1

Test = Callable[..., None]


def claims(*sentences: str) -> Callable[[Test], Test]:
    """That the page says this, and that the test shows it."""
    page = " ".join(PAGE.replace("**", "").split())

    def checked(test: Test) -> Test:
        missing = [sentence for sentence in sentences if sentence not in page]
        assert not missing, missing
        return test

    return checked


def seen(
    tmp_path: Path, *prefix: str, user: int | None = None, directory: str | None = None
) -> dict[str, Any]:
    """What `tpusmi --json` shows that user, in a namespace that the prefix makes."""
    command = [*prefix, *TPUSMI, "--json"]
    with ExitStack() as meanwhile:
        if user is not None:
            command = [*prefix, *another_user(user, *TPUSMI, "--json")]
            meanwhile.enter_context(reachable(tmp_path))
        env = environment(tmp_path, TPUSMI_DIR=directory, HOME="/")
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def job_of(found: dict[str, Any], pid: int) -> list[dict[str, Any]]:
    return [p for p in found["processes"] if p["pid"] == pid]


def says_of_wall(found: dict[str, Any], user: int | None, pid: int) -> bool:
    """Whether that user is told that the process has another /dev/shm. One such process is named in
    words, whatever other jobs are seen.
    """
    (agent,) = (s for s in found["sources"] if s["name"] == "agent")
    said = "does not share this command's /dev/shm (container or Slurm job)"
    if said not in agent["message"]:
        return False
    source = Segments(Host())
    source.read(time.monotonic())  # another user could not load what it needs
    source.close()
    with acting_as(user or 0):
        missing = Segments(Host()).read(time.monotonic()).missing
    return any(said in m.message and f"pid {pid} " in m.message for m in missing)


def marked(found: dict[str, Any], user: str) -> list[str]:
    """The states of the jobs of that user whose process is not the one that has their pid here."""
    return [p["state"] for p in found["processes"] if p["user"] == user and not p["verified"]]


def within(pid: int, *more: str) -> list[str]:
    """A command in the mounts of that process, and in what else is named, as `docker exec` runs."""
    return ["nsenter", "-t", str(pid), "-m", *more, "--"]


CONTAINER = "own('/dev/shm', '/run'); own_pids(); start()"
"""As Docker makes it: no file and no pid of its own is that of the host."""
BATCH_JOB = "own('/dev/shm'); become(int(sys.argv[1])); here(); start()"
"""As Slurm's job_container/tmpfs makes it."""
PLAIN = "become(int(sys.argv[1])); here(); start()"


@ROOT
@claims("You see every user's jobs with an agent")
@with_a_short_limit
def test_every_user_sees_the_jobs_of_all_on_one_vm(tmp_path: Path) -> None:
    with inside(PLAIN, USER) as job:
        for user in (None, USER, OTHER_USER):
            assert [p["state"] for p in job_of(seen(tmp_path, user=user), job.pid)] == ["live"]


@ROOT
@claims("`TPUSMI_SEGMENT_MODE=0600` keeps a job's segment to its user and root.")
@with_a_short_limit
def test_a_segment_can_be_kept_from_other_users(tmp_path: Path) -> None:
    with inside(PLAIN, USER, TPUSMI_SEGMENT_MODE="0600") as job:
        for user, count in ((None, 1), (USER, 1), (OTHER_USER, 0)):
            assert len(job_of(seen(tmp_path, user=user), job.pid)) == count


AS_USER = f"exec 3<&-\nexec {shlex.join([sys.executable, run_as.__file__])} {USER} "


@ROOT
@claims("without it tpusmi says how many processes it could not inspect.")
def test_what_others_hold_is_said_to_be_unknown_without_sudo(tmp_path: Path) -> None:
    another_user(USER)
    script = ON_A_MACHINE.replace('"$@"', f'{AS_USER}"$@"')
    told = on_a_machine(tmp_path, *TPUSMI, "-1", script=script)
    assert re.search(r"no holder visible \(\d+ processes of other users not inspected", told.stdout)
    assert "tpu is free" not in told.stdout.lower()


@ROOT
@pytest.mark.parametrize("hidepid", ["1", "2", "4"])
@claims("tpusmi says that it hides the processes of other users, and that others may hold the TPU.")
def test_behind_hidepid_others_may_hold_the_tpu(tmp_path: Path, hidepid: str) -> None:
    another_user(USER)
    hide = f"mount -t proc -o hidepid={hidepid} proc /proc\n{AS_USER}"
    script = ON_A_MACHINE.replace('"$@"', f'{hide}"$@"')
    said = {"1": "not inspected, try sudo"}.get(
        hidepid, "this /proc hides the processes of other users: others may hold the TPU; try sudo"
    )
    told = on_a_machine(tmp_path, *TPUSMI, "-1", script=script)
    assert said in told.stdout, told.stderr
    found = json.loads(on_a_machine(tmp_path, *TPUSMI, "--json", script=script).stdout)
    assert [n["code"] for n in found["warnings"]] == ["unseen_holders"]


@ROOT
@claims("Inside the container you see its own jobs.", "tpusmi says that others may hold the TPU.")
@with_a_short_limit
def test_inside_a_container_its_own_jobs_are_seen_and_that_others_may_be(tmp_path: Path) -> None:
    with inside(CONTAINER) as job:
        found = seen(tmp_path, *within(job.pid, "-p"))
        assert [p["state"] for p in job_of(found, 1)] == ["live"]
    alone = ("-m", "-p", "-f", "--mount-proc")
    script = ON_A_MACHINE.replace("exec 3<>/dev/vfio/0\n", "")
    told = on_a_machine(tmp_path, *TPUSMI, "-1", script=script, namespaces=alone)
    said = "outside this container, or pid namespace, cannot be seen: others may hold the TPU"
    assert told.stdout.count(said) == 1, told.stderr
    assert told.returncode == 3
    found = json.loads(
        on_a_machine(tmp_path, *TPUSMI, "--json", script=script, namespaces=alone).stdout
    )
    assert [n["code"] for n in found["warnings"]] == ["unseen_holders"]


@ROOT
@claims(
    "On the host, root sees the jobs in every container, with the pid they have on the host",
    "On the host, you see the jobs in your own containers.",
    "tpusmi says that a process has another `/dev/shm`, and what to do.",
)
@with_a_short_limit
def test_on_the_host_root_and_the_same_user_see_a_job_in_a_container(tmp_path: Path) -> None:
    code = f"own('/dev/shm', '/run'); own_pids(); become({USER}); start()"
    with inside(code) as job:
        for user in (None, USER):
            own = job_of(seen(tmp_path, user=user), job.pid)
            assert [(p["state"], p["user"]) for p in own] == [("live", str(USER))]
        other = seen(tmp_path, user=OTHER_USER)
        assert job_of(other, job.pid) == []
        assert says_of_wall(other, OTHER_USER, job.pid)


ROOTLESS = f"""
become({USER})
own_users(0)
mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777")
here()
start()
"""


@ROOT
@claims("In a rootless container, a job belongs to the user outside who started the container.")
@with_a_short_limit
def test_a_job_in_a_rootless_container_belongs_to_the_user_outside(tmp_path: Path) -> None:
    with inside(ROOTLESS) as job:
        own = job_of(seen(tmp_path), job.pid)
        assert [(p["state"], p["user"]) for p in own] == [("live", str(USER))]


@ROOT
@claims(
    "`--ipc=host` gives the container the host's `/dev/shm`.",
    "Then everyone on the host sees the job's numbers.",
)
@with_a_short_limit
def test_a_container_that_shares_dev_shm_is_seen_by_all(tmp_path: Path) -> None:
    with inside("own('/run'); own_pids(); start()") as job:
        assert [p["state"] for p in job_of(seen(tmp_path), job.pid)] == ["live"]
        assert "live" in marked(seen(tmp_path, user=OTHER_USER), "root")


IN_SHARED = (
    "own('/dev/shm', '/run'); mount('tmpfs', '/mnt', 'tmpfs'); os.mkdir('/mnt/tpusmi');"
    "mount(sys.argv[1], '/mnt/tpusmi', '', BIND); "
)


@ROOT
@claims(
    "With a shared `TPUSMI_DIR` set as above, any user on the host sees the job's numbers.",
    "Root and the job's user do not need the variable, and they see the job's pid.",
)
@with_a_short_limit
def test_a_shared_directory_shows_the_job_on_the_host(tmp_path: Path, shared: str) -> None:
    code = f"{IN_SHARED} own_pids(); start()"
    with inside(code, shared, TPUSMI_DIR="/mnt/tpusmi") as job:
        for directory in (shared, None):
            found = seen(tmp_path, directory=directory)
            assert [p["state"] for p in job_of(found, job.pid)] == ["live"], directory
        found = seen(tmp_path, user=OTHER_USER, directory=shared)
        assert marked(found, "root") == ["live"]


@ROOT
@claims(
    "From another container with the same directory you see the job's numbers too.",
    "it cannot be ended from there.",
    "Its row says in another pid namespace",
    "Without `shareProcessNamespace` it sees the numbers of the job",
)
@with_a_short_limit
def test_another_container_sees_the_numbers_and_cannot_end_the_job(
    tmp_path: Path, shared: str
) -> None:
    with inside(f"{IN_SHARED} own_pids(); start()", shared, TPUSMI_DIR="/mnt/tpusmi") as job:
        other = ("unshare", "-m", "-p", "-f", "--mount-proc")
        found = seen(tmp_path, *other, directory=shared)
        assert [(p["state"], p["verified"]) for p in found["processes"]] == [("live", False)]
        words = subprocess.run(
            [*other, *TPUSMI, "-1"], env=environment(shared), capture_output=True, text=True
        )
        assert "in another pid namespace" in words.stdout
        command = [*other, *TPUSMI, "kill", str(found["processes"][0]["pid"]), "--yes"]
        env = environment(shared)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        assert job.process.poll() is None


@ROOT
@claims(
    "With `shareProcessNamespace: true` and the shared directory the watcher sees the job as on one"
)
@with_a_short_limit
def test_in_a_pod_with_shared_pids_and_directory_the_job_is_verified(
    tmp_path: Path, shared: str
) -> None:
    with inside(f"{IN_SHARED} own_pids(); start()", shared, TPUSMI_DIR="/mnt/tpusmi") as job:
        watcher = ("nsenter", "-t", str(job.pid), "-p", "--", "unshare", "-m", "--mount-proc")
        found = seen(tmp_path, *watcher, directory=shared)
        told = [(p["pid"], p["state"], p["verified"]) for p in found["processes"]]
        assert told == [(1, "live", True)]


@ROOT
@claims(
    "Without the shared directory, but with shared process ids, root in the watcher needs "
    "`SYS_PTRACE` to look into the job's container.",
    "A pod with `hostPID: true`, root and `SYS_PTRACE` sees the jobs of all pods on its node.",
    "The other pods do not notice.",
)
@with_a_short_limit
def test_a_watcher_with_the_pids_of_the_host_sees_all_pods_if_it_may(tmp_path: Path) -> None:
    own = ("sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh")
    watcher = ("unshare", "-m", "--propagation", "private", *own)
    with inside(CONTAINER) as job:
        assert [p["state"] for p in job_of(seen(tmp_path, *watcher), job.pid)] == ["live"]
        least = ("setpriv", "--bounding-set", "-sys_ptrace,-sys_admin")
        blind = seen(tmp_path, *watcher, *least)
        assert job_of(blind, job.pid) == []
        (agent,) = (source for source in blind["sources"] if source["name"] == "agent")
        if agent["status"] == "absent":  # other jobs may run on this machine
            assert "does not share this command's /dev/shm" in agent["message"]


@ROOT
@claims("`kubectl exec` into the job's own container needs none of this")
@with_a_short_limit
def test_from_the_jobs_own_container_it_is_seen(tmp_path: Path) -> None:
    with inside(CONTAINER) as job:
        assert job_of(seen(tmp_path, *within(job.pid, "-p")), 1) != []


@ROOT
@claims(
    "In an `ssh` session on the node you see your own jobs",
    "You do not see the jobs of other users, and `tpusmi --json` says so under `sources`.",
    "An administrator sees them, with `sudo tpusmi`.",
    "runs inside the job and sees all of it.",
)
@with_a_short_limit
def test_a_batch_job_is_seen_by_its_user_by_root_and_from_inside(tmp_path: Path) -> None:
    with inside(BATCH_JOB, USER) as job:
        for user in (None, USER):
            assert [p["state"] for p in job_of(seen(tmp_path, user=user), job.pid)] == ["live"]
        other = seen(tmp_path, user=OTHER_USER)
        assert job_of(other, job.pid) == []
        assert says_of_wall(other, OTHER_USER, job.pid)
        inner = seen(tmp_path, *within(job.pid))
        assert [p["state"] for p in job_of(inner, job.pid)] == ["live"]


@ROOT
@claims("share a directory on the node's own disk")
@with_a_short_limit
def test_a_batch_job_can_share_a_directory_on_the_nodes_disk(tmp_path: Path, shared: str) -> None:
    with inside(BATCH_JOB, USER, TPUSMI_DIR=shared) as job:
        found = seen(tmp_path, user=OTHER_USER, directory=shared)
        assert [p["state"] for p in job_of(found, job.pid)] == ["live"]


@claims("`!tpusmi` shows the job of the notebook.")
@with_a_short_limit
def test_a_cell_shows_the_job_of_the_notebook(tmp_path: Path) -> None:
    with inside("here(); start()", TPUSMI_DIR=str(tmp_path)) as job:
        shown = tpusmi(tmp_path, "-1").stdout
        assert str(job.pid) in shown


@ROOT
@claims(
    "It does not read a container with a FUSE file system on `/dev/shm`, and says so.",
    "In other containers, tpusmi reads only local file systems",
)
@with_a_short_limit
def test_a_dev_shm_on_fuse_is_not_looked_into_and_that_is_said(tmp_path: Path) -> None:
    code = (
        "own_mounts(); fuse = os.open('/dev/fuse', os.O_RDWR)\n"
        "mount('x', '/dev/shm', 'fuse', 0, "
        "f'fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other'); here()"
    )
    with inside(code) as stranger:
        found = seen(tmp_path)
        assert job_of(found, stranger.pid) == []
        assert says_of_wall(found, None, stranger.pid)


@claims("sees the job as on one VM.")
def test_the_pod_on_the_page_shares_processes_and_the_directory() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    pod = yaml.safe_load(text)
    job, watcher = pod["spec"]["containers"]
    (volume,) = pod["spec"]["volumes"]
    assert pod["spec"]["shareProcessNamespace"] is True
    assert volume["emptyDir"]["medium"] == "Memory"
    for container in (job, watcher):
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/tpusmi"}]
        assert container["env"] == [{"name": "TPUSMI_DIR", "value": "/tpusmi"}]
    assert "google.com/tpu" in job["resources"]["limits"]
    assert "resources" not in watcher
