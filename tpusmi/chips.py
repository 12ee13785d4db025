"""What each TPU generation is. Facts only: nothing here reads a machine."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from typing import NamedTuple

GOOGLE_PCI_VENDOR = 0x1AE0

ACCEL, VFIO = "/dev/accel{}", "/dev/vfio/{}"

GIB = 1024**3
_TERA, _GIGA = 1e12, 1e9
_SQUARE, _LITE = ((2, 2, 1),), ((1, 1, 1), (2, 2, 1), (2, 4, 1))
_PER_CHIP = frozenset(("duty_cycle_percent", "idle_s"))


class Generation(NamedTuple):
    """One TPU generation, as PCI, JAX and Google's documentation know it."""

    name: str
    pci_device_id: int
    pci_subsystem_id: int | None
    """Only where two generations share a device id."""
    jax_kinds: tuple[str, ...]
    type_names: tuple[str, ...]
    """What stands before the number of an accelerator type: `v5litepod` of `v5litepod-8`."""
    type_counts_cores: bool
    """True when that number counts TensorCores (v4-8 is 4 chips), False when it counts chips."""
    node: str
    """Its device nodes, with {} for the number."""
    pci_functions: int
    """Of one chip; each has a device node of its own."""
    devices_per_chip: int
    """What JAX and libtpu number."""
    cores_per_device: int
    """TensorCores."""
    mxus_per_core: int
    mxu_size: int
    """An MXU multiplies matrices of size × size."""
    hbm_bytes: int
    """Of one chip, nominal: the allocator has a little less."""
    hbm_bytes_per_s: float
    """Of one chip."""
    bf16_flops_per_s: float
    """Peak of one chip."""
    int8_flops_per_s: float | None
    fp8_flops_per_s: float | None
    host_shapes: tuple[tuple[int, int, int], ...]
    """How the chips of one host can stand, by coordinate, fewest first."""
    chip_metrics: frozenset[str] = frozenset()
    """Metrics that libtpu gives once for a chip though it has several devices."""

    @property
    def kind(self) -> str:
        """What a person calls the chip: `TPU v5e`."""
        return "TPU7x" if self.name == "7x" else f"TPU {self.name}"

    @property
    def cores_per_chip(self) -> int:
        return self.devices_per_chip * self.cores_per_device


# Sources. PCI ids, devices and nodes: tpu-info 0.14.2 `device.py`, jax 0.10.2 `hardware_utils.py`,
# recordings of v2, v5e, v5p, v6e and 7x hosts. Cores and MXUs: jax 0.10.2 Pallas `tpu_info.py`.
# Memory, rates and host shapes: Google's pages `cloud.google.com/tpu/docs/{v3,v4,v5e,v5p,v6e,
# tpu7x}`, also where Pallas differs (v3: 140 TFLOP/s and 825 GB/s there, 123 and 900 here; v5p:
# 2460 GB/s there, 2765 here). v2 has no page any more: rates from Pallas. The int8 of v5p and
# nothing else of later chips is from Pallas too. A trace's own peak, where there is one, beats
# this table: v6e traces say 918 and 946.7.
#
# "TPU v4 lite" is nowhere: it has v4's PCI id and half of its rate, and was never for hire.
GENERATIONS = (
    Generation(
        name="v2",
        pci_device_id=0x0027,
        pci_subsystem_id=0x004E,
        jax_kinds=("TPU v2",),
        type_names=("v2",),
        type_counts_cores=True,
        node=ACCEL,
        pci_functions=1,
        devices_per_chip=2,
        cores_per_device=1,
        mxus_per_core=1,
        mxu_size=128,
        hbm_bytes=16 * GIB,
        hbm_bytes_per_s=716 * _GIGA,
        bf16_flops_per_s=46 * _TERA,
        int8_flops_per_s=None,
        fp8_flops_per_s=None,
        host_shapes=_SQUARE,
        chip_metrics=_PER_CHIP,
    ),
    Generation(
        name="v3",
        pci_device_id=0x0027,
        pci_subsystem_id=0x004F,
        jax_kinds=("TPU v3",),
        type_names=("v3",),
        type_counts_cores=True,
        node=ACCEL,
        pci_functions=1,
        devices_per_chip=2,
        cores_per_device=1,
        mxus_per_core=2,
        mxu_size=128,
        hbm_bytes=32 * GIB,
        hbm_bytes_per_s=900 * _GIGA,
        bf16_flops_per_s=123 * _TERA,
        int8_flops_per_s=None,
        fp8_flops_per_s=None,
        host_shapes=_SQUARE,
        chip_metrics=_PER_CHIP,
    ),
    Generation(
        name="v4",
        pci_device_id=0x005E,
        pci_subsystem_id=None,
        jax_kinds=("TPU v4",),
        type_names=("v4",),
        type_counts_cores=True,
        node=ACCEL,
        pci_functions=1,
        devices_per_chip=1,
        cores_per_device=2,
        mxus_per_core=4,
        mxu_size=128,
        hbm_bytes=32 * GIB,
        hbm_bytes_per_s=1200 * _GIGA,
        bf16_flops_per_s=275 * _TERA,
        int8_flops_per_s=None,
        fp8_flops_per_s=None,
        host_shapes=_SQUARE,
    ),
    Generation(
        name="v5e",
        pci_device_id=0x0063,
        pci_subsystem_id=None,
        jax_kinds=("TPU v5 lite", "TPU v5e"),
        type_names=("v5litepod", "v5e", "v5lite"),
        type_counts_cores=False,
        node=VFIO,
        pci_functions=1,
        devices_per_chip=1,
        cores_per_device=1,
        mxus_per_core=4,
        mxu_size=128,
        hbm_bytes=16 * GIB,
        hbm_bytes_per_s=819 * _GIGA,
        bf16_flops_per_s=197 * _TERA,
        int8_flops_per_s=393 * _TERA,
        fp8_flops_per_s=None,
        host_shapes=_LITE,
    ),
    Generation(
        name="v5p",
        pci_device_id=0x0062,
        pci_subsystem_id=None,
        jax_kinds=("TPU v5", "TPU v5p"),
        type_names=("v5p",),
        type_counts_cores=True,
        node=VFIO,
        pci_functions=1,
        devices_per_chip=1,
        cores_per_device=2,
        mxus_per_core=4,
        mxu_size=128,
        hbm_bytes=95 * GIB,
        hbm_bytes_per_s=2765 * _GIGA,
        bf16_flops_per_s=459 * _TERA,
        int8_flops_per_s=918 * _TERA,
        fp8_flops_per_s=None,
        host_shapes=_SQUARE,
    ),
    Generation(
        name="v6e",
        pci_device_id=0x006F,
        pci_subsystem_id=None,
        jax_kinds=("TPU v6 lite", "TPU v6e"),
        type_names=("v6e",),
        type_counts_cores=False,
        node=VFIO,
        pci_functions=1,
        devices_per_chip=1,
        cores_per_device=1,
        mxus_per_core=2,
        mxu_size=256,
        hbm_bytes=32 * GIB,
        hbm_bytes_per_s=1638 * _GIGA,
        bf16_flops_per_s=918 * _TERA,
        int8_flops_per_s=1836 * _TERA,
        fp8_flops_per_s=None,
        host_shapes=_LITE,
    ),
    Generation(
        name="7x",
        pci_device_id=0x0076,
        pci_subsystem_id=None,
        jax_kinds=("TPU7x", "TPU7"),
        type_names=("tpu7x", "7x", "v7x"),
        type_counts_cores=True,
        node=VFIO,
        pci_functions=2,
        devices_per_chip=2,
        cores_per_device=1,
        mxus_per_core=2,
        mxu_size=256,
        hbm_bytes=192 * GIB,
        hbm_bytes_per_s=7380 * _GIGA,
        bf16_flops_per_s=2307 * _TERA,
        int8_flops_per_s=None,
        fp8_flops_per_s=4614 * _TERA,
        host_shapes=_SQUARE,
    ),
)

