"""What only hardware tells, simulated: how busy the MXUs are, links, throttling.

Standard library only, and little of it: see workload.py.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.simulate.running import Running

TRAY = 1
LINKS_FLAT, LINKS_CUBIC = 4, 6


def mxu_percent(running: Running) -> list[float]:
    """Of every device, in local order; empty while no program is loaded."""
    if not running.is_loaded:
        return []
    t_s = running.job_time_s
    devices = running.description["devices"]
    if not running.description["processes"]:
        return [0.0] * len(devices)
    return [100 * running.workload.mxu(t_s, device["id"]) for device in devices]


def links(running: Running) -> list[tuple[int, str, int]]:
    """Chip, name and health of every link."""
    chips = range(len(running.description["chips"]))
    each = LINKS_CUBIC if running.description["cubic"] else LINKS_FLAT
    bad = int(running.faults.get("bad-link", "0"))
    ill = (chips[-1], 0)
    return [
        (chip, f"tray{TRAY}.chip{chip}.ici{link}.int", bad if (chip, link) == ill else 0)
        for chip in chips
        for link in range(each)
    ]


def throttle_scores(running: Running) -> list[int]:
    """Of every chip, 0 to 10."""
    score = int(running.faults.get("throttle", "0"))
    return [0 if chip else score for chip in range(len(running.description["chips"]))]
