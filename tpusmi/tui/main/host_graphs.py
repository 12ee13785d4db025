"""Graphs of the machine itself beside those of its devices: CPUs with the load, and memory."""

from __future__ import annotations

from tpusmi.model import HOST_CPU, HOST_KEY, HOST_LOAD, HOST_MEMORY, Snapshot
from tpusmi.report import words
from tpusmi.tui.draw import plot
from tpusmi.tui.scene import Scene

ROOMY = 6
"""Lines of a graph, at least, where those of the host join them."""
Slots = list[float | None]


def host_curves(
    scene: Scene, s: Snapshot, span_s: int, count: int, beside: int
) -> list[plot.Curve]:
    """The graphs of the host beside so many others: as many as make an even number with them. None
    where nothing of the host is in the history.
    """

    def of(name: str) -> Slots:
        return scene.graphs.of((HOST_KEY,), name, s.at_s, span_s, count)

    cpu, load, memory = of(HOST_CPU), of(HOST_LOAD), of(HOST_MEMORY)
    if not any(v is not None for v in (*load, *memory)):
        return []
    curves = [_cpu(s, cpu, load), _memory(s, memory), _load(s, load)]
    return curves[: 3 if beside % 2 else 2]


def _cpu(s: Snapshot, cpu: Slots, load: Slots) -> plot.Curve:
    """The CPUs, with the load as a line: 100 % is as many tasks as CPUs."""
    cpus = s.host.cpus
    newest = next((v for v in reversed(cpu) if v is not None), None)
    line = [None if v is None else min(100.0, 100 * v / cpus) for v in load] if cpus else []
    remarks = [f"load {_load_text(s)}, the line"] if s.host.load_averages and cpus else []
    now = words.percent(newest)
    return plot.Curve("host CPU", now, cpu, 100.0, "100 %", line=line, remarks=remarks)


def _memory(s: Snapshot, memory: Slots) -> plot.Curve:
    total, free = s.host.memory_total_bytes, s.host.memory_available_bytes
    used = None if total is None or free is None else total - free
    top = float(total or 0) or max((v for v in memory if v is not None), default=1.0)
    return plot.Curve("host RAM", words.size(used), memory, top, words.size(top))


def _load(s: Snapshot, load: Slots) -> plot.Curve:
    top = plot.round_top(max((v for v in load if v is not None), default=1.0))
    return plot.Curve("host load", _load_text(s), load, top, f"{top:g}")


def _load_text(s: Snapshot) -> str:
    if s.host.load_averages is None:
        return words.UNKNOWN
    of = f" of {s.host.cpus} CPUs" if s.host.cpus else ""
    return f"{s.host.load_averages[0]:.1f}{of}"
