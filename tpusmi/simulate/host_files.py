"""The files of a simulated host: PCI bus, IOMMU groups, device nodes, libtpu's lock file, and the
load, memory and uptime of its machine.
"""

from __future__ import annotations

import fcntl
import math
import os
import stat
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from tpusmi.chips import GOOGLE_PCI_VENDOR, VFIO
from tpusmi.simulate.accelerator import SliceHost
from tpusmi.simulate.description import OWN_PROC

DEVICES = "sys/devices/pci0000:00"
NETWORK_CARD = "0000:00:03.0"
"""A gVNIC: Google's too, so that not every device of the vendor is a TPU; it has group 0."""
FIRST_SLOT, SLOTS = 4, 28
NODE_MODE = 0o666
NULL = os.makedev(1, 3)
"""What the device nodes really are: /dev/null, which is harmless to open."""


class Function(NamedTuple):
    """One PCI function of a chip."""

    chip: int
    address: str
    number: int
    """Number of its node: the IOMMU group, or the N of /dev/accelN."""
    node: str


def functions(machine: SliceHost) -> list[Function]:
    """Every PCI function of the host's chips, in PCI order."""
    per_chip = machine.generation.pci_functions
    first = 1 if machine.generation.node == VFIO else 0
    every_function = []
    for number in range(machine.chips * per_chip):
        chip, function = divmod(number, per_chip)
        bus, slot = divmod(chip, SLOTS)
        address = f"0000:{bus:02x}:{slot + FIRST_SLOT:02x}.{function}"
        node = machine.generation.node.format(number + first)
        every_function.append(Function(chip, address, number + first, node))
    return every_function


def build(root: str, machine: SliceHost, faults: Container[str]) -> dict[int, list[str]]:
    """Write the tree; returns the device nodes of each chip that has some."""
    for directory in ("sys/bus/pci/devices", DEVICES, "dev", "tmp", "segments"):
        os.makedirs(f"{root}/{directory}")
    os.symlink("/proc", f"{root}/proc")
    is_vfio = machine.generation.node == VFIO
    if is_vfio:
        os.makedirs(f"{root}/sys/kernel/iommu_groups")
        os.makedirs(f"{root}/dev/vfio")
        _node(f"{root}/dev/vfio/vfio")
    else:
        os.makedirs(f"{root}/sys/class/accel")
    _function(root, NETWORK_CARD, _pci_files(0x0042, 0x0058, "0x020000"))
    if is_vfio:
        _join_group(root, NETWORK_CARD, 0)
    nodes: dict[int, list[str]] = {}
    for function in functions(machine):
        last = function.chip == machine.chips - 1
        half = last and "half-removed" in faults
        files = _tpu_files(machine, function.chip * 2 >= machine.chips)
        _function(root, function.address, {"vendor": files["vendor"], **({} if half else files)})
        if is_vfio:
            _join_group(root, function.address, function.number, removed=half)
        elif not half:
            _accel_class(root, function)
        if not (half or (last and "no-node" in faults)):
            _node(root + function.node)
            nodes.setdefault(function.chip, []).append(function.node)
    return nodes


def _function(root: str, address: str, files: Mapping[str, str]) -> None:
    directory = f"{root}/{DEVICES}/{address}"
    os.makedirs(directory)
    for name, content in files.items():
        _write(f"{directory}/{name}", f"{content}\n")
    os.symlink(f"../../../devices/pci0000:00/{address}", f"{root}/sys/bus/pci/devices/{address}")


def _pci_files(device: int, subsystem: int, kind: str, socket: int = 0) -> dict[str, str]:
    return {
        "vendor": f"0x{GOOGLE_PCI_VENDOR:04x}",
        "device": f"0x{device:04x}",
        "subsystem_vendor": f"0x{GOOGLE_PCI_VENDOR:04x}",
        "subsystem_device": f"0x{subsystem:04x}",
        "class": kind,
        "numa_node": str(socket),
    }


def _tpu_files(machine: SliceHost, on_second_socket: bool) -> dict[str, str]:
    generation = machine.generation
    device = generation.pci_device_id
    sockets = min(2, len(generation.host_shapes))
    socket = int(on_second_socket and sockets > 1)
    cpus = _cpus(machine) // sockets
    near = {"local_cpulist": f"{socket * cpus}-{(socket + 1) * cpus - 1}"}
    speed, width = "16.0 GT/s PCIe", "16"
    links = {"current_link_speed": speed, "current_link_width": width}
    links |= {"max_link_speed": speed, "max_link_width": width}
    own = _pci_files(device, generation.pci_subsystem_id or device, "0xff0000", socket)
    return own | near | links


def _join_group(root: str, address: str, group: int, removed: bool = False) -> None:
    """The function's link to its IOMMU group, and the group's to it; a removed one's dangles."""
    directory = f"{root}/{DEVICES}/{address}"
    groups = f"{root}/sys/kernel/iommu_groups/{group}/devices"
    if not removed:
        os.makedirs(groups)
        os.symlink(f"../../../../devices/pci0000:00/{address}", f"{groups}/{address}")
    os.symlink(f"../../../kernel/iommu_groups/{group}", f"{directory}/iommu_group")
    if group and not removed:
        _driver(root, directory, VFIO_DRIVER)


def _accel_class(root: str, function: Function) -> None:
    """What makes /sys/class/accel/accelN/device lead to the PCI function."""
    name = f"accel{function.number}"
    directory = f"{root}/{DEVICES}/{function.address}"
    os.makedirs(f"{directory}/accel/{name}")
    os.symlink(f"../../../{function.address}", f"{directory}/accel/{name}/device")
    os.symlink(
        f"../../devices/pci0000:00/{function.address}/accel/{name}",
        f"{root}/sys/class/accel/{name}",
    )
    _driver(root, directory, ACCEL_DRIVER)


