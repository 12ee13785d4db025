"""Facts about each TPU generation. Nothing here reads a machine."""

from typing import NamedTuple

GOOGLE_PCI_VENDOR = 0x1AE0

ACCEL, VFIO = "/dev/accel{}", "/dev/vfio/{}"

GIB = 1024**3
_TERA, _GIGA = 1e12, 1e9
_SQUARE, _LITE = ((2, 2, 1),), ((1, 1, 1), (2, 2, 1), (2, 4, 1))
_PER_CHIP = frozenset(("duty_cycle_percent", "idle_s"))


class Generation(NamedTuple):
    """One TPU generation, as PCI, JAX and Google's documentation describe it. All numbers are
    nominal, and rates are peaks.
    """

    name: str
    pci_device_id: int
    jax_kinds: tuple[str, ...]
    type_names: tuple[str, ...]
    """The names before the number of an accelerator type: `v5litepod` in `v5litepod-8`."""
    type_counts_cores: bool
    """True when that number counts TensorCores (v4-8 is 4 chips), False when it counts chips."""
    node: str
    """The path of its device nodes, with {} for the number."""
    devices_per_chip: int
    """How many devices JAX and libtpu number on one chip."""
    cores_per_device: int
    """How many TensorCores one device has."""
    mxus_per_core: int
    hbm_bytes: int
    """Memory of one chip: the allocator has a little less."""
    hbm_bytes_per_s: float
    """Memory bandwidth of one chip."""
    bf16_flops_per_s: float
    """Rate of one chip."""
    host_shapes: tuple[tuple[int, int, int], ...]
    """How the chips of one host can be arranged, by coordinate, fewest first."""
    pci_subsystem_id: int | None = None
    """Only if two generations share a device id."""
    pci_functions: int = 1
    """PCI functions of one chip; each has its own device node."""
    mxu_size: int = 128
    """An MXU multiplies matrices of size × size."""
    int8_flops_per_s: float | None = None
    """Rate of one chip; None if the chip does not compute in int8, or no source has the rate."""
    fp8_flops_per_s: float | None = None
    """Rate of one chip; None as above."""
    chip_metrics: frozenset[str] = frozenset()
    """Metrics that libtpu reports once for a chip although it has several devices."""

    @property
    def kind(self) -> str:
        """The usual name of the chip: `TPU v5e`."""
        return "TPU7x" if self.name == "7x" else f"TPU {self.name}"

    @property
    def cores_per_chip(self) -> int:
        return self.devices_per_chip * self.cores_per_device


