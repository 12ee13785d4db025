"""What the kernel shows of the chips, on every machine in tests/machines/ and on hostile ones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import machines
from support.users import ROOT, as_another_user

from tpusmi.model import ABSENT, DENIED, FAILED, OK, Chip, Host
from tpusmi.sources.sysfs import BUS, Sysfs, read_chips

EIGHT_FUNCTIONS = "7x-4_tpu-top"


def put(root: Path, address: str, **files: str | bytes) -> Path:
    """A PCI function with those files; one whose content begins with -> is a link."""
    directory = root / BUS.lstrip("/") / address
    directory.mkdir(parents=True)
    for name, content in files.items():
        if isinstance(content, bytes):
            (directory / name).write_bytes(content)
        elif content.startswith("->"):
            (directory / name).symlink_to(content.removeprefix("-> "))
        else:
            (directory / name).write_text(content + "\n")
    return directory


def v5e(root: Path, address: str = "0000:00:05.0", group: int = 0, **files: str | bytes) -> Path:
    """A TPU v5e with its device node."""
    node = root / "dev/vfio" / str(group)
    node.parent.mkdir(parents=True, exist_ok=True)
    node.touch()
    given: dict[str, str | bytes] = {
        "vendor": "0x1ae0",
        "device": "0x0063",
        "numa_node": "0",
        "driver": "-> ../../../bus/pci/drivers/vfio-pci",
        "iommu_group": f"-> ../../../kernel/iommu_groups/{group}",
    }
    return put(root, address, **{**given, **files})


def chips(root: Path) -> tuple[Chip, ...]:
    return read_chips(Host(root=str(root))).chips


def only_chip(root: Path) -> Chip:
    (chip,) = chips(root)
    return chip


def expected(chip: Chip) -> machines.ExpectedChip:
    """The part of a chip that a machine file tells."""
    return machines.ExpectedChip(
        chip.kind, chip.generation, chip.pci_addresses, chip.nodes, chip.devices, chip.notes
    )


@pytest.mark.parametrize("name", [n for n in machines.names() if n != "locked-down"])
def test_a_machine_has_the_chips_that_its_source_shows(name: str, tmp_path: Path) -> None:
    truth = machines.machine(name)
    found = read_chips(machines.unpack(name, tmp_path))
    assert [expected(chip) for chip in found.chips] == list(truth.chips)
    assert (found.status, found.message) == (truth.about["status"], truth.about["message"])
    assert [chip.index for chip in found.chips] == list(range(len(truth.chips)))


@pytest.mark.parametrize("name", machines.names())
def test_every_holder_of_a_machine_holds_nodes_that_it_has(name: str) -> None:
    truth = machines.machine(name)
    nodes = {node for chip in truth.chips for node in chip.nodes}
    for moment in truth.moments:
        for holder in moment.holders:
            assert set(holder.nodes) <= nodes


@pytest.mark.parametrize("name", [n for n in machines.names() if machines.machine(n).usage])
def test_a_machine_has_a_row_of_usage_for_each_of_its_devices_or_chips(name: str) -> None:
    truth = machines.machine(name)
    counts = {len(truth.chips), sum(chip.devices for chip in truth.chips)}
    for moment in truth.moments:
        assert not moment.usage or len(moment.usage) in counts


@ROOT
def test_nodes_of_another_user_are_shown_with_what_to_do(tmp_path: Path) -> None:
    host = machines.unpack("locked-down", tmp_path)
    assert [c.notes for c in read_chips(host).chips] == [(), ()]
    with as_another_user(tmp_path):
        found = read_chips(host)
    assert [expected(c) for c in found.chips] == list(machines.machine("locked-down").chips)


@ROOT
def test_a_node_in_a_directory_that_is_closed_is_neither_missing_nor_free(tmp_path: Path) -> None:
    v5e(tmp_path)
    (tmp_path / "dev/vfio").chmod(0)
    with as_another_user(tmp_path):
        chip = only_chip(tmp_path)
    assert chip.nodes == ("/dev/vfio/0",)
    assert chip.notes == ("/dev/vfio/0 cannot be inspected: Permission denied",)


@ROOT
def test_a_bus_that_may_not_be_listed_is_denied(tmp_path: Path) -> None:
    v5e(tmp_path)
    (tmp_path / BUS.lstrip("/")).chmod(0)
    with as_another_user(tmp_path):
        found = read_chips(Host(root=str(tmp_path)))
    assert (found.status, found.message) == (DENIED, f"{BUS} cannot be listed: Permission denied")


@ROOT
def test_a_refused_attribute_costs_only_itself(tmp_path: Path) -> None:
    (v5e(tmp_path, group=0) / "numa_node").chmod(0)
    v5e(tmp_path, "0000:00:06.0", group=1)
    (v5e(tmp_path, "0000:00:07.0", group=2) / "vendor").chmod(0)
    with as_another_user(tmp_path):
        found = read_chips(Host(root=str(tmp_path)))
    assert found.status == OK
    assert [c.numa_node for c in found.chips] == [None, 0]
    assert found.chips[0].notes[0] == ("0000:00:05.0: numa_node cannot be read: Permission denied")
    assert found.notes == ("0000:00:07.0: vendor cannot be read: Permission denied",)


def test_the_source_gives_the_chips_with_a_status(tmp_path: Path) -> None:
    source = Sysfs(machines.unpack(EIGHT_FUNCTIONS, tmp_path))
    found = source.read(time.monotonic())
    assert (found.source, found.status, found.message) == ("sysfs", OK, "4 × TPU7x")
    assert [c.hbm_nominal_bytes for c in found.chips] == [192 * 2**30] * 4
    assert 0 <= found.took_s < 60
    assert source.period_s == 5.0


def test_chips_that_come_and_go_are_seen_at_the_next_look(tmp_path: Path) -> None:
    source = Sysfs(Host(root=str(tmp_path)))
    assert source.read(0.0).status == ABSENT
    v5e(tmp_path)
    assert len(source.read(0.0).chips) == 1


def test_numa_node_and_pcie_link(tmp_path: Path) -> None:
    found = read_chips(machines.unpack("v5e-8", tmp_path)).chips
    assert [c.numa_node for c in found] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert found[0].pcie_link == "16.0 GT/s x8 of 16.0 GT/s x16"
    assert found[1].pcie_link == "16.0 GT/s x16"


@pytest.mark.parametrize(
    ("speed", "width", "link"),
    [
        ("8 GT/s", "16", "8.0 GT/s x16"),
        ("2.5 GT/s PCIe", "1", "2.5 GT/s x1"),
        ("Unknown", "0", None),
        ("Unknown speed", "63", None),
        ("16.0 GT/s PCIe", "255", None),
        ("nan GT/s", "16", None),
        ("x GT/s", "16", None),
        ("", "", None),
    ],
)
def test_a_link_that_the_kernel_does_not_know_is_none(
    tmp_path: Path, speed: str, width: str, link: str | None
) -> None:
    v5e(tmp_path, current_link_speed=speed, current_link_width=width)
    chip = only_chip(tmp_path)
    assert (chip.pcie_link, chip.notes) == (link, ())


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-47,96-143", "0-47,96-143"),
        ("0", "0"),
        ("", None),
        ("all", None),
        (",".join(str(2 * n) for n in range(150)), None),  # longer than what is read of it
    ],
)
def test_the_processors_near_a_chip_are_known_only_as_a_whole_list(
    tmp_path: Path, text: str, cpus: str | None
) -> None:
    v5e(tmp_path, local_cpulist=text)
    chip = only_chip(tmp_path)
    assert (chip.cpus, chip.notes) == (cpus, ())


def test_no_numa_node_is_unknown_and_not_node_minus_one(tmp_path: Path) -> None:
    v5e(tmp_path, numa_node="-1")
    chip = only_chip(tmp_path)
    assert (chip.numa_node, chip.notes) == (None, ())


def test_chips_of_two_generations_are_counted_apart(tmp_path: Path) -> None:
    v5e(tmp_path)
    v5e(tmp_path, "0000:00:06.0", group=1, device="0x006f")
    v5e(tmp_path, "0000:00:07.0", group=2)
    assert read_chips(Host(root=str(tmp_path))).message == "2 × TPU v5e, 1 × TPU v6e"


def test_two_chips_of_one_iommu_group_share_its_node(tmp_path: Path) -> None:
    v5e(tmp_path)
    v5e(tmp_path, "0000:00:06.0")
    assert [c.nodes for c in chips(tmp_path)] == [("/dev/vfio/0",), ("/dev/vfio/0",)]


def test_a_7x_whose_functions_share_a_group_has_one_node(tmp_path: Path) -> None:
    v5e(tmp_path, "0000:00:05.0", device="0x0076")
    v5e(tmp_path, "0000:00:05.1", device="0x0076")
    chip = only_chip(tmp_path)
    assert (chip.nodes, chip.devices, chip.notes) == (("/dev/vfio/0",), 2, ())


def test_accel_nodes_are_not_guessed_when_there_is_not_one_for_each_chip(tmp_path: Path) -> None:
    host = machines.unpack("accel-without-links", tmp_path)
    (tmp_path / "dev/accel3").unlink()
    found = read_chips(host).chips
    assert [c.nodes for c in found] == [()] * 4
    assert {c.notes for c in found} == {("no device node: is the TPU's driver loaded?",)}


def test_an_accel_node_that_is_told_is_not_guessed_for_another_chip(tmp_path: Path) -> None:
    host = machines.unpack("accel-without-links", tmp_path)
    for name, address in (("accel0", "0000:00:07.0"), ("accel2", "0000:00:04.0")):
        (tmp_path / "sys/class/accel" / name).mkdir(parents=True)
        (tmp_path / "sys/class/accel" / name / "device").symlink_to(f"../../../{address}")
    found = [c.nodes[0] for c in read_chips(host).chips]
    assert found == ["/dev/accel2", "/dev/accel1", "/dev/accel3", "/dev/accel0"]


def test_a_directory_in_place_of_a_node_is_no_node(tmp_path: Path) -> None:
    v5e(tmp_path)
    (tmp_path / "dev/vfio/0").unlink()
    (tmp_path / "dev/vfio/0").mkdir()
    chip = only_chip(tmp_path)
    assert chip.nodes == ()
    assert "a directory" in chip.notes[0]


def test_an_unknown_function_without_a_driver_is_no_tpu(tmp_path: Path) -> None:
    put(tmp_path, "0000:00:05.0", vendor="0x1ae0", device="0x4321", **{"class": "0xff0000"})
    found = read_chips(Host(root=str(tmp_path)))
    assert found.status == ABSENT
    assert found.message == "no TPU on the PCI bus (other Google devices: 1 × device 0x4321)"


@pytest.mark.parametrize("device", ["0x0042", "0x001f", "0xabcd"])
def test_what_else_the_vendor_makes_is_no_tpu_even_in_a_vfio_group(
    tmp_path: Path, device: str
) -> None:
    v5e(tmp_path, device=device, **{"class": "0xff0000"})
    assert chips(tmp_path) == ()


def test_a_sandbox_whose_functions_have_no_files_says_so(tmp_path: Path) -> None:
    put(tmp_path, "0000:00:05.0")
    found = read_chips(Host(root=str(tmp_path)))
    assert found.status == ABSENT
    assert found.message == "no TPU on the PCI bus; 0000:00:05.0: its PCI `vendor` id is missing"


def test_a_device_that_vanished_is_a_note(tmp_path: Path) -> None:
    v5e(tmp_path)
    (tmp_path / BUS.lstrip("/") / "0000:00:06.0").symlink_to("../../../devices/gone")
    found = read_chips(Host(root=str(tmp_path)))
    assert found.notes == ("0000:00:06.0: vanished: the device is being removed",)
    assert len(found.chips) == 1


def test_many_broken_functions_do_not_fill_the_screen(tmp_path: Path) -> None:
    v5e(tmp_path)
    for slot in range(32):
        put(tmp_path, f"0000:01:{slot:02x}.0", vendor="\x1b[31m")
    found = read_chips(Host(root=str(tmp_path)))
    assert len(found.notes) == 9
    assert found.notes[-1] == "and 24 more of that kind"
    assert all(note.isprintable() for note in found.notes)


HOSTILE: dict[str, str | bytes] = {
    "binary": bytes(range(256)),
    "huge": b"0" * 10_000_000,
    "a huge number": b"0x" + b"f" * 4000,
    "empty": b"",
    "escapes": b"\x1b]0;owned\x07\n",
    "a loop": "-> .",
    "a link to itself": "-> vendor",
    "a device that never ends": "-> /dev/zero",
    "a directory": "-> ..",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize(
    "name",
    [
        *("vendor", "device", "subsystem_device", "class", "numa_node", "iommu_group", "driver"),
        *("current_link_speed", "current_link_width", "accel", "vfio-dev", "local_cpulist"),
    ],
)
def test_hostile_content_is_a_note_and_never_an_exception(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    v5e(tmp_path, **{name: content})
    found = read_chips(Host(root=str(tmp_path)))
    assert found.status in (OK, ABSENT, FAILED)
    for text in (found.message, *found.notes, *(n for c in found.chips for n in c.notes)):
        assert text.isprintable()
        assert len(text) < 200
    assert len(found.chips) == (name not in ("vendor", "device"))


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    directory = v5e(tmp_path)
    for name in ("vendor", "numa_node", "class"):
        (directory / name).unlink(missing_ok=True)
        os.mkfifo(directory / name)
    done = threading.Event()
    threading.Thread(target=lambda: (chips(tmp_path), done.set()), daemon=True).start()
    assert done.wait(60)
    assert read_chips(Host(root=str(tmp_path))).message == (
        "0000:00:05.0: vendor is not a regular file"
    )


def test_a_file_in_place_of_the_bus_is_no_bus(tmp_path: Path) -> None:
    bus = tmp_path / BUS.lstrip("/")
    bus.parent.mkdir(parents=True)
    bus.write_text("not a directory")
    assert read_chips(Host(root=str(tmp_path))).status == ABSENT
    bus.unlink()
    bus.symlink_to("devices")
    assert read_chips(Host(root=str(tmp_path))).status == FAILED


@pytest.mark.parametrize("name", ["..", "0000", "0000:00:05", "x000:00:05.0", "0000:00:05.0 ", "é"])
def test_what_is_no_pci_address_is_passed_over(tmp_path: Path, name: str) -> None:
    v5e(tmp_path)
    if name != "..":
        put(tmp_path, name, vendor="0x1ae0", device="0x0063")
    assert only_chip(tmp_path).pci_addresses == ("0000:00:05.0",)


def test_nothing_under_dev_is_ever_opened(tmp_path: Path) -> None:
    machines.unpack("v5e-8", tmp_path)
    code = (
        "import sys; from tpusmi.model import Host; from tpusmi.sources.sysfs import read_chips\n"
        "watch = lambda event, args: event == 'open' and print(args[0])\n"
        "sys.addaudithook(watch)\n"
        "print(read_chips(Host(root=sys.argv[1])).message)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    lines = ran.stdout.splitlines()
    assert lines[-1] == "8 × TPU v5e"
    assert len(lines) > 8
    assert not [line for line in lines if line.startswith(f"{tmp_path}/dev")]


def test_a_tpu_without_an_id_is_told_by_its_class_and_driver(tmp_path: Path) -> None:
    (v5e(tmp_path, **{"class": "0x120000"}) / "device").unlink()
    chip = only_chip(tmp_path)
    assert (chip.kind, chip.generation, chip.nodes) == ("unknown TPU", None, ("/dev/vfio/0",))