VFIO_DRIVER, ACCEL_DRIVER = "vfio-pci", "google-tpu"
DRIVER_VERSIONS = {ACCEL_DRIVER: "1.1"}
"""Made up, as is the name. The kernel's own vfio-pci has none."""


def driver_of(machine: SliceHost) -> str:
    """The kernel driver of the chips of that machine."""
    return VFIO_DRIVER if machine.generation.node == VFIO else ACCEL_DRIVER


def _driver(root: str, directory: str, name: str) -> None:
    os.makedirs(f"{root}/sys/bus/pci/drivers/{name}", exist_ok=True)
    os.symlink(f"../../../bus/pci/drivers/{name}", f"{directory}/driver")
    version = DRIVER_VERSIONS.get(name)
    module = f"{root}/sys/module/{name.replace('-', '_')}"
    if not os.path.isdir(module):
        os.makedirs(module)
        os.symlink(
            f"../../../../module/{name.replace('-', '_')}",
            f"{root}/sys/bus/pci/drivers/{name}/module",
        )
        if version is not None:
            _write(f"{module}/version", f"{version}\n")


def _node(path: str) -> None:
    """A character device where we may make and open one, else a plain file in its place."""
    try:
        os.mknod(path, NODE_MODE | stat.S_IFCHR, NULL)
        os.close(os.open(path, os.O_RDWR))  # not on a file system mounted nodev
    except OSError:
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "x", encoding="ascii"):
            pass
    os.chmod(path, NODE_MODE)


LOCKFILE = "/tmp/libtpu_lockfile"


def open_nodes(root: str, nodes: Iterable[str]) -> list[int]:
    """Descriptors of those nodes of the host."""
    return [os.open(root + node, os.O_RDWR) for node in nodes]


def open_lockfile(root: str) -> int:
    """A descriptor of libtpu's lock file, made as libtpu makes it."""
    return os.open(root + LOCKFILE, os.O_CREAT | os.O_RDWR, 0o644)


def lock(descriptor: int) -> None:
    """Take the lock for this process, as long as it lives; a program it becomes keeps it."""
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


KERNEL = "6.8.0-1027-gcp"
CPUS, CPUS_OTHERS = {"v5e": 28, "v5p": 52, "v6e": 45, "7x": 56}, 24
"""For each chip, as in Google's pages; for other generations a likely number."""
GIGABYTES, GIGABYTES_OTHERS = {"v5e": 48, "v5p": 112, "v6e": 180, "7x": 240}, 96
BOOTED_BEFORE_S = 3 * 86400.0 + 4 * 3600.0
"""Uptime of the machine when the job started."""
EACH_CPU_LOAD = 0.11
USED, WAVE_S = 0.17, 90.0


def _cpus(machine: SliceHost) -> int:
    """How many processors the machine has."""
    return CPUS.get(machine.generation.name, CPUS_OTHERS) * machine.chips


def build_machine(root: str, machine: SliceHost) -> None:
    """Write the files of the virtual machine around the chips: its processors, memory, load and
    uptime. They cannot be in the host's /proc, which leads to the real one for its processes.
    """
    name, chips = machine.generation.name, machine.chips
    os.makedirs(f"{root}{OWN_PROC}/sys/kernel")
    os.makedirs(f"{root}/sys/devices/system/cpu")
    _write(f"{root}/sys/devices/system/cpu/online", f"0-{_cpus(machine) - 1}\n")
    _write(f"{root}{OWN_PROC}/sys/kernel/osrelease", f"{KERNEL}\n")
    kilobytes = GIGABYTES.get(name, GIGABYTES_OTHERS) * chips * 10**6
    _write(f"{root}{OWN_PROC}/meminfo", _meminfo(kilobytes, 0.0))
    update_machine(root, 0.0)


def update_machine(root: str, job_time_s: float) -> None:
    """Write the load, memory and uptime of the machine at that time of the job."""
    with open(f"{root}/sys/devices/system/cpu/online", encoding="ascii") as file:
        cpus = int(file.read().rpartition("-")[2]) + 1
    with open(f"{root}{OWN_PROC}/meminfo", encoding="ascii") as file:
        kilobytes = int(file.readline().split()[1])
    wave = math.sin(job_time_s / WAVE_S)
    loads = [cpus * EACH_CPU_LOAD * (1 + part * wave) for part in (0.3, 0.1, 0.03)]
    words = " ".join(f"{load:.2f}" for load in loads)
    _write(f"{root}{OWN_PROC}/loadavg", f"{words} {round(loads[0])}/2100 4321\n")
    _write(f"{root}{OWN_PROC}/meminfo", _meminfo(kilobytes, wave))
    up_s = BOOTED_BEFORE_S + job_time_s
    _write(f"{root}{OWN_PROC}/uptime", f"{up_s:.2f} {up_s * cpus * (1 - EACH_CPU_LOAD):.2f}\n")


def _meminfo(kilobytes: int, wave: float) -> str:
    available = round(kilobytes * (1 - USED - 0.01 * wave))
    rows = {"MemTotal": kilobytes, "MemFree": available * 3 // 4, "MemAvailable": available}
    return "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in rows.items())


def _write(path: str, text: str) -> None:
    """Replace the file at once: a viewer never sees half of it."""
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(f"{path}.new", path)
