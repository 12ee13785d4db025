"""`tpusmi.snapshot()`, `tpusmi.watch()` and `tpusmi.holders()`: this host, or a simulated one."""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import ExitStack
from operator import index

from tpusmi import model
from tpusmi.api.objects import Device, Process, Snapshot
from tpusmi.collect import (
    LOOK_DEADLINE_S,
    Collector,
    look,
    open_collector,
    this_host,
)
from tpusmi.source_runner import ONCE_DEADLINE_S
from tpusmi.text import counted

DEADLINE_MOST_S, INTERVAL_LEAST_S, INTERVAL_MOST_S = 3600.0, 0.1, 86400.0
SIMULATED_WITHIN_S = 10.0
"""The longest that a snapshot waits for the first numbers of a simulated host that has started."""
AGAIN_S = 0.1


def snapshot(
    deadline_s: float = ONCE_DEADLINE_S, *, simulate: str | os.PathLike[str] | None = None
) -> Snapshot:
    """What is on this host now, as `tpusmi --json` shows it: a `Snapshot`.

    It has `devices`, `processes`, `chips`, `host`, `holding` (is the TPU free?), `warnings` and
    `sources`, with the names of the JSON (assets/tpusmi.schema.json, docs/json.md) as attributes:
    `device.hbm_used_bytes`, `device.process`, `process.step_time_s.p95`, `process.devices`,
    `warning.advice`. Unknown is None, never 0. `devices_of()`, `process()`, `total()` and `mean()`
    look things up and add them up; `to_dict()` is the object of the JSON, `to_pandas()` a table.

    Sources that do not answer within the deadline are listed as failed in `sources`; it raises
    nothing for them. `simulate` is a type of machine (`v5e-8`), whose simulated host is started,
    read once it has numbers, and ended; or the directory that `tpusmi simulate` printed. Raises
    TypeError and ValueError for wrong arguments, and RuntimeError when a simulated host cannot be
    started.

    >>> s = tpusmi.snapshot(simulate="v5e-8")
    >>> for device in s.devices[:2]:
    ...     print(device.name, device.hbm_used_bytes, device.duty_cycle_percent)
    tpu:0 ...
    tpu:1 ...
    >>> f"{s.total('hbm_used_bytes') / 2**30:.0f} GiB in {len(s.devices)} devices"
    '... GiB in 8 devices'
    """
    if isinstance(deadline_s, (str, os.PathLike)):
        hint = f"a simulated host is snapshot(simulate={str(deadline_s)!r})"
        raise TypeError(f"deadline_s must be a number of seconds, not {deadline_s!r}; {hint}")
    seconds = _seconds("deadline_s", deadline_s, 0.0, DEADLINE_MOST_S)
    with ExitStack() as opened:
        return _view(_open(simulate, opened).read(seconds))


def watch(
    interval_s: float = 1.0,
    *,
    count: int | None = None,
    simulate: str | os.PathLike[str] | None = None,
) -> Snapshots:
    """Snapshots of this host, one every `interval_s` seconds (0.1 to 86400), the first at once.

    An iterator that ends after `count` of them, or when it is closed: by `close()`, by the end of a
    `with` block, or when no variable holds it anymore. The sources stay open between two snapshots.
    A snapshot that is due while you work on the last one is not made up for. `simulate` and errors:
    as for `snapshot()`; the simulated host runs until the iterator is closed.

    >>> for s in tpusmi.watch(0.1, count=2, simulate="v5e-8"):
    ...     print("steps", s.processes[0].steps, s.total("hbm_used_bytes"))
    steps ...
    steps ...
    >>> with tpusmi.watch(0.1, simulate="v5e-8") as snapshots:
    ...     first, second = next(snapshots), next(snapshots)
    >>> first.host.time < second.host.time
    True
    """
    return Snapshots(interval_s, count, simulate)


def holders(deadline_s: float = LOOK_DEADLINE_S) -> tuple[Process, ...]:
    """The processes that hold a TPU of this host, each with a verdict: `verdict`, `stale`,
    `stale_reason`.

    They also have what `snapshot()` leaves out because it takes longer: `cpu_percent`,
    `rss_bytes`, `cwd`, `terminal`. Empty when no process was seen to hold one, which does not prove
    that it is free: as an ordinary user also check `snapshot().holding.not_inspected`, the number
    of processes that could not be inspected. Raises TypeError and ValueError for a wrong deadline.

    >>> for process in tpusmi.holders():
    ...     print("pid", process.pid, process.verdict, process.stale_reason)
    pid ... not_stale None
    """
    seconds = _seconds("deadline_s", deadline_s, 0.0, DEADLINE_MOST_S)
    seen = _view(look(this_host(), deadline_s=seconds))
    return tuple(p for p in seen.processes if p.holds and p.state != "dead")


