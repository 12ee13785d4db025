"""What the kernel tells of the machine: here, on a simulated host, and where it tells nothing."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tpusmi.model import Host
from tpusmi.simulate import host_files
from tpusmi.simulate.accelerator import parse
from tpusmi.simulate.description import OWN_PROC
from tpusmi.sources.host_facts import host_facts
from tpusmi.sources.sysfs import read_chips

MEMINFO = """\
MemTotal:       385000000 kB
MemFree:        100000000 kB
MemAvailable:   300000000 kB
HugePages_Total:       0
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine that tells everything."""
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-111,120\n")
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.8.0-1015-gcp\n")
    (tmp_path / "proc/loadavg").write_text("12.50 10.25 3.00 4/2100 99999\n")
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    (tmp_path / "proc/uptime").write_text("350735.47 234388.90\n")
    return tmp_path


def test_this_machine_is_as_others_say_it_is() -> None:
    found = host_facts(Host())
    assert found.memory_total_bytes == psutil.virtual_memory().total
    assert found.kernel == os.uname().release
    assert found.load_averages is not None
    assert found.load_averages[2] == pytest.approx(os.getloadavg()[2], abs=0.5)
    assert found.cpus in (None, psutil.cpu_count())
    assert found.uptime_s is not None
    assert 0 < (found.memory_available_bytes or 0) <= found.memory_total_bytes


def test_every_fact_comes_from_under_the_hosts_root(root: Path) -> None:
    found = host_facts(Host(root=str(root)))
    assert found.load_averages == (12.5, 10.25, 3.0)
    assert found.cpus == 113
    assert found.memory_total_bytes == 385_000_000 * 1024
    assert found.memory_available_bytes == 300_000_000 * 1024
    assert (found.uptime_s, found.kernel) == (350735.47, "6.8.0-1015-gcp")


FILES = ("proc/loadavg", "proc/meminfo", "proc/uptime", "proc/sys/kernel/osrelease")
CPUS = "sys/devices/system/cpu/online"


@pytest.mark.parametrize("text", ["", "\n", "garbage", "-1 -2 -3", "nan inf 1e400", "1-\n", "5-0"])
def test_what_makes_no_sense_is_unknown(root: Path, text: str) -> None:
    for name in (*FILES[:3], CPUS):
        (root / name).write_text(text)
    found = host_facts(Host(root=str(root)))
    assert (found.load_averages, found.cpus, found.uptime_s) == (None, None, None)
    assert (found.memory_total_bytes, found.memory_available_bytes) == (None, None)


def test_what_is_not_there_or_no_file_is_unknown_and_blocks_nobody(root: Path) -> None:
    for name in FILES[1:]:
        (root / name).unlink()
    os.mkfifo(root / "proc/uptime")
    (root / "proc/meminfo").mkdir()
    found = host_facts(Host(root=str(root)))
    assert (found.memory_total_bytes, found.uptime_s, found.kernel) == (None, None, None)
    assert found.load_averages is not None


def test_a_release_with_control_characters_is_made_safe(root: Path) -> None:
    (root / FILES[3]).write_bytes(b"6.8\x1b[31m\xff\n")
    assert host_facts(Host(root=str(root))).kernel == "6.8 [31m\ufffd"


def test_a_simulated_host_has_a_machine_of_its_own(tmp_path: Path) -> None:
    machine = parse("v5e-8")
    host_files.build(str(tmp_path), machine, ())
    host_files.build_machine(str(tmp_path), machine)
    host = Host(root=str(tmp_path), own_proc=OWN_PROC)
    before = host_facts(host)
    host_files.update_machine(str(tmp_path), 100.0)
    found = host_facts(host)
    assert (found.cpus, found.memory_total_bytes) == (224, 384 * 10**9 * 1024 // 1000)
    assert (found.uptime_s or 0) - (before.uptime_s or 0) == 100.0
    assert found.load_averages != before.load_averages
    assert found.kernel == host_files.KERNEL
    assert found.boot_id == host_facts(Host()).boot_id  # its processes are real ones


@pytest.mark.parametrize(
    ("name", "driver", "version"), [("v5e-8", "vfio-pci", None), ("v4-8", "google-tpu", "1.1")]
)
def test_the_driver_of_a_chip_is_told_with_its_version_if_it_has_one(
    tmp_path: Path, name: str, driver: str, version: str | None
) -> None:
    host_files.build(str(tmp_path), parse(name), ())
    for chip in read_chips(Host(root=str(tmp_path))).chips:
        assert (chip.driver, chip.driver_version, chip.notes) == (driver, version, ())
