"""Which machine an accelerator type names: its generation, the devices of one of its hosts, and the
environment that a launcher gives to each process of a job there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from tpusmi import chips
from tpusmi.chips import Generation

CHIPS_MOST = {"v2": 256, "v3": 1024, "v4": 4096, "v5e": 256, "v5p": 8960, "v6e": 256, "7x": 9216}
"""Most chips in one slice."""
LOCAL_CHIPS_MOST = 512
CUBIC = ("v4", "v5p", "7x")
"""Their slices have three dimensions, the others' two."""
CHIPS_OF_MANY = 4
"""Chips of every host in a slice of several: only single hosts have 1 or 8."""

CUBE, FLAT_MOST = 4, 16
"""Chips on an axis of a cube, and on the longest axis of a flat slice: their ends are joined."""

Coords = tuple[int, int, int]


class SimulatedDevice(NamedTuple):
    """One JAX device of the host."""

    index: int  # type: ignore[assignment]  # hides tuple.index
    """Local."""
    id: int
    """Global id in JAX and libtpu."""
    chip: int
    """Local index of its chip."""
    core: int
    """Its number on the chip."""
    coords: Coords


class SliceHost(NamedTuple):
    """One host of a slice."""

    accelerator_type: str
    generation: Generation
    topology: Coords
    worker: int
    hosts: int
    chip_ids: tuple[int, ...]
    """Global id of each local chip, in local order."""
    coords: tuple[Coords, ...]
    """Coordinates of each local chip."""

    @property
    def chips(self) -> int:
        return len(self.chip_ids)

    @property
    def wraps(self) -> tuple[bool, bool, bool]:
        """Whether the ends of each axis are joined: on full axes of a flat slice, and on those of
        whole cubes.
        """
        is_cubic = self.generation.name in CUBIC
        x, y, z = (not n % CUBE if is_cubic else n == FLAT_MOST for n in self.topology)
        return x, y, z

    @property
    def devices(self) -> tuple[SimulatedDevice, ...]:
        """Every JAX device of this host, in local order."""
        cores = self.generation.devices_per_chip
        return tuple(
            SimulatedDevice(
                index=local * cores + core,
                id=chip * cores + core,
                chip=local,
                core=core,
                coords=coords,
            )
            for local, (chip, coords) in enumerate(zip(self.chip_ids, self.coords, strict=True))
            for core in range(cores)
        )


def parse(name: str, worker: int = 0, chips_here: int | None = None) -> SliceHost:
    """The host that an accelerator type names: `v5e-8`, `v5litepod-8`, `v4-8`, `tpu7x-8`.

    `worker` picks one host of a larger slice, `chips_here` gives it another number of chips.
    Raises ValueError with a sentence for the user.
    """
    slice_of = chips.by_accelerator_type(name)
    shape = None if slice_of is None else _host_shape(*slice_of)
    if slice_of is None or shape is None:
        raise ValueError(f"unknown accelerator type {name!r}; {_suggestions(name)}")
    generation, slice_chips = slice_of
    topology = shape if prod(shape) == slice_chips else _topology(generation.name, slice_chips)
    hosts = slice_chips // prod(shape)
    if not 0 <= worker < hosts:
        those = f"its workers are 0 to {hosts - 1}" if hosts > 1 else "it has one host, worker 0"
        raise ValueError(f"{name} has no worker {worker}: {those}")
    if chips_here is not None and not 1 <= chips_here <= LOCAL_CHIPS_MOST:
        raise ValueError(f"{chips_here} chips are not between 1 and {LOCAL_CHIPS_MOST}")
    places = _places(shape, topology, worker)
    if chips_here is not None:
        places = [(worker * chips_here + i, 0, 0) for i in range(chips_here)]
        topology = (max(hosts, 1) * chips_here, 1, 1)
    ids = tuple(x + topology[0] * (y + topology[1] * z) for x, y, z in places)
    return SliceHost(
        # As Google's own variable TPU_ACCELERATOR_TYPE spells it.
        accelerator_type=f"{generation.type_names[0]}-{int(name.rpartition('-')[2])}",
        generation=generation,
        topology=topology,
        worker=worker,
        hosts=hosts,
        chip_ids=ids,
        coords=tuple(places),
    )


def _host_shape(generation: Generation, slice_chips: int) -> Coords | None:
    """How the chips of one host stand; None when there is no slice of that many chips."""
    if slice_chips > CHIPS_MOST[generation.name]:
        return None
    shapes = {prod(shape): shape for shape in generation.host_shapes}
    if slice_chips in shapes:
        return shapes[slice_chips]
    hosts, rest = divmod(slice_chips, CHIPS_OF_MANY)
    is_flat = generation.name not in CUBIC
    if rest or hosts < 2 or (is_flat and hosts & (hosts - 1)):  # squares come in powers of two
        return None
    return shapes[CHIPS_OF_MANY]


