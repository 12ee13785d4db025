"""What libtpu prints, command lines, and /proc."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from fuzz.target import Target, target
from tpusmi.model import Host
from tpusmi.sources.holders import procfs
from tpusmi.sources.host_facts import host_facts
from tpusmi.sources.libtpu.formats import parse
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.text import clean, command_line, without_secrets


@target
def strings(directory: Path) -> Iterator[Target]:
    """What libtpu's SDK prints, and words of a command line."""
    inputs = [
        b"12.5%\n33550229504\n0\n",
        b"tensorcore_0: 10\n8-tensorcore: 3\nsparsecore_1: 2\n",
        b"tensorcore_0, 1, 2, 3, 4, 5\n8MB+-grpc, 1.5, 2, 3, 4, 5\n",
        b"tray1.chip3.ici0.int: 0\nchip1: 10\n1-5: 3\n0-0\n",
        b"python\ntrain.py\n--hf-token\nx\n--api_key=y\nhttps://a:b@c/\neyJabcdefgh.x.y\n",
    ]

    def run(data: bytes) -> None:
        words = data.decode("utf-8", "replace").split("\n")
        for name in NAMES:
            found = parse(name, words, 1.0)
            json.dumps([found.readings, found.latencies, found.links], allow_nan=False)
        assert clean(command_line(words)) == command_line(words)
        without_secrets(words)

    words = [
        b'"',
        b"'",
        b"\\",
        b"=",
        b"token",
        b"://",
        b"hf_",
        b"eyJ",
        b"-",
        b": ",
        b", ",
        b"9" * 40,
    ]
    yield Target(run, inputs, words)


@target
def proc_texts(directory: Path) -> Iterator[Target]:
    """The files of a process and of the machine: all are one."""
    process = directory / "proc" / "7"
    (process / "fd").mkdir(parents=True)
    names = ("stat", "status", "environ", "cmdline", "comm", "mountinfo", "wchan", "cgroup", "maps")
    machine = ("loadavg", "meminfo", "uptime", "sys/kernel/osrelease", "sys/kernel/random/boot_id")
    (directory / "proc/sys/kernel/random").mkdir(parents=True)
    (directory / "sys/devices/system/cpu").mkdir(parents=True)
    files = [process / name for name in names] + [directory / "proc" / name for name in machine]
    files.append(directory / "sys/devices/system/cpu/online")
    files[0].touch()
    for path in files[1:]:
        path.hardlink_to(files[0])
    own = [Path("/proc/self") / name for name in names] + [Path("/proc") / name for name in machine]
    inputs = [path.read_bytes()[:8192] for path in own]
    there = Host(root=str(directory))

    def run(data: bytes) -> None:
        files[0].write_bytes(data)
        at = str(process)
        for look in (procfs.read_stat, procfs.read_status, procfs.environment, procfs.command):
            look(at)
        command_line(procfs.arguments(at))
        procfs.uptime_s(str(directory / "proc"))
        procfs.mount_types(at)
        procfs.where_it_sleeps(at)
        json.dumps(host_facts(there)._asdict(), allow_nan=False)

    words = [b"\0", b" - ", b")", b"Uid:\t", b"TPU_WORKER_ID=", b"-1", b"9" * 50, b"\n", b" kB"]
    yield Target(run, inputs, words)
