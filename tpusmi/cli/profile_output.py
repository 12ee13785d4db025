"""How `tpusmi profile` prints: a page, a line per capture, the old command's lines, or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tpusmi.cli.looks import looks_of
from tpusmi.cli.options import HELP_COLUMNS, columns
from tpusmi.profiler.capture import ProfiledTarget
from tpusmi.profiler.which_job import SeveralJobsError
from tpusmi.text import clean
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.plain_objects import SCHEMA, to_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.report.profile.styled import Line


class ProfileOutput:
    """Writes answers on stdout."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._has_header = False

    def print_once(self, answers: Sequence[ProfiledTarget], old: Sequence[TraceProfile]) -> None:
        """One capture, whole; compared with the old one if there is one."""
        if self._options.json:
            value = self._object(answers)
            if old:
                before = [ProfiledTarget(p.capture.target, p) for p in old]
                value = {"schema": SCHEMA, "old": self._object(before), "new": value}
            self._write(_json(value, indent=2 if sys.stdout.isatty() else None))
        elif self._options.monitoring_level is not None:
            self._write_monitor(answers)
        else:
            lines = self._compared(answers, old) if old else self._page(answers)
            self._write_lines(lines)

    def print_round(self, answers: Sequence[ProfiledTarget]) -> None:
        """One capture of a loop: a line for each host."""
        if self._options.json:
            self._write(_json(self._object(answers), indent=None))
        elif self._options.monitoring_level is not None:
            self._write_monitor(answers)
        else:
            self._write_lines(self._rows(answers))

    def _rows(self, answers: Sequence[ProfiledTarget]) -> Iterable[Line]:
        from tpusmi.report.profile import one_line
        from tpusmi.report.profile.several_hosts import labels

        profiles, with_host = _profiles(answers), len(answers) > 1
        if profiles and not self._has_header:
            self._has_header = True
            yield ((one_line.header(with_host), "head"),)
        for profile, host in zip(profiles, labels(profiles), strict=True):
            yield ((one_line.line(profile, with_host, host), "plain"),)

    def _page(self, answers: Sequence[ProfiledTarget]) -> Iterable[Line]:
        from tpusmi.report.profile import profile_text

        failed = [(a.target, str(a.error)) for a in answers if a.error is not None]
        top = self._options.top or profile_text.TOP
        return profile_text.lines(_profiles(answers), _width(), top, failed)

    def _compared(
        self, answers: Sequence[ProfiledTarget], old: Sequence[TraceProfile]
    ) -> Iterable[Line]:
        """Each host beside its earlier self, then those that only one of the captures has."""
        from tpusmi.report.profile import comparison
        from tpusmi.report.profile.capture_words import label

        profiles = _profiles(answers)
        by_host = {profile.capture.host: profile for profile in old}
        are_named = 1 < len(by_host) == len(old)
        for place, new in enumerate(profiles):
            before: TraceProfile | None = old[min(place, len(old) - 1)]
            if are_named:
                before = by_host.get(new.capture.host)
            if before is None:
                yield ((f"{label(new)}: the old capture has no host of this name", "warn"),)
            else:
                yield from comparison.lines(before, new, _width())
        hosts = {profile.capture.host for profile in profiles}
        for lost in old if are_named else ():
            if lost.capture.host not in hosts:
                yield ((f"{label(lost)}: the new capture has no host of this name", "warn"),)

    def _object(self, answers: Sequence[ProfiledTarget]) -> dict[str, Any]:
        """The object of one answer; of several, an object with all of them as `hosts`."""
        objects = [_of_one(answer, self._options.top) for answer in answers]
        return objects[0] if len(objects) == 1 else {"schema": SCHEMA, "hosts": objects}

    def _write_monitor(self, answers: Sequence[ProfiledTarget]) -> None:
        from tpusmi.report.profile import monitor_lines

        for profile in _profiles(answers):
            lines = monitor_lines.lines(profile, self._options.monitoring_level)
            kept = lines if self._options.timestamps else lines[1:]
            self._write_lines([((line, "plain"),) for line in kept])

    def _write_lines(self, lines: Iterable[Line]) -> None:
        from tpusmi.report.profile.styled import as_text

        looks = looks_of(self._options)
        self._write(as_text(lines, looks.color, looks.ascii_only))

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def jobs_text(several: SeveralJobsError) -> str:
    """The jobs to choose from, one in a line, as `tpusmi ps` names them."""
    from tpusmi.report import ps_text, words

    rows = [("PID", "USER", "CHIPS", "COMMAND")]
    for p in several.processes:
        chips = ps_text.chips(several.snapshot, p) or words.UNKNOWN
        rows.append((str(p.pid), p.user or words.UNKNOWN, chips, words.command(p.command)))
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    lines = [
        f"  {row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]}"
        for row in rows
    ]
    return "\n".join(["several jobs can be profiled: tpusmi profile PID", *lines])


def _width() -> int:
    return columns() or HELP_COLUMNS


def _profiles(answers: Sequence[ProfiledTarget]) -> list[TraceProfile]:
    return [answer.profile for answer in answers if answer.profile is not None]


def _of_one(answer: ProfiledTarget, top: int | None) -> dict[str, Any]:
    """The object of one answer, with so many operations at most."""
    if answer.profile is not None:
        return to_object(answer.profile._replace(operations=answer.profile.operations[:top]))
    assert answer.error is not None
    error = {"trouble": answer.error.trouble.value, "message": clean(str(answer.error))}
    return {"schema": SCHEMA, "target": answer.target, "error": error}


def _json(value: dict[str, Any], indent: int | None) -> str:
    return json.dumps(value, indent=indent, allow_nan=False) + "\n"
