"""`tpusmi kill`: end holders of the TPU, after saying which and why, and wait until it is free."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from tpusmi.actions import is_readonly
from tpusmi.actions.end import ENDING_SIGNALS, FREE_WITHIN_S, GRACE_S, WAIT_MOST_S, Order, carry_out
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Refusal, Request
from tpusmi.actions.planning import planned
from tpusmi.cli.exits import Exit, is_stderr_written
from tpusmi.cli.holding import (
    add_options,
    check_chips,
    limits,
    number,
    numbers,
    on_host,
    talk,
)
from tpusmi.cli.options import Help
from tpusmi.cli.terminal import is_in_cell
from tpusmi.cli.width import columns
from tpusmi.collect import look
from tpusmi.model import Host, ProcessKey, Snapshot
from tpusmi.report import ending
from tpusmi.text import counted

THOUGHT_S = 5.0
"""After a longer thought everything is looked at again: who was stale may work by now."""

EPILOG = """
Each process is proven, right before each signal, to be the one that was shown and to hold the TPU
still. SIGTERM goes to all of them, SIGKILL after the time of grace to those that are left; then
tpusmi waits until the device nodes are free. libtpu's lock file is removed only when it is in the
way, not locked, and no process holds the TPU. The init process, tpusmi itself, what started it and
agents of the platform are never ended.

--stale ends only what is certain to be stale. A holder that is only suspected, or that could not be
judged because its agent or server could not be asked, is listed with the reason: its pid ends it.

exit codes: 0 free or nothing to do, 2 usage, or not confirmed, 3 no permission, or no holder is
seen but not every process could be inspected, 4 holders could not be looked for, or one could not
be judged, 5 something could not be freed, or is held again, 74 cannot write
"""


def run(arguments: Sequence[str]) -> int:
    """End what is asked for; the exit code says whether all of it is free."""
    parse = parser()
    options = parse.parse_args(arguments)
    request = Request(
        tuple(pid for pids in options.pids for pid in pids),
        tuple(options.chip or ()),
        options.stale,
        options.all_users,
    )
    if request.is_empty:
        parse.error("name PIDs, --stale or --chip: nothing is ended unasked")
    if is_readonly() and not options.dry_run:
        parse.error("TPUSMI_MODE=readonly: nothing is ended here")
    return on_host(parse, options, lambda host: _run(host, parse, options, request))


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi kill`."""
    p = argparse.ArgumentParser(
        prog="tpusmi kill",
        usage="tpusmi kill [PID ...] [--stale] [--chip N] [options]",
        description="End the holders of the TPU that pass every filter, and wait until it is free.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    p.add_argument("pids", nargs="*", type=numbers, metavar="PID", help="holders by pid")
    p.add_argument("--stale", action="store_true", help="holders that are certain to be stale")
    p.add_argument("--all-users", action="store_true", help="also those of other users")
    p.add_argument(
        "--signal",
        type=_signal,
        default=signal.SIGTERM,
        metavar="NAME",
        help="the first signal (default TERM); after KILL the next job may fail to start",
    )
    p.add_argument(
        "--grace",
        type=_limit,
        default=GRACE_S,
        metavar="SECONDS",
        help=f"until SIGKILL follows (default {GRACE_S:.0f})",
    )
    p.add_argument(
        "--wait",
        type=_limit,
        default=FREE_WITHIN_S,
        metavar="SECONDS",
        help=f"for the nodes after that (default {FREE_WITHIN_S:.0f})",
    )
    p.add_argument("--dry-run", "-n", action="store_true", help="say what would be done, and end")
    p.add_argument(
        "--visible-only",
        action="store_true",
        help="take what cannot be inspected for no holder: exit 0 instead of 3",
    )
    p.add_argument("--yes", "-y", action="store_true", help="do not ask")
    add_options(p)
    return p


def _run(
    host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace, request: Request
) -> int:
    snapshot = look(host, limits(options))
    check_chips(snapshot, options.chip, parse)
    plan = planned(host, snapshot, request)
    order = Order(options.signal, options.grace, options.wait)
    words = ending.plan_text(snapshot, plan, order)
    if plan.blind:
        talk(plan.blind)
        _print_plan(options, plan, words)
        return Exit.SOURCE_FAILED
    if options.dry_run or not (plan.targets or plan.lock_files):
        _print_plan(options, plan, words)
        return Exit.ANSWERED if options.dry_run else _code_of_nothing(plan, options)
    sys.stderr.write(words)
    sys.stderr.flush()
    if not is_stderr_written():
        return Exit.CANNOT_WRITE  # nothing is ended that could not be said
    try:
        return _ask_and_end(host, options, request, snapshot, plan)
    except BrokenPipeError:
        return Exit.CANNOT_WRITE  # what was done is not read


def _ask_and_end(
    host: Host,
    options: argparse.Namespace,
    request: Request,
    snapshot: Snapshot,
    plan: Plan,
) -> int:
    asked_s = time.monotonic()
    if not options.yes and not _is_confirmed(plan):
        if options.json:
            _print_plan(options, plan, "")
        return Exit.USAGE
    if time.monotonic() - asked_s > THOUGHT_S:
        snapshot = look(host, limits(options))
        plan = _still_meant(plan, planned(host, snapshot, request))
    order = Order(options.signal, options.grace, options.wait)
    progress = _Progress()
    try:
        report = carry_out(host, snapshot.chips, plan, order, progress)
    except KeyboardInterrupt:
        progress.clear()
        pids = ", ".join(str(t.process.pid) for t in plan.targets)
        talk(f"interrupted: pid {pids} may have been signalled, and nothing more is sent")
        raise
    progress.clear()
    _print(options, ending.report_dict(plan, report), ending.report_text(report))
    return _code(report, options)


def _still_meant(before: Plan, now: Plan) -> Plan:
    """Those of a plan that are meant by it still, after a person has thought for a while. Who was
    shown as stale, and is not certain to be by now, is not what was confirmed.
    """
    confirmed = {t.process.key: t.process for t in before.targets}
    kept, changed = [], []
    for target in now.targets:
        was = confirmed.get(target.process.key)
        if was is not None and was.stale and not target.process.stale:
            why = f"was stale when you were asked, and is not certain to be now ({target.why})"
            changed.append(Refusal(was.pid, target.process, why, was.holds))
        elif was is not None:
            kept.append(target)
    for left in (*changed, *now.refused, *now.spared):
        if left.process is not None and left.process.key in confirmed:
            talk(f"pid {left.pid} is left alone: {left.why}")
    return now._replace(targets=tuple(kept), refused=(*now.refused, *changed))


def _code_of_nothing(plan: Plan, options: argparse.Namespace) -> int:
    """Of a plan that ends nobody: that nobody was seen does not free a chip."""
    if plan.refused:
        return Exit.BUSY
    if any(left.is_unjudged for left in plan.spared):
        return Exit.SOURCE_FAILED
    return Exit.PERMISSION if plan.unseen and not options.visible_only else Exit.ANSWERED


def _print_plan(options: argparse.Namespace, plan: Plan, words: str) -> None:
    _print(options, ending.report_dict(plan, None), words)


def _print(options: argparse.Namespace, found: Mapping[str, object], words: str) -> None:
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2 if sys.stdout.isatty() else None) + "\n")
    else:
        sys.stdout.write(words)
    sys.stdout.flush()


