"""The names of the classes of the Python API, and what `help()` says of each."""

from __future__ import annotations

HELD_AS = {
    "host": "Host",
    "dcn": "Distribution",
    "chips": "Chip",
    "ici_links": "Link",
    "devices": "Device",
    "last_devices": "Device",
    "hlo_execution_time_us": "HloExecutionTime",
    "provenance": "Provenance",
    "processes": "Process",
    "signs": "Sign",
    "memory_profile": "MemoryProfile",
    "sites": "Site",
    "step_time_s": "StepTime",
    "step_body_s": "StepBody",
    "sources": "Source",
    "servers": "Server",
    "cores": "Core",
    "holding": "Holding",
    "nodes": "Node",
    "lock_files": "LockFile",
    "slice": "Slice",
    "other_slices": "Slice",
    "hosts": "SliceHost",
    "SliceHost.devices": "SliceDevice",
    "warnings": "Notice",
}
"""The class of the objects under each key; first of a key of that class alone."""

RELATIONS = {
    "Device": {
        "process": ("Process | None", "The process of `pid`; None when no process owns it."),
        "processes": ("tuple[Process, ...]", "Every process that owns it: those of `pids`."),
    },
    "Process": {
        "devices": ("tuple[Device, ...]", "Its devices. In JSON: their local indexes."),
    },
    "Chip": {
        "devices": ("tuple[Device, ...]", "The devices on this chip."),
    },
}
"""Attributes that lead from one object to another: the type and the meaning of each."""

CLASS_DOCS = {
    "Snapshot": """Everything known about a host at one time: what `tpusmi --json` prints.

An attribute has the name of its key in the JSON, lists are tuples, and unknown is None, never 0.

>>> s = tpusmi.snapshot(simulate="v5e-8")
>>> s
<Snapshot of ... (simulated) at ...Z: 8 devices, 1 process>
>>> [d.hbm_used_bytes is not None for d in s.devices[:2]]
[True, True]
""",
    "Host": """The machine.

>>> f"{s.host.name}: {s.host.cpus} CPUs, kernel {s.host.kernel}"
'...: ... CPUs, kernel ...'
""",
    "Distribution": """How long something took on the data center network, in microseconds.

Each number is None when it is not known.

>>> [label for label, d in s.host.dcn.get("buffer_transfer_latency", {}).items() if d.p95]
[...]
""",
    "Chip": """A TPU package on the PCI bus, which has one or more devices.

>>> s.chips[0].generation, s.chips[0].devices[0] is s.devices[0]
('v5e', True)
""",
    "Link": """A link of a chip to other chips.

>>> s.chips[0].ici_links[0].health
0
""",
    "Device": """What JAX numbers: a core on v2 and v3, a chip on v4 to v6e, a chiplet on 7x.

Values that were measured for a whole chip are in `snapshot.chips[device.chip]`.

>>> device = s.devices[0]
>>> device
<Device tpu:0 TPU v5e, ... GiB, pid ...>
>>> f"{device.hbm_used_bytes / 2**30:.1f} GiB on {device.kind}"
'... GiB on TPU v5e'
>>> device.provenance["hbm_used_bytes"].source, device.process.phase
('agent', 'running')
""",
    "HloExecutionTime": """How long programs ran on a device since the job's start, by libtpu.

>>> s.devices[0].hlo_execution_time_us.p95 > 0
True
""",
    "Provenance": """The source of a value, and how long ago it was measured.

>>> s.devices[0].provenance["hbm_used_bytes"].stale
False
""",
    "Process": """A process that holds a TPU, or whose agent reports devices.

>>> process = s.processes[0]
>>> process
<Process ... running, 8 devices>
>>> len(process.devices), process.devices[0].process is process
(8, True)
>>> f"{process.steps_per_s:.1f} steps/s, p95 {process.step_time_s.p95:.2f} s"
'... steps/s, p95 ... s'
""",
    "Sign": """A fact that suggests that a holder is stale.

>>> [sign.code for sign in s.processes[0].signs]
[]
""",
    "MemoryProfile": """What holds the device memory of a process, from JAX's memory profile.

>>> profile = s.processes[0].memory_profile
>>> profile.sites[0].bytes >= profile.sites[1].bytes
True
""",
    "Site": """A line of code and what it holds on all devices together.

`bytes` is None where the backend does not know the size: of executables on a TPU.

>>> top = s.processes[0].memory_profile.sites[0]
>>> f"{top.function} {top.file}:{top.line} {top.count}"
'...'
""",
    "StepTime": """Time between the ends of steps, in seconds, over the last minute.

None before two steps ended.

>>> s.processes[0].step_time_s.p50 <= s.processes[0].step_time_s.p95
True
""",
    "StepBody": """Time inside of `with tpusmi.step():`, in seconds, over the last minute.

None where the loop calls `step()` without `with`.

>>> s.processes[0].step_body_s.p95 is None
True
""",
    "Source": """A place that tpusmi reads, and how it answered.

>>> [source.name for source in s.sources if source.status == "failed"]
[]
""",
    "Server": """A metrics server of libtpu.

>>> s.servers[0].status, s.servers[0].holds_tpu
('ok', True)
""",
    "Core": """What a core runs. `tpusmi --json --programs` asks for it, `snapshot()` does not.

>>> s.cores
()
""",
    "Holding": """Whether the TPU and each of its nodes are free, and what could not be seen.

>>> s.holding.status, s.holding.nodes[0].state
('held', 'held')
""",
    "Node": """A device node, and the processes that hold it.

>>> s.holding.nodes[0].pids == (s.processes[0].pid,)
True
""",
    "LockFile": """libtpu's lock file, which decides whether another process may start on the TPU.

>>> [lock.state for lock in s.holding.lock_files]
['locked']
""",
    "Slice": """All hosts of a job that has several, as the agents in it tell each other.

None in a snapshot of a machine without such a job.

>>> s.slice is None, s.other_slices
(True, ())
""",
    "SliceHost": """One process of the job, as its agent described it `age_s` seconds ago.

>>> [h.name for x in s.other_slices for h in x.hosts if h.state != "live"]
[]
""",
    "SliceDevice": """A device of another host of the job.

Its matrix unit is None: libtpu tells that to no agent.

>>> [d.hbm_used_bytes for x in s.other_slices for h in x.hosts for d in h.devices]
[]
""",
    "Notice": """Something to act on: what is wrong, since when, and what to do.

>>> for notice in s.warnings:
...     print(notice.message, notice.advice, notice.since_s)
""",
}
"""By class. In the examples, `s` is `tpusmi.snapshot(simulate="v5e-8")`."""
