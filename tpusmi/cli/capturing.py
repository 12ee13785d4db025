"""Captures once or again and again, and prints each answer: the work of `tpusmi profile`."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import time
from collections.abc import Sequence
from itertools import count

from tpusmi.cli.exits import Exit, talk
from tpusmi.cli.profile_output import ProfileOutput, jobs_text
from tpusmi.cli.progress_line import ProgressLine
from tpusmi.collect import look_for_jobs
from tpusmi.model import Host, Snapshot
from tpusmi.profiler.capture import ProfiledTarget, ProfileSettings, profiled
from tpusmi.profiler.capture_target import ProfileTarget, distinct, target_of
from tpusmi.profiler.log_folder import save, session_name
from tpusmi.profiler.same_process import SameProcesses
from tpusmi.profiler.saved_trace import first_missing, remove_empty
from tpusmi.profiler.which_job import SeveralJobsError, awaited_jobs
from tpusmi.text import clean
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.troubles import CaptureError, Trouble

CODES = {
    Trouble.ABSENT: Exit.NOTHING_HERE,
    Trouble.DENIED: Exit.PERMISSION,
    Trouble.BUSY: Exit.BUSY,
    Trouble.FAILED: Exit.SOURCE_FAILED,
    Trouble.UNREADABLE: Exit.SOURCE_FAILED,
}
"""The exit code of each trouble."""
SENTENCE_MOST = 2000
"""Characters of an error: it may have the name of a file of another user in it."""


class Capturing:
    """One command: its host, options and output."""

    def __init__(self, host: Host, options: argparse.Namespace, settings: ProfileSettings) -> None:
        self._host, self._options, self._settings = host, options, settings
        self._progress = ProgressLine(options.progress)
        self._output = ProfileOutput(options)
        self._same = SameProcesses(host)
        self._saved: list[str] = []
        self._not_saved: list[str] = []
        """Why traces could not be saved, since the last report."""
        self._has_lost = False
        self._made = ""
        """The outermost folder that was made for --save; empty when all of them were there."""

    def run(self) -> int:
        """Capture and print as the options say; the exit code."""
        try:
            self._check_folder()
            old = self._old()
            return self._once(old) if self._options.every is None else self._loop()
        except SeveralJobsError as several:
            self._progress.clear()
            talk(jobs_text(several))
            return Exit.USAGE
        except CaptureError as error:
            self._progress.clear()
            talk(clean(str(error), SENTENCE_MOST))
            if self._options.json:
                self._output.print_once([ProfiledTarget("", error=error)], ())
            return CODES[error.trouble]
        finally:
            self._progress.clear()
            if self._made:
                remove_empty(self._options.save, self._made)

    def _once(self, old: Sequence[TraceProfile]) -> int:
        for attempt in count(1):
            answers = self._answers()
            is_over = attempt >= self._options.attempts
            if is_over or not any(a.error and a.error.trouble is Trouble.FAILED for a in answers):
                break
        self._report(answers)
        if self._options.json or any(answer.profile is not None for answer in answers):
            self._output.print_once(answers, old)
        return self._code(answers)

    def _loop(self) -> int:
        """A line for each capture, at multiples of the period. A capture that fails is a sentence,
        and the loop goes on.
        """
        gc.enable()  # one-shot commands end before they have made garbage
        due_s = time.monotonic()
        for number in count(1):
            answers = self._round(is_first=number == 1)
            self._report(answers)
            self._output.print_round(answers)
            if number == self._options.count:
                break
            due_s = max(due_s + self._options.every, time.monotonic())
            time.sleep(max(0.0, due_s - time.monotonic()))
        return self._code(answers)

    def _round(self, is_first: bool) -> list[ProfiledTarget]:
        """The answers of one round. That there are several jobs ends only the first one."""
        try:
            return self._answers()
        except CaptureError as error:
            return [ProfiledTarget("", error=error)]
        except SeveralJobsError as several:
            if is_first:
                raise
            return [ProfiledTarget("", error=CaptureError(Trouble.FAILED, str(several)))]

    def _answers(self) -> list[ProfiledTarget]:
        given = distinct(self._options.targets)
        targets, errors = self._same.split(given) if given else (self._chosen(), {})
        keep = None if self._options.save is None else self._keeper(len(targets) > 1)
        answers = [ProfiledTarget(text, error=error) for text, error in errors.items()]
        if targets:
            settings, progress = self._settings, self._progress
            answers += profiled(self._host, targets, settings, self._look, progress, keep)
        places = {target.text: place for place, target in enumerate(given)}
        return sorted(answers, key=lambda answer: places.get(answer.target, 0))

    def _chosen(self) -> list[ProfileTarget]:
        """The only job that runs here."""
        jobs = awaited_jobs(self._look, self._host.simulated)
        return [target_of(str(p.pid)) for p in jobs]

    def _look(self) -> Snapshot:
        return look_for_jobs(self._host)

    def _old(self) -> list[TraceProfile]:
        """What to compare with. Raises CaptureError."""
        if self._options.compare is None:
            return []
        answers = profiled(
            self._host, [self._options.compare], self._settings, self._look, self._progress
        )
        for answer in answers:
            if answer.error is not None:
                raise answer.error
        return [answer.profile for answer in answers if answer.profile is not None]

    def _report(self, answers: Sequence[ProfiledTarget]) -> None:
        """Say on stderr which targets failed, unless the page does, and where traces were saved."""
        self._progress.clear()
        is_on_page = self._has_page and any(a.profile is not None for a in answers)
        for answer in answers:
            if answer.error is not None and not is_on_page:
                several = len(answers) > 1 and answer.target not in str(answer.error)
                sentence = f"{answer.target}: {answer.error}" if several else str(answer.error)
                talk(clean(sentence, SENTENCE_MOST))
        for reason in self._not_saved:
            talk(reason)
        self._has_lost |= bool(self._not_saved)
        self._not_saved.clear()
        if self._saved:
            talk(f"saved {', '.join(self._saved)}")
            if self._options.every is None:
                folder = shlex.quote(self._options.save)
                talk(f"to open it: xprof --logdir {folder}, or tensorboard --logdir {folder}")
        self._saved.clear()

    @property
    def _has_page(self) -> bool:
        """True if the output is the page, which also names the targets that failed."""
        o = self._options
        return not o.json and o.every is None and o.compare is None and o.monitoring_level is None

    def _check_folder(self) -> None:
        """Make the folder for --save before the job is disturbed. Raises CaptureError."""
        folder = self._options.save
        if folder is None:
            return
        self._made = first_missing(folder)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            reason = f"--save {folder}: {error.strerror or error}"
            raise CaptureError(Trouble.FAILED, reason) from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CaptureError(Trouble.DENIED, f"--save {folder}: no permission to write there")

    def _keeper(self, with_pid: bool) -> TraceKeeper:
        return TraceKeeper(self._options.save, (self._saved, self._not_saved), with_pid)

    def _code(self, answers: Sequence[ProfiledTarget]) -> int:
        """0 when every target has a profile, and its trace is saved where that was asked for; of
        several, SOURCE_FAILED when any has none.
        """
        errors = [answer.error for answer in answers if answer.error is not None]
        if not errors:
            return Exit.SOURCE_FAILED if self._has_lost else Exit.ANSWERED
        return CODES[errors[0].trouble] if len(answers) == 1 else Exit.SOURCE_FAILED


class TraceKeeper:
    """Saves the traces of one capture in a log folder, each under a name of its own."""

    def __init__(self, folder: str, lists: tuple[list[str], list[str]], with_pid: bool) -> None:
        """The lists get the paths of traces that are saved, and why others are not."""
        self._folder, self._with_pid = folder, with_pid
        self._saved, self._not_saved = lists
        self._session = session_name(time.time())
        self._hosts: set[str] = set()

    def __call__(self, trace: str, profile: TraceProfile) -> None:
        """Copy one trace. Where it cannot be written, the profile is printed all the same."""
        try:
            self._saved.append(save(trace, self._folder, self._session, self._host(profile)))
        except CaptureError as error:
            self._not_saved.append(str(error))
        except OSError as error:
            reason = error.strerror or error
            self._not_saved.append(f"the trace cannot be saved in {self._folder}: {reason}")

    def _host(self, profile: TraceProfile) -> str:
        """The host of the trace; with the pid where several are captured, and with a number where
        another trace has the same name.
        """
        made = profile.capture
        host = made.host or os.uname().nodename
        if self._with_pid and made.pid is not None:
            host = f"{host}-{made.pid}"
        if host in self._hosts:
            host = f"{host}-{len(self._hosts)}"
        self._hosts.add(host)
        return host
