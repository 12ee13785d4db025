"""What each TPU generation is. Facts only: nothing here reads a machine."""

from __future__ import annotations

from typing import NamedTuple

GOOGLE_PCI_VENDOR = 0x1AE0


class Generation(NamedTuple):
    """One TPU generation, as PCI and JAX name it."""

    name: str
    pci_device_id: int
    pci_subsystem_id: int | None
    """Only where two generations share a device id."""
    jax_kinds: tuple[str, ...]


GENERATIONS = (
    Generation("v2", 0x0027, 0x004E, ("TPU v2",)),
    Generation("v3", 0x0027, 0x004F, ("TPU v3",)),
    Generation("v4", 0x005E, None, ("TPU v4", "TPU v4 lite")),
    Generation("v5e", 0x0063, None, ("TPU v5 lite", "TPU v5e")),
    Generation("v5p", 0x0062, None, ("TPU v5", "TPU v5p")),
    Generation("v6e", 0x006F, None, ("TPU v6 lite", "TPU v6e")),
    Generation("7x", 0x0076, None, ("TPU7x", "TPU7")),
)

# The vendor also makes network cards and disks: only these ids are TPUs.
TPU_PCI_DEVICE_IDS = frozenset(g.pci_device_id for g in GENERATIONS)
