"""The processes of a snapshot as families of samples: those that the kernel proves alive. Pure."""

from __future__ import annotations

from tpusmi.exporter.families import Families
from tpusmi.exporter.job_names import job_name
from tpusmi.model import PHASES, PROCESS_METRICS, Process, Snapshot, State, Verdict
from tpusmi.model.jsonobject import rounded
from tpusmi.report.torus import chip_places

PROCESSES_MOST = 64
"""Each has some 40 series, and any user can start processes with an agent."""
_TOPOLOGY = {
    "accelerator_type": "TPU_ACCELERATOR_TYPE",
    "topology": "TPU_TOPOLOGY",
    "worker": "TPU_WORKER_ID",
}


def add_processes(f: Families, s: Snapshot) -> None:
    """Add the living processes, holders of the TPU first: other users can crowd no holder out."""
    living = sorted((p for p in s.processes if is_exported(p)), key=lambda p: not p.holds)
    for p in living[:PROCESSES_MOST]:
        _add_process(f, s, p)
    f.add("left_out", max(0, len(living) - PROCESSES_MOST), what="processes")


def is_exported(p: Process) -> bool:
    """True for a process that is proven alive, not only claimed by a file."""
    return p.is_living and (p.is_verified or bool(p.elsewhere))


def _add_process(f: Families, s: Snapshot, p: Process) -> None:
    labels = {"pid": p.pid, "job_name": job_name(p.command)}
    _add_infos(f, p, labels)
    f.add_states("process_state", "state", p.state, (State.LIVE, State.SILENT), **labels)
    f.add_states("process_phase", "phase", p.phase, PHASES, **labels)
    f.add_states("process_verdict", "verdict", p.verdict, Verdict, **labels)
    f.add("process_age_seconds", None if p.life is None else rounded(p.life.age_s), **labels)
    if p.sampled_at_s is not None:
        f.add("process_sample_age_seconds", max(0.0, s.at_s - p.sampled_at_s), **labels)
    f.add("process_devices", len(s.devices_of(p.key)) or None, **labels)
    f.add_measured(s, PROCESS_METRICS, p.key, **labels)


def _add_infos(f: Families, p: Process, labels: dict[str, object]) -> None:
    f.add_info(
        "process",
        **labels,
        user=p.user,
        command=p.command,
        role=None if p.life is None else p.life.role,
        container_id=None if p.life is None else p.life.container,
        platform=p.facts.get("platform"),
        process_index=p.facts.get("process_index"),
        process_count=p.facts.get("process_count"),
        jax_version=p.facts.get("jax_version"),
    )
    topology = {label: p.environment.get(name) for label, name in _TOPOLOGY.items()}
    topology["wrap"] = chip_places.wrap_text(chip_places.wraps_of(p.environment))
    if any(topology.values()):
        f.add_info("slice", **labels, **topology)
