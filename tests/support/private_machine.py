"""A machine of its own for a scene: PCI bus, device nodes, network and processes are nobody else's.

`scene(tmp_path, code)` runs the code in there, with what is defined here, and returns what it
`tell`s. Inside, `worker` is a process that holds nodes and serves libtpu's metrics, and `said` is
what a command of tpusmi printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import hosts, networks
from support.commands import TPUSMI, environment

TESTS = str(Path(__file__).parents[1])
SLOW, TRIES = ("answers too slowly", "has not answered"), 3
"""What is said where a server did not answer in time: on a busy machine the command runs again."""
NAMESPACES = ("unshare", "-m", "-p", "-f", "--mount-proc", "--propagation", "private")
_BUS = 'for d in bus/pci/devices kernel/iommu_groups; do mount --bind "$1/sys/$d" "/sys/$d"; done'
_NO_SYS = 'mount --bind "$1/empty" /sys'

_MOUNT = """
set -e
mkdir -p /dev/vfio && mount -t tmpfs none /dev/vfio
for n in $2; do mknod -m 666 /dev/vfio/$n c 1 3; done
mount -t tmpfs none /dev/shm
{sys}
shift 2
exec "$@"
"""

_WORKER = f"""
sys.path[:0] = [{TESTS!r}]
import json
from support.metric_servers import MetricServer, of_numbers
answers = of_numbers(json.loads(sys.argv[3]))
MetricServer(answers).stop()  # what it imports, another user may not read
import ctypes
user = int(sys.argv[1])
if user != os.getuid(): os.setgroups([]); os.setgid(user); os.setuid(user)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as one that this user has started
files = hold(*sys.argv[4:])
if sys.argv[2] != "0":
    server = MetricServer(answers, address="127.0.0.1:" + sys.argv[2])
say("ready")
wait()
"""


@contextmanager
def worker(
    port: int,
    rows: dict[str, dict[int, float]],
    *nodes: int | str,
    user: int | None = None,
    **variables: str,
) -> Iterator[int]:
    """The pid of a process that holds those nodes and serves those rows, by metric and id. On port
    0 it serves nothing.
    """
    user = os.getuid() if user is None else user
    paths = [f"/dev/vfio/{n}" if isinstance(n, int) else n for n in nodes]
    words = (user, port, json.dumps(rows), *paths)
    with hosts.running(_WORKER, *words, env=variables) as child:
        assert child.line() == "ready"
        yield child.pid


def ran(*arguments: str, user: int = 0) -> subprocess.CompletedProcess[str]:
    """The command, run to whatever end it comes."""
    return _run(arguments, user)


def said(*arguments: str, user: int = 0, code: int = 0) -> str:
    """What the command prints for that user; `code` is how it must end."""
    found = _run(arguments, user)
    assert found.returncode == code, (found.returncode, found.stdout, found.stderr)
    return found.stdout


def _run(arguments: Sequence[str], user: int) -> subprocess.CompletedProcess[str]:
    command = [*TPUSMI, *arguments]
    if user:
        from support.run_as import another_user

        command = another_user(user, *command)
    # Jobs of other tests beside this one can be seen through their mounts, but for this directory.
    env = environment("/dev/shm", TPUSMI_DIR="/dev/shm/segments", HOME="/")
    for _ in range(TRIES):
        found = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        if not any(slow in found.stdout + found.stderr for slow in SLOW):
            break
    return found


def seen(user: int = 0) -> dict[str, Any]:
    """The object that --json prints."""
    found = json.loads(_run(["--json"], user).stdout)
    assert isinstance(found, dict)
    return found


def tell(**found: object) -> None:
    """What the scene found, for the test."""
    sys.stdout.write(json.dumps(found))


def scene(
    tmp_path: Path, code: str, chips: int = 4, nodes: Sequence[int] = range(4), bus: bool = True
) -> dict[str, Any]:
    """What the code tells, on a machine with those chips (v5e) and nodes. Without a bus its /sys
    has none at all.
    """
    if subprocess.run([*NAMESPACES, "true"], check=False).returncode:
        pytest.skip("no such namespaces here")
    tree = tmp_path / "machine"
    (tree / "empty").mkdir(parents=True)
    for part in ("bus/pci/devices", "kernel/iommu_groups"):
        (tree / "sys" / part).mkdir(parents=True)
    hosts.add_chips(tree, chips)
    mount = _BUS if bus else _NO_SYS
    whole = f"import sys; sys.path[:0] = [{TESTS!r}]\nfrom support.private_machine import *\n{code}"
    found = subprocess.run(
        networks.alone(
            *NAMESPACES,
            *("sh", "-c", _MOUNT.format(sys=mount), "sh", str(tree), " ".join(map(str, nodes))),
            *(sys.executable, "-c", whole),
        ),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert isinstance(told, dict)
    return told
