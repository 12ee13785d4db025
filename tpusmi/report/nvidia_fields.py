"""Fields under nvidia-smi's names: those that a TPU has as well, and those that no TPU reports.

Scripts ask for many in one query, and one unknown name would fail the whole query. The names are
those of `nvidia-smi --help-query-gpu`, of old and new drivers.
"""

from collections.abc import Callable, Iterator
from itertools import product

from tpusmi.model import Device, Snapshot
from tpusmi.report.device_names import uuid
from tpusmi.report.query_fields import Field, FieldValue, Getter, Share, pci_address

_ONE = """
serial gpu_serial
compute_mode
compute_cap
persistence_mode
addressing_mode
display_mode
display_attached
display_active
accounting.mode
accounting.buffer_size
driver_model.current
driver_model.pending
vbios_version
kmd_version
inforom.img inforom.image
inforom.oem
inforom.ecc
inforom.pwr inforom.power
inforom.checksum_validation
gpu_recovery_action
gpu_reset_status.reset_required
gpu_reset_status.drain_and_reset_recommended
gom.current gpu_operation_mode.current
gom.pending gpu_operation_mode.pending
fan.speed [%]
pstate
pci.device_id
pci.sub_device_id
pci.baseClass
pci.subClass
pcie.link.gen.hostmax
encoder.stats.sessionCount
encoder.stats.averageFps
encoder.stats.averageLatency
dramEncryption.mode.current
dramEncryption.mode.pending
ecc.mode.current
ecc.mode.pending
retired_pages.single_bit_ecc.count retired_pages.sbe
retired_pages.double_bit.count retired_pages.dbe
retired_pages.pending
temperature.gpu.tlimit
temperature.memory
power.management
power.draw.average [W]
power.draw.instant [W]
enforced.power.limit [W]
power.default_limit [W]
power.min_limit [W]
power.max_limit [W]
module.power.draw.average [W]
module.power.draw.instant [W]
module.power.limit [W]
module.enforced.power.limit [W]
module.power.default_limit [W]
module.power.min_limit [W]
module.power.max_limit [W]
edpp_multiplier [%]
clocks.current.graphics clocks.gr clocks.current.gr [MHz]
clocks.current.sm clocks.sm [MHz]
clocks.current.memory clocks.mem clocks.current.mem [MHz]
clocks.current.video clocks.video [MHz]
clocks.applications.graphics clocks.applications.gr [MHz]
clocks.applications.memory clocks.applications.mem [MHz]
clocks.default_applications.graphics clocks.default_applications.gr [MHz]
clocks.default_applications.memory clocks.default_applications.mem [MHz]
clocks.max.graphics clocks.max.gr [MHz]
clocks.max.sm [MHz]
clocks.max.memory clocks.max.mem [MHz]
mig.mode.current
mig.mode.pending
gsp.mode.current
gsp.mode.default
c2c.mode
vgpu_driver_capability.heterogenous_multivGPU
vgpu_device_capability.fractional_multiVgpu
vgpu_device_capability.heterogeneous_timeSlice_profile
vgpu_device_capability.heterogeneous_timeSlice_sizes
"""
"""Names of one field each, and its unit."""
_MANY: tuple[tuple[str, str, str], ...] = (
    ("utilization.", "encoder decoder jpeg ofa", "%"),
    ("protected_memory.", "total used free", "MiB"),
    ("remapped_rows.", "correctable uncorrectable pending failure histogram.max histogram.high "
     "histogram.partial histogram.low histogram.none correctable_inactive uncorrectable_inactive",
     ""),
    ("fabric.", "state status cliqueId clusterUuid", ""),
    ("fabric.health.", "bandwidth route_recovery_in_progress route_unhealthy "
     "access_timeout_recovery summary", ""),
    ("platform.", "chassis_serial_number slot_number tray_index host_id peer_type module_id "
     "gpu_fabric_guid", ""),
    ("clocks_event_reasons_counters.", "sw_power_cap sync_boost sw_thermal_slowdown "
     "hw_thermal_slowdown hw_power_brake_slowdown", "us"),
    ("ecc.errors.uncorrected.volatile.sram.", "parity secded", ""),
    ("ecc.errors.uncorrected.aggregate.sram.", "parity secded thresholdExceeded l2 sm mcu pcie "
     "other", ""),
)  # fmt: skip
"""A beginning, the ends of its names, and their unit."""
_REASONS = """supported active gpu_idle applications_clocks_setting sw_power_cap hw_slowdown
hw_thermal_slowdown hw_power_brake_slowdown sw_thermal_slowdown sync_boost"""
_ECC = (
    ("corrected", "uncorrected"),
    ("volatile", "aggregate"),
    ("device_memory", "dram", "register_file", "l1_cache", "l2_cache", "texture_memory", "cbu",
     "sram", "total"),
)  # fmt: skip