# Sources. PCI ids, devices and nodes: tpu-info 0.14.2 `device.py`, jax 0.10.2 `hardware_utils.py`,
# recordings of v2, v5e, v5p, v6e and 7x hosts. Cores and MXUs: jax 0.10.2 Pallas `tpu_info.py`.
# Memory, rates and host shapes: Google's pages `cloud.google.com/tpu/docs/{v3,v4,v5e,v5p,v6e,
# tpu7x}`, even if Pallas differs (v3: 140 TFLOP/s and 825 GB/s there, 123 and 900 here; v5p: 2460
# GB/s there, 2765 here). v2 no longer has a page: its rates are from Pallas, and so is the int8
# rate of v5p. If a trace has its own peak, that takes precedence: v6e traces have 918 and 946.7.
#
# "TPU v4 lite" is missing: it has v4's PCI id and half of its rate, and was never offered.
# fmt: off
GENERATIONS = (
    Generation(
        name="v2", pci_device_id=0x0027, pci_subsystem_id=0x004E,
        jax_kinds=("TPU v2",), type_names=("v2",),
        node=ACCEL, host_shapes=_SQUARE, devices_per_chip=2, chip_metrics=_PER_CHIP,
        type_counts_cores=True, cores_per_device=1, mxus_per_core=1,
        hbm_bytes=16 * GIB, hbm_bytes_per_s=716 * _GIGA,
        bf16_flops_per_s=46 * _TERA,
    ),
    Generation(
        name="v3", pci_device_id=0x0027, pci_subsystem_id=0x004F,
        jax_kinds=("TPU v3",), type_names=("v3",),
        node=ACCEL, host_shapes=_SQUARE, devices_per_chip=2, chip_metrics=_PER_CHIP,
        type_counts_cores=True, cores_per_device=1, mxus_per_core=2,
        hbm_bytes=32 * GIB, hbm_bytes_per_s=900 * _GIGA,
        bf16_flops_per_s=123 * _TERA,
    ),
    Generation(
        name="v4", pci_device_id=0x005E,
        jax_kinds=("TPU v4",), type_names=("v4",),
        node=ACCEL, host_shapes=_SQUARE, devices_per_chip=1,
        type_counts_cores=True, cores_per_device=2, mxus_per_core=4,
        hbm_bytes=32 * GIB, hbm_bytes_per_s=1200 * _GIGA,
        bf16_flops_per_s=275 * _TERA,
    ),
    Generation(
        name="v5e", pci_device_id=0x0063,
        jax_kinds=("TPU v5 lite", "TPU v5e"), type_names=("v5litepod", "v5e", "v5lite"),
        node=VFIO, host_shapes=_LITE, devices_per_chip=1,
        type_counts_cores=False, cores_per_device=1, mxus_per_core=4,
        hbm_bytes=16 * GIB, hbm_bytes_per_s=819 * _GIGA,
        bf16_flops_per_s=197 * _TERA, int8_flops_per_s=393 * _TERA,
    ),
    Generation(
        name="v5p", pci_device_id=0x0062,
        jax_kinds=("TPU v5", "TPU v5p"), type_names=("v5p",),
        node=VFIO, host_shapes=_SQUARE, devices_per_chip=1,
        type_counts_cores=True, cores_per_device=2, mxus_per_core=4,
        hbm_bytes=95 * GIB, hbm_bytes_per_s=2765 * _GIGA,
        bf16_flops_per_s=459 * _TERA, int8_flops_per_s=918 * _TERA,
    ),
    Generation(
        name="v6e", pci_device_id=0x006F,
        jax_kinds=("TPU v6 lite", "TPU v6e"), type_names=("v6e",),
        node=VFIO, host_shapes=_LITE, devices_per_chip=1,
        type_counts_cores=False, cores_per_device=1, mxus_per_core=2, mxu_size=256,
        hbm_bytes=32 * GIB, hbm_bytes_per_s=1638 * _GIGA,
        bf16_flops_per_s=918 * _TERA, int8_flops_per_s=1836 * _TERA,
    ),
    Generation(
        name="7x", pci_device_id=0x0076, pci_functions=2,
        jax_kinds=("TPU7x", "TPU7"), type_names=("tpu7x", "7x", "v7x"),
        node=VFIO, host_shapes=_SQUARE, devices_per_chip=2,
        type_counts_cores=True, cores_per_device=1, mxus_per_core=2, mxu_size=256,
        hbm_bytes=192 * GIB, hbm_bytes_per_s=7380 * _GIGA,
        bf16_flops_per_s=2307 * _TERA, fp8_flops_per_s=4614 * _TERA,
    ),
)
# fmt: on

TPU_PCI_DEVICE_IDS = frozenset(g.pci_device_id for g in GENERATIONS)
OTHER_PCI_DEVICES = {0x0042: "gVNIC", 0x001F: "NVMe disk", 0xABCD: "phone"}
"""Other devices with Google's vendor id."""


def by_pci(device_id: int, subsystem_id: int | None = None) -> Generation | None:
    """The generation of a PCI function with Google's vendor id.

    None for an unknown id, and if the subsystem id is needed and does not match.
    """
    for g in GENERATIONS:
        if g.pci_device_id == device_id and g.pci_subsystem_id in (None, subsystem_id):
            return g
    return None


def by_kind(kind: str) -> Generation | None:
    """The generation of a JAX `device_kind`, as JAX or a trace (`v6 Lite`) spells it."""
    return _BY_KIND.get(" ".join(kind.lower().split()).removesuffix(" chip"))


def usual_kind(kind: str) -> str:
    """The one name for a kind that screens show: `TPU v5e` for JAX's `TPU v5 lite`. The name itself
    where the table does not have it: `cpu`.
    """
    generation = by_kind(kind)
    return kind if generation is None else generation.kind


def by_name(name: str) -> Generation | None:
    """The generation called `v5e`, or as accelerator types spell it: `v5litepod`, `tpu7x`."""
    return _BY_NAME.get(name.lower())


def by_accelerator_type(text: str) -> tuple[Generation, int] | None:
    """Generation and number of chips of `v5litepod-8` (8), `v5e-8` (8), `v4-8` (4), `tpu7x-8` (4).

    None if there is no such type.
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
    """Peak FLOP/s of one JAX device in `bf16`, `int8` or `fp8`; None if not known."""
    chip_rate: float | None = getattr(generation, f"{dtype}_flops_per_s", None)
    return None if chip_rate is None else chip_rate / generation.devices_per_chip


def peak_hbm_bytes_per_s_per_device(generation: Generation) -> float:
    """Peak bytes per second between one JAX device and its HBM."""
    return generation.hbm_bytes_per_s / generation.devices_per_chip


_BY_KIND = {kind.lower(): g for g in GENERATIONS for kind in (g.kind, *g.jax_kinds)}
_BY_NAME = {name: g for g in GENERATIONS for name in (g.name, *g.type_names)}
