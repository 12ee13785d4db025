"""What the table of generations says, and how one is found in it."""

from __future__ import annotations

import pytest

from tpusmi.chips import (
    GENERATIONS,
    OTHER_PCI_DEVICES,
    TPU_PCI_DEVICE_IDS,
    Generation,
    by_accelerator_type,
    by_kind,
    by_name,
    by_pci,
    peak_flops_per_device,
    usual_kind,
)

EVERY = pytest.mark.parametrize("generation", GENERATIONS, ids=lambda g: g.name)


def of(name: str) -> Generation:
    found = by_name(name)
    assert found is not None
    return found


@EVERY
def test_each_generation_is_found_by_every_name_it_has(generation: Generation) -> None:
    assert by_name(generation.name) is generation
    assert by_pci(generation.pci_device_id, generation.pci_subsystem_id) is generation
    for kind in (*generation.jax_kinds, generation.kind, f"{generation.kind} chip"):
        assert by_kind(kind) is generation
        assert by_kind(kind.upper()) is generation
    for name in generation.type_names:
        assert by_name(name.upper()) is generation


@EVERY
def test_the_figures_of_a_generation_are_plausible(generation: Generation) -> None:
    clock_hz = generation.bf16_flops_per_s / (
        2 * generation.cores_per_chip * generation.mxus_per_core * generation.mxu_size**2
    )
    assert 0.5e9 < clock_hz < 5e9
    assert 8 * 2**30 <= generation.hbm_bytes <= 512 * 2**30
    assert 1e11 < generation.hbm_bytes_per_s < 1e13
    for other in (generation.int8_flops_per_s, generation.fp8_flops_per_s):
        assert other is None or 1.9 < other / generation.bf16_flops_per_s < 2.1


def test_devices_and_cores_of_a_chip() -> None:
    assert {g.name: g.devices_per_chip for g in GENERATIONS} == {
        "v2": 2,
        "v3": 2,
        "v4": 1,
        "v5e": 1,
        "v5p": 1,
        "v6e": 1,
        "7x": 2,
    }
    assert {g.name for g in GENERATIONS if g.cores_per_chip == 1} == {"v5e", "v6e"}
    assert [g.name for g in GENERATIONS if g.pci_functions == 2] == ["7x"]
    assert [g.name for g in GENERATIONS if g.chip_metrics] == ["v2", "v3"]


def test_a_kind_has_one_name_for_the_screen_whatever_jax_calls_it() -> None:
    for generation in GENERATIONS:
        assert {usual_kind(kind) for kind in generation.jax_kinds} == {generation.kind}
    assert usual_kind("cpu") == "cpu"
    assert usual_kind("TPU v4 lite") == "TPU v4 lite"


def test_a_trace_spells_the_kind_in_its_own_way() -> None:
    assert by_kind("TPU v6 Lite") is of("v6e")
    assert by_kind("tpu  v5 lite") is of("v5e")
    assert by_kind("TPU v5") is of("v5p")
    assert by_kind("TPU v4 lite") is None
    assert by_kind("cpu") is None
    assert by_kind("") is None


def test_v2_and_v3_differ_in_the_subsystem_id_alone() -> None:
    assert by_pci(0x0027, 0x004E) is of("v2")
    assert by_pci(0x0027, 0x004F) is of("v3")
    assert by_pci(0x0027) is None
    assert by_pci(0x0063) is by_pci(0x0063, 0x1234) is of("v5e")


def test_what_else_the_vendor_makes_is_no_tpu() -> None:
    assert not TPU_PCI_DEVICE_IDS & OTHER_PCI_DEVICES.keys()
    assert by_pci(0x0042) is None


@pytest.mark.parametrize(
    ("text", "name", "chips"),
    [
        ("v2-8", "v2", 4),
        ("v3-8", "v3", 4),
        ("v4-8", "v4", 4),
        ("v5litepod-8", "v5e", 8),
        ("v5e-8", "v5e", 8),
        ("V5E-1", "v5e", 1),
        ("v5p-8", "v5p", 4),
        ("v6e-256", "v6e", 256),
        ("tpu7x-8", "7x", 4),
        ("7x-8", "7x", 4),
    ],
)
def test_an_accelerator_type_counts_chips_or_cores(text: str, name: str, chips: int) -> None:
    assert by_accelerator_type(text) == (of(name), chips)


@pytest.mark.parametrize(
    "text", ["", "v5e", "v5e-", "-8", "v9-8", "v4-7", "v5e-0", "v5e-²", "v5e--8", "v5e-99999999"]
)
def test_what_is_no_accelerator_type_is_none(text: str) -> None:
    assert by_accelerator_type(text) is None


def test_the_peak_of_a_device_is_its_share_of_the_chip() -> None:
    assert peak_flops_per_device(of("v5e")) == 197e12
    assert peak_flops_per_device(of("v5p")) == 459e12
    assert peak_flops_per_device(of("v3")) == 61.5e12
    assert peak_flops_per_device(of("7x")) == 1153.5e12
    assert peak_flops_per_device(of("7x"), "fp8") == 2307e12
    assert peak_flops_per_device(of("v6e"), "int8") == 1836e12
    assert peak_flops_per_device(of("v4"), "int8") is None
    assert peak_flops_per_device(of("v4"), "fp4") is None