# The vendor also makes network cards and disks: only these ids are TPUs.
TPU_PCI_DEVICE_IDS = frozenset(g.pci_device_id for g in GENERATIONS)
OTHER_PCI_DEVICES = {0x0042: "gVNIC", 0x001F: "NVMe disk", 0xABCD: "phone"}
"""What else the vendor makes."""


def by_pci(device_id: int, subsystem_id: int | None = None) -> Generation | None:
    """The generation of a PCI function of Google's.

    None for an id that is no known TPU's, and where only the subsystem id could tell and does not.
    """
    for g in GENERATIONS:
        if g.pci_device_id == device_id and g.pci_subsystem_id in (None, subsystem_id):
            return g
    return None


def by_kind(kind: str) -> Generation | None:
    """The generation of a JAX `device_kind`, in the spelling of JAX or of a trace (`v6 Lite`)."""
    return _BY_KIND.get(" ".join(kind.lower().split()).removesuffix(" chip"))


def by_name(name: str) -> Generation | None:
    """The generation called `v5e`, or as accelerator types spell it: `v5litepod`, `tpu7x`."""
    return _BY_NAME.get(name.lower())


def by_accelerator_type(text: str) -> tuple[Generation, int] | None:
    """Generation and number of chips of `v5litepod-8` (8), `v5e-8` (8), `v4-8` (4), `tpu7x-8` (4).

    None when there is no such type.
    """
    name, _, number = text.lower().rpartition("-")
    generation = by_name(name)
    if generation is None or not (number.isascii() and number.isdigit() and len(number) < 8):
        return None
    chips, rest = divmod(
        int(number), generation.cores_per_chip if generation.type_counts_cores else 1
    )
    return (generation, chips) if chips and not rest else None


def peak_flops_per_device(generation: Generation, dtype: str = "bf16") -> float | None:
    """Most FLOP/s of one JAX device in `bf16`, `int8` or `fp8`; None when nobody tells it."""
    of_chip: float | None = getattr(generation, f"{dtype}_flops_per_s", None)
    return None if of_chip is None else of_chip / generation.devices_per_chip


def peak_hbm_bytes_per_s_per_device(generation: Generation) -> float:
    """Most bytes per second between one JAX device and its HBM."""
    return generation.hbm_bytes_per_s / generation.devices_per_chip


_BY_KIND = {kind.lower(): g for g in GENERATIONS for kind in (g.kind, *g.jax_kinds)}
_BY_NAME = {name: g for g in GENERATIONS for name in (g.name, *g.type_names)}
