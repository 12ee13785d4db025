"""The agent's segment in shared memory: made, checked, and made again when it is gone; with the
facts and samples that are written into it.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tpusmi import memprofile
from tpusmi.agent import output, own_process
from tpusmi.wire import identity, places
from tpusmi.wire.layout import FACTS_JSON, PROCESS_FIELDS, Identity
from tpusmi.wire.writer import SegmentWriter

CHECK_S = 2.0
"""Time between two checks that the file is still there, which take a few system calls."""
RETRY_S, RETRY_MOST_S = 10.0, 160.0
"""Time between two tries where there is no room for the file: the pause doubles."""
FACTS_LEAST_S = 5.0
"""Time between two rewritings of the facts because of a change."""
RECOMPILED_MOST = 3
NAN = float("nan")

Values = tuple[float | None, ...]
"""Fields of one device, in the order of the layout; None is unknown."""


class Segment:
    """The segment of this process, whatever becomes of its file. Nothing here raises OSError.

    The end of a login, a cleaner, or a job's own loop over its descriptors may take the file away.
    The last values are kept, so that the next file begins with them.
    """

    def __init__(self, override: str | None, mode: int) -> None:
        self.facts: dict[str, Any] = {}
        """The facts of the job, written into each file, and again when they change."""
        self._facts_at_s = 0.0
        self.trouble: str | None = None
        """Why there is no segment, or none that can be written; None while all is well."""
        self._override = override
        self._mode = mode
        self._who: Identity | None = None
        self._root = _root()
        self._writer: SegmentWriter | None = None
        self._devices: int | None = None
        """How many devices it has room for; None before open()."""
        self._values: list[float] | None = None
        self._profile: tuple[int, bytes, float] | None = None
        self._looked_at_s = 0.0
        self._pause_s = CHECK_S
        self._has_reported = False

    @property
    def was_opened(self) -> bool:
        """True after open()."""
        return self._devices is not None

    @property
    def path(self) -> str | None:
        """Its file; None before open(), and after the end."""
        writer = self._writer
        return None if writer is None else writer.path

    @property
    def who(self) -> Identity | None:
        """The process that its header names; None before it is first made."""
        return self._who

    def open(self, devices: int) -> None:
        """Make a segment for this many devices, in place of the one before, with the facts."""
        self._devices, self._values, self._profile = devices, None, None
        self._make()

    def keep(self, now_s: float) -> bool:
        """Make it again where it is gone or had no room. False while nothing can be written."""
        # A clock that was set back, as that of a restored process, does not stop this.
        is_due = not 0.0 <= now_s - self._looked_at_s < self._pause_s
        if is_due and self.was_opened:
            self._looked_at_s = now_s
            if self.trouble is not None or not self._is_in_place():
                self._make()
        return self.trouble is None

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next look is due, and never more than a moment."""
        return min(max(0.0, self._looked_at_s + self._pause_s - now_s), CHECK_S)

    def hurry(self) -> None:
        """Where there was no room, try again at the next opportunity."""
        if self.trouble is not None:
            self._pause_s = 0.0

    def append(self, values: list[float]) -> None:
        """Write one sample."""
        self._values = values
        self._write(lambda writer: writer.append(values))

    def warn(self, code: str, message: str) -> None:
        """Add a warning to the facts, and write them."""
        self._add_warning(code, message)
        self._write(self._write_facts)

    def publish(self, name: str, value: Any) -> None:
        """Set one fact, and write them."""
        self.facts[name] = value
        self._write(self._write_facts)

    def note_changes(
        self, errors: list[str | None], compiled: Iterable[str], notes: Mapping[str, str]
    ) -> None:
        """Write the facts again when a device begins to fail, a function is compiled repeatedly, or
        there is a new warning among the notes, which are sentences by code.
        """
        is_written = self._writer is not None and self.trouble is None
        if not is_written or time.monotonic() - self._facts_at_s < FACTS_LEAST_S:
            return
        # All of them, then the first: most_common(n) imports a module, which cannot be found after
        # the job has changed its root.
        most = Counter(compiled).most_common()[:RECOMPILED_MOST]
        published = {warning["code"] for warning in self.facts.get("warnings", ())}
        new = [code for code in tuple(notes) if code not in published]
        for code in new:
            self._add_warning(code, notes[code])
        now = {"errors": errors, "recompiled": [name for name, count in most if count > 1]}
        if new or any(self.facts.get(name) != value for name, value in now.items()):
            self.facts.update(now)
            self._write(self._write_facts)

    def write_profile(self, kind: int, payload: bytes, at_s: float) -> bool:
        """True when the memory profile was written; False when it does not fit."""
        writer = self._writer
        if writer is not None and len(payload) > writer.profile.capacity:
            return False
        self._profile = kind, payload, at_s
        self._write(lambda writer: writer.profile.write(kind, payload, at_s))
        return True

    def end(self, keep: bool, values: list[float] | None = None) -> None:
        """Close it for good: removed, or kept as a black box, with those values as the last."""
        writer, self._writer, self._devices = self._writer, None, None
        if writer is None:
            return
        if not keep:
            writer.remove()
            return
        try:
            if values is not None and self.trouble is None:
                writer.append(values)
        except OSError:
            pass  # the last sample but one will have to do
        writer.close()
        if self._who is not None:
            output.remove_old(self._who, os.path.dirname(writer.path))

    def _add_warning(self, code: str, message: str) -> None:
        self.facts.setdefault("warnings", []).append({"code": code, "message": message})

    def _write_facts(self, writer: SegmentWriter) -> None:
        self._facts_at_s = time.monotonic()
        bare = {**self.facts, "argv": [], "errors": []}
        for facts in (self.facts, bare):  # however long they are, the devices are published
            text = json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace")
            if writer.facts.write(FACTS_JSON, text, self._facts_at_s):
                break

    def _write(self, write: Callable[[SegmentWriter], object]) -> None:
        if self._writer is None or self.trouble is not None:
            return
        try:
            write(self._writer)
        except OSError:  # the job closed its descriptor, or its disk is gone
            self._make()

    def _make(self) -> None:
        """Make one with the last values, in the best place, and remove the one before."""
        try:
            who = identity.me()
            writer = output.create(who, self._devices or 0, self._override, self._mode, self._fill)
        except OSError as error:
            self._do_without(str(error))
            return
        before, self._writer, self._who = self._writer, writer, who
        self.trouble, self._pause_s, self._looked_at_s = None, CHECK_S, time.monotonic()
        directory = os.path.dirname(writer.path)
        if before is not None:
            before.remove()
        if before is None or os.path.dirname(before.path) != directory:
            output.remove_old(who, directory)

    def _fill(self, writer: SegmentWriter) -> None:
        self._write_facts(writer)
        if self._profile is not None:
            writer.profile.write(*self._profile)
        if self._values is not None:
            writer.append(self._values)

    def _do_without(self, reason: str) -> None:
        """Wait longer each time. A file that is still there stays locked, since this process lives,
        and is not written to: viewers call it silent.
        """
        is_first, self.trouble = self.trouble is None, reason
        self._pause_s = RETRY_S if is_first else min(max(RETRY_S, 2 * self._pause_s), RETRY_MOST_S)
        self._looked_at_s = time.monotonic()
        if self._writer is not None and not self._writer.is_in_place():
            self._writer.remove()
            self._writer = None
        if not self._has_reported:
            self._has_reported = True
            own_process.say(f"agent switched off: {reason} (it tries again later)")

    def _is_in_place(self) -> bool:
        """False also when the directory now belongs to another user, or this is another process, as
        after a restore from a checkpoint.
        """
        writer, who = self._writer, self._who
        if _root() != self._root:
            return True  # after a chroot() no path can be checked
        if writer is None or who is None or not writer.is_in_place():
            return False
        pid = os.getpid()
        # The first thread started with the process, and costs less: nothing is summed over threads.
        ticks = identity.start_ticks(f"/proc/{pid}/task", pid)
        if (pid, ticks or who.start_ticks) != (who.pid, who.start_ticks):
            return False
        directory = os.path.dirname(writer.path)
        return self._override is not None or places.is_private(directory, who.uid)


def doubles(
    now_s: float, process: Mapping[str, float | None], devices: Iterable[Values]
) -> list[float]:
    """A slot's doubles: the process's fields by name, then each device's; NaN is unknown."""
    wall_s = time.time() - (time.monotonic() - now_s)  # the sample may be of an earlier moment
    values = [now_s, wall_s, *(process.get(name) for name in PROCESS_FIELDS)]
    for device in devices:
        values += device
    return [NAN if value is None else float(value) for value in values]


def live_values(totals: memprofile.Totals, device_id: int | None, devices: int) -> Values:
    """Live bytes and buffers of a device: one that the profile does not mention has none."""
    if None in totals.devices:
        # Some buffers name no device. With one device they are its own; with more it is unknown.
        usages = totals.devices.values()
        whole = (sum(u.bytes for u in usages), sum(u.buffers for u in usages))
        return (None, None) if devices > 1 else whole
    usage = totals.devices.get(device_id)
    return (usage.bytes, usage.buffers) if usage else (0, 0)


def _root() -> tuple[int, int]:
    root = os.stat("/")
    return root.st_dev, root.st_ino