def absent_fields() -> tuple[Field, ...]:
    """The fields that no TPU reports: they have no help, and are never known."""
    return tuple(Field(names, "", _unknown, unit=unit) for names, unit in _absent())


def _absent() -> Iterator[tuple[tuple[str, ...], str]]:
    """The names of each field, and its unit."""
    for line in _ONE.strip().splitlines():
        names, _, unit = line.partition(" [")
        yield tuple(names.split()), unit.removesuffix("]")
    for start, ends, unit in _MANY:
        yield from (((start + end,), unit) for end in ends.split())
    for reason in _REASONS.split():
        yield (f"clocks_event_reasons.{reason}", f"clocks_throttle_reasons.{reason}"), ""
    for parts in product(*_ECC):
        yield (f"ecc.errors.{'.'.join(parts)}",), ""


def _unknown(s: Snapshot, item: object) -> FieldValue:
    return None


# -- fields that a TPU has as well


def _part(place: int, digits: int) -> Getter:
    """Part of the chip's PCI address: `0x00`."""

    def part(s: Snapshot, d: Device) -> FieldValue:
        words = (pci_address(s, d) or "").replace(".", ":").split(":")
        return f"0x{words[place].upper().rjust(digits, '0')}" if len(words) == 4 else None

    return part


_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
"""Generations of PCI Express by their GT/s."""


def _link(of_most: bool, read: Callable[[str, str], FieldValue]) -> Getter:
    """From the speed and the lanes of the chip's link. The most that it can do is known only where
    that is more than it does.
    """

    def value(s: Snapshot, d: Device) -> FieldValue:
        chip = s.chip_of(d)
        now, _, most = ((chip.pcie_link if chip is not None else None) or "").partition(" of ")
        words = (most if of_most else now).split()
        return read(words[0], words[2]) if len(words) == 3 else None

    return value


def _generation(speed: str, lanes: str) -> FieldValue:
    return _GENERATIONS.get(speed)


def _lanes(speed: str, lanes: str) -> FieldValue:
    return int(lanes[1:]) if lanes[1:].isdecimal() else None


# fmt: off
NVIDIA_DEVICE_FIELDS = (
    Field(("count",), "Number of devices of this host.", lambda s, d: len(s.devices), scope="host"),
    Field(("pci.domain",), "PCI domain of the chip.", _part(0, 4), scope="chip"),
    Field(("pci.bus",), "PCI bus of the chip.", _part(1, 2), scope="chip"),
    Field(("pci.device",), "PCI device of the chip.", _part(2, 2), scope="chip"),
    Field(("pcie.link.gen.current", "pcie.link.gen.gpucurrent"), "Generation of PCIe in use.",
          _link(False, _generation), scope="chip"),
    Field(("pcie.link.gen.max", "pcie.link.gen.gpumax"), "The most that the link can do.",
          _link(True, _generation), scope="chip"),
    Field(("pcie.link.width.current",), "Lanes in use.", _link(False, _lanes), scope="chip"),
    Field(("pcie.link.width.max",), "The most lanes of the link.", _link(True, _lanes),
          scope="chip"),
)
# fmt: on


def _of_device(name: str, help: str, get: Callable[[Snapshot, Device], FieldValue]) -> Field:
    """A field of a process that its devices have: one row for each."""

    def value(s: Snapshot, share: Share) -> FieldValue:
        return None if share.device is None else get(s, share.device)

    return Field((name,), f"{help} One row per device.", _unknown, of_share=value)


NVIDIA_PROCESS_FIELDS = (
    _of_device("gpu_uuid", "UUID of a device of the process.", uuid),
    _of_device("gpu_name", "Kind of the device.", lambda s, d: d.kind),
    _of_device("gpu_bus_id", "PCI address of the device.", pci_address),
    _of_device("gpu_index", "Local index of the device.", lambda s, d: d.index),
    _of_device("gpu_serial", "Not reported by any TPU.", lambda s, d: None),
)