class Snapshots:
    """The result of `watch()`: an iterator of snapshots, whose sources stay open until `close()`.

    >>> snapshots = tpusmi.watch(5)
    >>> snapshots
    <tpusmi.watch every 5 s, 0 snapshots so far>
    >>> snapshots.close()
    """

    def __init__(
        self, interval_s: float, count: int | None, simulate: str | os.PathLike[str] | None
    ) -> None:
        self._interval_s = _seconds("interval_s", interval_s, INTERVAL_LEAST_S, INTERVAL_MOST_S)
        self._left = _count(count)
        self._taken = 0
        self._due_s = 0.0
        self._end = threading.Event()
        opened = ExitStack()
        # Also when no variable holds this anymore, and at the end of the interpreter.
        self._finalize = weakref.finalize(self, _close, opened, os.getpid())
        self._sources = _open(simulate, opened)

    def __iter__(self) -> Snapshots:
        return self

    def __next__(self) -> Snapshot:
        """The next snapshot, after what is left of the interval."""
        if self._taken == self._left:
            self.close()
        wait_s = max(0.0, self._due_s - time.monotonic()) if self._taken else 0.0
        if self._end.wait(wait_s):
            raise StopIteration
        self._due_s = max(self._due_s, time.monotonic()) + self._interval_s
        self._taken += 1
        return _view(self._sources.read(ONCE_DEADLINE_S))

    def close(self) -> None:
        """Close the sources, and end the simulated host if there is one. The iterator ends, also
        while another thread waits for it.
        """
        self._end.set()
        self._finalize()

    def __enter__(self) -> Snapshots:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._end.is_set() else f"every {self._interval_s:g} s"
        return f"<tpusmi.watch {state}, {counted(self._taken, 'snapshot')} so far>"


def _close(opened: ExitStack, pid: int) -> None:
    """Close what that process has opened: in its forked child, that is the parent's."""
    if os.getpid() == pid:
        opened.close()


class _Sources:
    """The sources of a host, and whether it is a simulated one that has just been started."""

    def __init__(self, collector: Collector, is_new: bool) -> None:
        self._collector, self._is_new = collector, is_new

    def read(self, deadline_s: float) -> model.Snapshot:
        """One look; of a host that has just been started, the first that has numbers."""
        until_s = time.monotonic() + SIMULATED_WITHIN_S
        seen = self._collector.read_once(deadline_s)
        while self._is_new and not _has_numbers(seen) and time.monotonic() < until_s:
            time.sleep(AGAIN_S)
            seen = self._collector.read_once(deadline_s)
        self._is_new = False
        return seen


def _open(simulate: str | os.PathLike[str] | None, opened: ExitStack) -> _Sources:
    """The sources of a host, which end with `opened`."""
    host = this_host() if simulate is None else _simulated(simulate, opened)
    collector = open_collector(host)
    opened.callback(collector.stop)
    return _Sources(collector, is_new=simulate is not None and not os.path.isdir(simulate))


def _simulated(simulate: str | os.PathLike[str], opened: ExitStack) -> model.Host:
    """A host of that type, which ends with `opened`, or the one in that directory."""
    from tpusmi.simulate.host import StartError, opened_host

    if not isinstance(simulate, (str, os.PathLike)):
        expected = 'simulate must be a type of machine, as in simulate="v5e-8", or a directory'
        raise TypeError(f"{expected}, not {simulate!r}")
    try:
        return opened.enter_context(opened_host(os.fspath(simulate), agent=True))
    except StartError as error:
        raise RuntimeError(str(error)) from error


def _has_numbers(s: model.Snapshot) -> bool:
    """Whether the memory of each device is known, and that of the job's steps."""
    devices = all(s.value("hbm_used_bytes", d.key) is not None for d in s.devices)
    jobs = [p for p in s.processes if p.interval_s is not None and p.is_living]
    return bool(s.devices) and devices and all(s.value("steps", p.key) is not None for p in jobs)


def _view(s: model.Snapshot) -> Snapshot:
    """The objects of a snapshot, each of which knows those that it belongs to."""
    whole = Snapshot(s.to_dict())
    whole._model = s
    devices = {id(d): view for d, view in zip(s.devices, whole.devices, strict=True)}
    devices.update((id(d), Device(Device._keys.value(s, d))) for d in s.dead_devices)
    processes = dict(zip((p.key for p in s.processes), whole.processes, strict=True))
    for key, process in processes.items():
        process._values["devices"] = tuple(devices[id(d)] for d in s.devices_of(key))
        last = (devices[id(d)] for d in s.dead_devices if d.key.process == key)
        process._values["last_devices"] = tuple(last)
    for d in (*s.devices, *s.dead_devices):
        owners = tuple(processes[key] for key in d.owners if key in processes)
        devices[id(d)]._values["processes"] = owners
        devices[id(d)]._values["process"] = owners[0] if owners else None
    of_chips: dict[int | None, list[Device]] = {}
    for device in whole.devices:
        of_chips.setdefault(device.chip, []).append(device)
    for chip in whole.chips:
        chip._values["devices"] = tuple(of_chips.get(chip.index, ()))
    return whole


def _seconds(name: str, value: float, least: float, most: float) -> float:
    """The number of seconds. Raises TypeError or ValueError with what was expected."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least:g} to {most:g} seconds, not {value!r}")
    return float(value)


def _count(count: int | None) -> int | None:
    if count is None:
        return None
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"count must be a whole number or None, not {count!r}")
    if count < 0:
        raise ValueError(f"count must not be negative, not {count}")
    return index(count)
