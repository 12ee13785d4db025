"""Metrics that only libtpu's SDK has (MXU utilization, links, throttling), read by a child process.

The child may hang, crash and print anything; the only effect is a sentence in the outcome.
"""

from __future__ import annotations

import atexit
import itertools
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from tpusmi.interpreter import why_unknown
from tpusmi.model import ABSENT, FAILED, LIBTPU_SDK, OK, Host, Outcome, Status
from tpusmi.text import clean, noun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.child_process import ChildProcess
    from tpusmi.sources.libtpu.formats import Parsed

WAIT_S = 1.3
"""A read waits no longer than this."""
FIRST_ANSWER_S = 10.0
"""The time for the first answer: loading libtpu takes two seconds from a cold disk."""
ANSWER_S = 5.0
RETRY_MOST_S = 60.0
STILLBORN_MOST = 3
"""So many children in a row that never answered: this libtpu does not work in this Python."""
STILLBORN_RETRY_S = 600.0
STABLE_S = 60.0
"""A child that lived this long has made up for those before it."""
NOTES_MOST = 8
MESSAGE_MOST = 200
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
_LOG_LINE = r"[IWEF][0-9]{4} [0-9:. ]+\S+:[0-9]+\] "
_NOISE = r"\s*(?:Could not open|===|\*\*\*|@ |PC: |\S+\.cc:[0-9]+$|WARNING: Logging before)|\s*$"

NOT_INSTALLED = "libtpu is not installed here: MXU utilization needs it (pip install libtpu)"


