"""The words beside the numbers of the pages, and what they mean, for the help. Pure."""

from __future__ import annotations

WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("no step for", "It runs, and its last step ended many step times ago."),
        ("for 3m05s", "Behind a warning: since when it is so, or tpusmi has seen it."),
        ("for 40s", "Above a graph: it has no older values."),
    ),
    "device": (
        ("duty cycle", "Share of time the chip was busy."),
        ("limit", "How much of the HBM programs may use."),
        ("reserved", "What the runtime keeps for itself."),
        ("largest free", "The largest block that could still be allocated."),
        ("fragmented", "Share of the free memory that is not in that block."),
        ("unattributed", "In use, and in no live array: programs, temporaries."),
        ("allocations", "Blocks of memory that are in use."),
        ("HLO queue", "Programs waiting to run."),
        ("HLO p95", "95 % of the programs take no longer than this; p50 is the median."),
        ("throttled", "How far the chip slows itself down."),
        ("step p95", "95th percentile of the time between the ends of steps."),
        ("model FLOPs", "FLOPs per second of the whole job, as it counts them."),
        ("nominal", "What a device or chip of this kind has or could do at most."),
        ("H T P U", "Health of a link: healthy, transient or persistent faults, unusable."),
        ("FLOP/byte", "Intensity: FLOPs for each byte moved to or from HBM."),
        ("ridge", "The intensity at which memory stops being the limit."),
        ("the roof", "The most FLOP/s that the chip can reach at this intensity."),
    ),
    "memory": (
        ("live", "Bytes in live arrays, from the newest memory profile."),
        ("unattributed", "In use, and in no live array: programs, temporaries."),
        ("largest", "The largest block that could still be allocated."),
        ("fragmented", "Share of the free memory that is not in that block."),
        ("reserved", "What the runtime keeps for itself."),
        ("mark", "A moment that CHANGE compares with; b sets it."),
        ("new new?", "A line that was not there at the mark, or too small to be listed."),
        ("gone", "A line that was there at the mark, and holds nothing now."),
    ),
    "job": (
        ("step time", "From the end of one step to the end of the next."),
        ("p50 p95", "Half, and 95 %, of the steps took no longer than this."),
        ("step body", "The part of it that is inside `with tpusmi.step():`."),
        ("MFU", "Model FLOP/s as a share of the peak of its devices."),
        ("maybe slow", "The likeliest reason why it could be faster."),
        ("phase", "When it compiled, ran or was idle: letters, see the marks."),
        ("compiled", "XLA programs compiled, and for how long."),
        ("agent", "What tpusmi's thread in the job costs, and its newest sample."),
    ),
    "slice": (
        ("stopped reporting", "Its agent has said nothing for three of its periods."),
        ("not heard of", "Processes of the job whose agents have said nothing yet, or have none."),
        ("240 ms*", "The slowest step of all hosts."),
    ),
    "topology": (
        ("72*", "A straggler: the other hosts wait for it."),
        ("72!", "A warning is about the chip, its device or its host."),
        ("x", "A host that has stopped reporting."),
        ("0 1 2", "Above and beside a plane: coordinates in the slice."),
        ("at worst", "Chips do not say which of their links is bad: it may be another one."),
        ("┿ ╂", "A link between two hosts; at the edge one to the other end of the axis."),
        ("╱ ·", "A link to the same place in the next plane; `·`: of unknown health."),
    ),
    "profile": (
        ("captured", "How long ago the trace ended. The page shows that moment alone."),
        ("duty cycle", "Share of the captured time with operations running: no infeed or outfeed."),
        ("idle", "Share of it with nothing running."),
        ("MXU", "FLOPs done over the FLOPs possible in the captured time."),
        ("steps", "Whole steps only: those that the ends of the trace cut off are left out."),
        ("self", "Time of an operation without that of the operations inside it."),
        ("input-bound", "Share of the step time that waits for input."),
    ),
}
"""By page, in the order of the page."""