def _is_confirmed(plan: Plan) -> bool:
    """True when a person at a terminal says yes."""
    if not sys.stdin.isatty():
        talk("not done: --yes is needed where nobody can be asked")
        return False
    if is_in_cell():
        talk("not done: a notebook cell takes no answer: add --yes")
        return False
    count = len(plan.targets)
    what = f"End {counted(count, 'process', 'processes')}?" if count else "Remove the lock file?"
    sys.stderr.write(f"{what} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    talk("not done")
    return False


def _code(report: Report, options: argparse.Namespace) -> int:
    failed = [r for r in report.results if not r.is_free]
    kept = [file for file in report.lock_files if not file.removed]
    if failed and all(r.outcome in ("not_permitted", "unseen") for r in failed):
        return Exit.PERMISSION
    if report.is_free is False or report.refused or kept:
        return Exit.BUSY
    if any(left.is_unjudged for left in report.spared):
        return Exit.SOURCE_FAILED
    seen = not report.still_held and (options.visible_only or not report.unseen)
    return Exit.ANSWERED if seen else Exit.PERMISSION


class _Progress:
    """A line on the terminal that says how far each process is; nothing where there is none."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty() and not is_in_cell()
        self._words: dict[ProcessKey, str] = {}

    def __call__(self, words: Mapping[ProcessKey, str]) -> None:
        self._words.update(words)
        line = "; ".join(f"pid {key.pid}: {text}" for key, text in self._words.items())
        self._write(line[: (columns() or 80) - 1])

    def clear(self) -> None:
        """Take it away: what became of them follows."""
        self._write("")

    def _write(self, line: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def _signal(text: str) -> int:
    """A signal by number or name, with or without SIG. Raises ArgumentTypeError."""
    name = text.upper().removeprefix("SIG")
    try:
        found = signal.Signals(int(text)) if text.isdigit() else signal.Signals[f"SIG{name}"]
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"no signal {text}") from None
    if found not in ENDING_SIGNALS:
        raise argparse.ArgumentTypeError(f"{found.name} ends nothing: TERM, INT, HUP, QUIT or KILL")
    return int(found)


def _limit(text: str) -> float:
    value = number(text)
    if not 0 <= value <= WAIT_MOST_S:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {WAIT_MOST_S:.0f} s")
    return value