class LibtpuSdk:
    """libtpu's SDK as a source. Its child persists between reads; close() ends it."""

    name = LIBTPU_SDK

    def __init__(
        self,
        host: Host,
        has_tpu: Callable[[], bool],
        period_s: float = 1.0,
        lacking: Callable[[float], Container[str]] = lambda wait_s: (),
    ) -> None:
        """`lacking` names the metrics that a server should report and none does; it waits that many
        seconds at most.
        """
        self.period_s = period_s
        self._host = host
        self._has_tpu = has_tpu
        self._lacking = lacking
        self._child: ChildProcess | None = None
        self._turn = threading.Lock()
        self._is_closed = False
        self._started_at_s = self._retry_at_s = -math.inf
        self._asked_at_s: float | None = None
        self._due_at_s: dict[str, float] = {}
        self._has_answered = False
        self._failures = self._stillborn = 0
        self._failure = self._reason = ""
        self._version: str | None = None
        self._supported: frozenset[str] = frozenset()
        self._newest: dict[str, tuple[Parsed, float]] = {}
        """The newest answer for each metric, and until when it may be believed."""
        self._notes: tuple[str, ...] = ()

    def read(self, now_s: float) -> Outcome:
        """The newest readings, links and latencies. Asks the child, and waits for it a little."""
        began_s = time.monotonic()
        if not self._turn.acquire(blocking=False):
            return self._outcome(now_s, began_s)
        try:
            if absent := self._absent():
                return Outcome(self.name, ABSENT, absent, time.monotonic() - began_s)
            if self._child is None and now_s >= self._retry_at_s:
                self._start(now_s)
            if self._child is not None:
                self._converse(self._child, now_s, began_s, self._lacking(0.0))
            if self._child is not None and self._asked_at_s is None:
                # While the SDK was loaded, the servers have shown which metrics they lack.
                left_s = max(0.0, began_s + WAIT_S - time.monotonic())
                self._converse(self._child, now_s, began_s, self._lacking(left_s))
            return self._outcome(now_s, began_s)
        finally:
            if self._is_closed:
                self._drop()
            self._turn.release()

    def close(self) -> None:
        """End the child, now."""
        self._is_closed = True
        atexit.unregister(self.close)
        if (child := self._child) is not None:
            child.end()  # a read that waits for it notices
        if self._turn.acquire(blocking=False):
            self._drop()
            self._turn.release()

    def _absent(self) -> str:
        """Why there is nothing to ask; empty when there is."""
        if self._is_closed:
            return "closed"
        if self._child is not None or self._host.sdk_command:
            return ""
        if self._host.sdk_command == () or self._host.root != "/":
            return "libtpu's SDK is not asked on this host"
        if reason := why_unknown():
            return f"libtpu's SDK is not asked: {reason}"
        if not self._has_tpu():
            return "no TPU here"
        return "" if _is_installed() else NOT_INSTALLED

    def _start(self, now_s: float) -> None:
        from tpusmi.sources.child_process import ChildProcess

        self._started_at_s = now_s
        self._asked_at_s, self._has_answered = None, False
        self._due_at_s.clear()
        try:
            self._child = ChildProcess(self._host.sdk_command or (sys.executable, _CHILD))
        except OSError as error:
            self._fail(f"could not be started: {error.strerror}", now_s)
            return
        atexit.register(self.close)

    def _converse(
        self, child: ChildProcess, now_s: float, began_s: float, lacking: Container[str]
    ) -> None:
        """Ask for what is due, unless an answer is still owed, and wait for one until WAIT_S."""
        if self._asked_at_s is None:
            due = [*self._due(now_s, lacking)]
            if not due:
                return
            import json

            child.ask(json.dumps(due).encode() + b"\n")
            self._asked_at_s = now_s
        line = child.listen(began_s + WAIT_S)
        at_s = now_s + time.monotonic() - began_s
        limit_s = ANSWER_S if self._has_answered else FIRST_ANSWER_S
        if line is not None:
            self._take(line, child, at_s)
        elif child.broken:
            self._fail(child.broken, at_s, child.talk())
        elif at_s - self._asked_at_s > limit_s:
            self._fail(f"has not answered for {limit_s:.0f} s", at_s, child.talk())

    def _due(self, now_s: float, lacking: Container[str]) -> Iterator[str]:
        """The SDK's names of the metrics that are due, marked as asked."""
        from tpusmi.sources.libtpu.names import SDK_BESIDES, SDK_ONLY

        for name in (*SDK_ONLY, *(n for n in SDK_BESIDES if n.metric in lacking)):
            if now_s >= self._due_at_s.get(name.metric, -math.inf):
                # A little early is better than a period late.
                self._due_at_s[name.metric] = now_s + name.every_s - self.period_s / 2
                supported = [n for n in name.sdk if n in self._supported]
                yield from supported[:1] or name.sdk

    def _take(self, line: bytes, child: ChildProcess, at_s: float) -> None:
        answer = _decoded(line)
        if answer is None:
            self._fail("sent an invalid reply", at_s, child.talk())
            return
        errors = _mapping(answer.get("errors"))
        for cause in ("import", "sdk"):
            if cause in errors:
                self._fail(f"cannot be used: {clean(str(errors[cause]), MESSAGE_MOST)}", at_s)
                return
        self._asked_at_s, self._has_answered = None, True
        self._failure, self._stillborn = "", 0
        if at_s - self._started_at_s >= STABLE_S:
            self._failures = 0
        version = answer.get("version")
        self._version = clean(version, 64) if isinstance(version, str) else None
        supported = answer.get("supported")
        if isinstance(supported, list):
            self._supported = frozenset(n for n in supported if isinstance(n, str))
        self._reason = _why_empty(child.talk())
        self._learn(_mapping(answer.get("metrics")), errors, at_s)

    def _learn(self, metrics: Mapping[str, Any], errors: Mapping[str, Any], at_s: float) -> None:
        from tpusmi.sources.libtpu.formats import parse
        from tpusmi.sources.libtpu.names import SDK_BESIDES, SDK_ONLY, SELDOM_S

        first = itertools.islice(errors.items(), NOTES_MOST)
        notes = [f"{clean(n, 64)}: {clean(str(e), MESSAGE_MOST)}" for n, e in first]
        for name in (*SDK_ONLY, *SDK_BESIDES):
            printed = next((n for n in name.sdk if n in metrics), None)
            if printed is None:
                continue
            parsed = parse(name, _mapping(metrics[printed]).get("data"), at_s)
            self._newest[name.metric] = parsed, at_s + name.fresh_s
            if not parsed.has_values:
                self._due_at_s[name.metric] = at_s + min(name.every_s, SELDOM_S) - self.period_s / 2
            if parsed.senseless:
                make = noun(parsed.senseless, "makes", "make")
                notes.append(f"{printed}: {parsed.senseless} of its values {make} no sense")
        self._notes = tuple(notes[:NOTES_MOST])

    def _fail(self, how: str, at_s: float, talk: list[str] | None = None) -> None:
        """Drop the child, and wait the longer before starting another the more have failed."""
        self._drop()
        words = _last_words(talk or [])
        self._failure = f"libtpu's SDK {how}" + (f": {words}" if words else "")
        was_stable = self._has_answered and at_s - self._started_at_s >= STABLE_S
        self._failures = 1 if was_stable else self._failures + 1
        self._stillborn = 0 if self._has_answered else self._stillborn + 1
        self._retry_at_s = at_s + min(RETRY_MOST_S, 2.0 ** min(self._failures - 1, 10))
        if self._stillborn >= STILLBORN_MOST:
            self._retry_at_s = at_s + STILLBORN_RETRY_S
            self._failure += f" ({self._stillborn} times; tried again in 10 minutes)"

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def _outcome(self, now_s: float, began_s: float) -> Outcome:
        newest = [*self._newest.values()]
        status, message = self._status()
        return Outcome(
            self.name,
            status,
            message,
            time.monotonic() - began_s,
            readings=tuple(r for parsed, _ in newest for r in parsed.readings),
            notes=self._notes,
            latencies=tuple(x for parsed, _ in newest for x in parsed.latencies),
            # A link does not say how old it is.
            links=tuple(x for parsed, until_s in newest if now_s <= until_s for x in parsed.links),
            libtpu_version=self._version,
        )

    def _status(self) -> tuple[Status, str]:
        if self._failure:
            return FAILED, self._failure
        if not self._has_answered:
            return ABSENT, "libtpu's SDK is starting"
        version = f"libtpu {self._version or 'of unknown version'}"
        if any(parsed.has_values for parsed, _ in self._newest.values()):
            return OK, version
        return ABSENT, f"{version} has no values: {self._reason or 'no program is loaded'}"


def _is_installed() -> bool:
    """Whether our interpreter, and so the child, can find libtpu. Does not import it."""
    import importlib.util

    try:
        return importlib.util.find_spec("libtpu") is not None
    except (ImportError, ValueError):
        return False


def _decoded(line: bytes) -> Mapping[str, Any] | None:
    import json

    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _why_empty(talk: list[str]) -> str:
    """Why a request of libtpu's own failed, by what it printed; empty when it printed nothing."""
    for line in reversed(talk):
        _, has_cause, cause = line.partition("Failed to get metric values: ")
        if has_cause:
            cause = cause.rpartition("last error: ")[2]
            return clean(cause.removeprefix("UNKNOWN: "), MESSAGE_MOST)
    return ""


def _last_words(talk: list[str]) -> str:
    """The line that best says why the child ended: a fatal one, else the last that is not noise."""
    lines = [line[:1024] for line in talk if not re.match(_NOISE, line[:1024])]
    fatal = [line for line in lines if re.match(r"F[0-9]{4} ", line)]
    line = (fatal or lines or [""])[-1]
    prefix = re.match(_LOG_LINE, line)
    return clean(line[prefix.end() :] if prefix else line, MESSAGE_MOST)
