"""A snapshot as families of samples. Unknown and old values have none. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.exporter.catalog import LATENCIES, PARTS, latency_series
from tpusmi.exporter.families import Families
from tpusmi.exporter.job_names import job_name
from tpusmi.exporter.of_processes import add_processes
from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    FAILED,
    HOLDERS,
    OK,
    Device,
    Latency,
    Snapshot,
    Status,
)
from tpusmi.model.holding import node_states, status
from tpusmi.model.jsonobject import rounded
from tpusmi.model.series_names import PREFIX, converted
from tpusmi.model.states import ABSENT, Holding

CHIPS_MOST, DEVICES_MOST = 256, 1024
"""The jobs of a machine can have many more devices than it has: JAX makes thousands of the CPU."""
BUCKETS_MOST = 512
OTHER_CODE = "other"
"""In place of a code that this version does not know: an agent can write any."""


def add_snapshot(f: Families, s: Snapshot, with_processes: bool) -> None:
    """Add everything that the snapshot knows."""
    _add_host(f, s)
    _add_sources(f, s)
    _add_chips(f, s)
    _add_devices(f, s)
    _add_links(f, s)
    _add_latencies(f, s)
    _add_notices(f, s)
    if with_processes:
        add_processes(f, s)
        if s.slices:
            from tpusmi.exporter.of_slices import add_slices

            add_slices(f, s)


def _add_host(f: Families, s: Snapshot) -> None:
    h = s.host
    f.add_info(
        "host",
        kernel=h.kernel,
        libtpu_version=h.libtpu_version,
        tpu_driver=h.tpu_driver,
        tpu_driver_version=h.tpu_driver_version,
        boot_id=h.boot_id,
    )
    f.add("host_cpus", h.cpus)
    for minutes, load in zip((1, 5, 15), h.load_averages or (), strict=False):
        f.add(f"host_load{minutes}", load)
    f.add("host_memory_total_bytes", h.memory_total_bytes)
    f.add("host_memory_available_bytes", h.memory_available_bytes)
    f.add("host_uptime_seconds", h.uptime_s)
    states = [state for state in Holding if state != Holding.RELEASING]
    f.add_states("tpu_status", "status", status(s), states)
    is_known = any(o.source == HOLDERS and o.status in (OK, ABSENT) for o in s.sources)
    count = s.visibility.not_inspected
    f.add("not_inspected_processes", count if count or is_known else None)


def _add_sources(f: Families, s: Snapshot) -> None:
    for o in s.sources:
        f.add("source_up", int(o.status in (OK, ABSENT)), source=o.source)
        f.add_states("source_status", "status", o.status, Status, source=o.source)
        f.add("source_read_seconds", o.took_s, source=o.source)
    for server in s.servers:
        if server.is_service:
            pid = None if server.process is None else server.process.pid
            up = int(server.status != FAILED)
            f.add("metrics_server_up", up, address=server.address, pid=pid)


def _add_chips(f: Families, s: Snapshot) -> None:
    for c in s.chips[:CHIPS_MOST]:
        f.add_info(
            "chip",
            chip=c.index,
            generation=c.generation,
            kind=c.kind,
            pci_address=",".join(c.pci_addresses),
            node=",".join(c.nodes),
            numa_node=c.numa_node,
            pcie_link=c.pcie_link,
            driver=c.driver,
        )
        f.add("chip_hbm_nominal_bytes", c.hbm_nominal_bytes, chip=c.index)
        f.add_measured(s, CHIP_METRICS, c.key, chip=c.index)
    f.add("left_out", max(0, len(s.chips) - CHIPS_MOST), what="chips")
    _add_holders(f, s)


def _add_holders(f: Families, s: Snapshot) -> None:
    """How many processes hold each chip: nothing where one of them may be out of sight."""
    pids: dict[int, set[int]] = {}
    unseen = {n.chip for n in node_states(s) if n.state == Holding.NOT_VISIBLE}
    for node in node_states(s):
        if node.chip is not None:
            pids.setdefault(node.chip, set()).update(node.pids)
    for chip, holders in pids.items():
        if holders or chip not in unseen:
            f.add("chip_holders", len(holders), chip=chip)


def _add_devices(f: Families, s: Snapshot) -> None:
    jobs = {p.key: job_name(p.command) for p in s.processes}
    for d in s.devices[:DEVICES_MOST]:
        owner = d.owners[0] if d.owners else None
        labels = device_labels(d)
        f.add_info(
            "device",
            **labels,
            id=d.id,
            name=d.name,
            kind=d.kind,
            platform=d.platform,
            coords=None if d.coords is None else ",".join(map(str, d.coords)),
            core_on_chip=d.core_on_chip,
            node=d.node,
            pid=None if owner is None else owner.pid,
            job_name=None if owner is None else jobs.get(owner),
        )
        f.add_measured(s, DEVICE_METRICS, d.key, **labels)
    f.add("left_out", max(0, len(s.devices) - DEVICES_MOST), what="devices")


def device_labels(d: Device) -> dict[str, object]:
    """The labels of a device: of the machine's own its index, which no job changes; of others, such
    as the CPU of a job, the name.
    """
    return {"chip": d.chip, "device": d.name if d.chip is None else d.index}


def _add_links(f: Families, s: Snapshot) -> None:
    for link in s.links:
        f.add("ici_link_health", link.health, chip=link.chip, link=link.name)


def _add_latencies(f: Families, s: Snapshot) -> None:
    for x in s.latencies[:BUCKETS_MOST]:
        if x.name not in LATENCIES:
            continue
        labels = _of_latency(x)
        for part in ("count", *PARTS):
            name, factor = latency_series(x.name, part)
            number = rounded(getattr(x.percentiles, part))
            value = None if number is None else converted(number, factor)
            f.add(name.removeprefix(PREFIX), value, **labels)
    f.add("left_out", max(0, len(s.latencies) - BUCKETS_MOST), what="network distributions")


def _of_latency(x: Latency) -> dict[str, object]:
    if x.process is not None or x.server is None:
        return {"bucket": x.label, "pid": None if x.process is None else x.process.pid}
    return {"bucket": x.label, "port": x.server.rpartition(":")[2]}


def _add_notices(f: Families, s: Snapshot) -> None:
    from tpusmi.merge.advice import CODES

    counts: dict[tuple[str, int | None, int | None, int | None], int] = {}
    ages: dict[tuple[str, int | None, int | None, int | None], float] = {}
    for n in s.warnings:
        code = n.code if n.code in CODES else OTHER_CODE
        about = (code, n.chip, n.device, n.pid)
        counts[about] = counts.get(about, 0) + 1
        if n.since_s is not None:
            ages[about] = max(n.since_s, ages.get(about, 0.0))
    for about, count in counts.items():
        labels = _of_notice(about)
        f.add("notice", count, **labels)
        f.add("notice_age_seconds", ages.get(about), **labels)


def _of_notice(about: tuple[str, int | None, int | None, int | None]) -> Mapping[str, object]:
    code, chip, device, pid = about
    return {"code": code, "chip": chip, "device": device, "pid": pid}