def _topology(generation: str, slice_chips: int) -> Coords:
    """The slice's shape, as near to a square or a cube as hosts of 2x2 chips allow."""
    hosts = slice_chips // CHIPS_OF_MANY
    shapes = [
        (2 * across, 2 * along, hosts // across // along)
        for across in _divisors(hosts)
        for along in _divisors(hosts // across)
        if generation in CUBIC or across * along == hosts
    ]
    return min(shapes, key=lambda shape: (max(shape), sum(shape), shape))


def _divisors(number: int) -> list[int]:
    return [i for i in range(1, number + 1) if number % i == 0]


def _places(shape: Coords, topology: Coords, worker: int) -> list[Coords]:
    """Coordinates of the host's chips, x fastest, as a real host numbers them."""
    across, along = topology[0] // shape[0], topology[1] // shape[1]
    x0 = worker % across * shape[0]
    y0 = worker // across % along * shape[1]
    z0 = worker // across // along * shape[2]
    return [
        (x0 + x, y0 + y, z0 + z)
        for z in range(shape[2])
        for y in range(shape[1])
        for x in range(shape[0])
    ]


def _suggestions(name: str) -> str:
    """What may have been meant, else one of each generation."""
    from difflib import get_close_matches

    generation = chips.by_name(name.rpartition("-")[0] or name)
    if generation is not None:
        return f"did you mean {', '.join(_types(generation))}?"
    near = get_close_matches(name.lower(), [t for g in chips.GENERATIONS for t in _types(g)], 4)
    if near:
        return f"did you mean {', '.join(near)}?"
    return "try v2-8, v3-8, v4-8, v5e-8, v5p-8, v6e-8 or 7x-8"


def _types(generation: Generation) -> list[str]:
    """Some of its types, smallest first."""
    per_chip = generation.cores_per_chip if generation.type_counts_cores else 1
    sizes = sorted({*map(prod, generation.host_shapes), 16, 32})
    return [f"{generation.name}-{size * per_chip}" for size in sizes]


FOREIGN = ("TPU_", "JAX_", "LIBTPU_", "XLA_", "MEGASCALE_", "TPUSMI_", "CLOUD_TPU_")
"""What the user set for jobs of their own is not for the simulated one."""
SLICE_BUILDER_PORT = 8476
BOUNDS: dict[int, Coords] = {1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1), 8: (2, 4, 1)}


def job_environment(
    machine: SliceHost, processes: Sequence[Mapping[str, Any]], number: int, local: bool = False
) -> dict[str, str]:
    """Environment of the process with that number; `local` sets the addresses as notebooks do."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    hosts = ["localhost"]
    if machine.hosts > 1:
        hosts = [f"simulated-w-{worker}" for worker in range(machine.hosts)]
    return kept | {
        "TPU_ACCELERATOR_TYPE": machine.accelerator_type,
        "TPU_TOPOLOGY": "x".join(map(str, machine.topology)),
        "TPU_TOPOLOGY_WRAP": ",".join(str(is_joined).lower() for is_joined in machine.wraps),
        "TPU_WORKER_ID": str(machine.worker),
        "TPU_WORKER_HOSTNAMES": ",".join(hosts),
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_RUNTIME_METRICS_PORTS": str(processes[number]["port"]),
        **(_bounds(processes, number) if len(processes) > 1 else {}),
        **({"TPU_PROCESS_ADDRESSES": "local"} if local else {}),
    }


def _bounds(processes: Sequence[Mapping[str, Any]], number: int) -> dict[str, str]:
    """What splits a host among processes."""
    count, mine = len(processes), processes[number]["chips"]
    addresses = (f"localhost:{SLICE_BUILDER_PORT + i}" for i in range(count))
    return {
        "TPU_VISIBLE_CHIPS": ",".join(map(str, mine)),
        "TPU_CHIPS_PER_PROCESS_BOUNDS": _text(len(mine)),
        "TPU_PROCESS_BOUNDS": _text(count),
        "TPU_PROCESS_ADDRESSES": ",".join(addresses),
        "TPU_PROCESS_PORT": str(SLICE_BUILDER_PORT + number),
        "CLOUD_TPU_TASK_ID": str(number),
    }


def _text(count: int) -> str:
    return ",".join(map(str, BOUNDS.get(count, (count, 1, 1))))
