"""`tpusmi kill`: list the holders to end and why, end them, and wait until the TPU is free."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from tpusmi.actions import is_readonly
from tpusmi.actions.end import ENDING_SIGNALS, FREE_WITHIN_S, GRACE_S, WAIT_MOST_S, Order, carry_out
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Refusal, Request
from tpusmi.actions.planning import planned
from tpusmi.cli.argument_types import number, numbers
from tpusmi.cli.exits import Exit, is_stderr_written, talk
from tpusmi.cli.holder_options import add_options, check_chips, limits, on_host, print_json
from tpusmi.cli.looks import is_in_cell
from tpusmi.cli.options import columns, flag, parser_of
from tpusmi.collect import look
from tpusmi.model import Host, ProcessKey, Snapshot
from tpusmi.report import kill_text
from tpusmi.text import counted

CONFIRM_AGAIN_S = 5.0
"""After a slower answer everything is checked again: a stale holder may be working now."""

EPILOG = """
Right before each signal, tpusmi proves that the process is the one listed and still holds the TPU.
It sends SIGTERM to all of them; after the grace period, SIGKILL to any still running; and then
waits until the device nodes are free. It removes libtpu's lock file only if that is in the way, not
locked, and no process holds the TPU. It never ends the init process, itself, the processes that
started it, or agents of the platform.

--stale ends only holders that are certainly stale. A holder that may be stale, or cannot be
judged because its agent or server could not be read, is listed with the reason; end it by pid.

exit codes: 0 free or nothing to do, 2 usage error or not confirmed, 3 no permission, or no holder
is visible but not every process could be inspected, 4 holders could not be looked for, or one could
not be judged, 5 something could not be freed or is held again, 74 cannot write
"""


def run(arguments: Sequence[str]) -> int:
    """End the holders that match; the exit code says whether everything requested is free."""
    parse = parser()
    options = parse.parse_args(arguments)
    request = Request(
        tuple(pid for pids in options.pids for pid in pids),
        tuple(options.chip or ()),
        options.stale,
        options.all_users,
    )
    if request.is_empty:
        parse.error("specify PIDs, --stale or --chip")
    if is_readonly() and not options.dry_run:
        parse.error("TPUSMI_MODE=readonly: kill is disabled")
    return on_host(parse, options, lambda host: _run(host, parse, options, request))


def parser() -> argparse.ArgumentParser:
    """The parser of `tpusmi kill`."""
    description = "End the holders that match every filter, and wait until the TPU is free."
    usage = "[PID ...] [--stale] [--chip N] [options]"
    p = parser_of("tpusmi kill", usage, description, EPILOG)
    # fmt: off
    p.add_argument("pids", nargs="*", type=numbers, metavar="PID", help="holders with these pids")
    flag(p, "--stale", help="holders that are certainly stale")
    flag(p, "--all-users", help="also holders of other users")
    p.add_argument("--signal", type=_signal, default=signal.SIGTERM, metavar="NAME",
        help="first signal (default TERM); after KILL the next job may fail to start")
    p.add_argument("--grace", type=_limit, default=GRACE_S, metavar="SECONDS",
        help=f"seconds before SIGKILL (default {GRACE_S:.0f})")
    p.add_argument("--wait", type=_limit, default=FREE_WITHIN_S, metavar="SECONDS",
        help=f"seconds to wait for the nodes after that (default {FREE_WITHIN_S:.0f})")
    flag(p, "--dry-run", "-n", help="only print what would be done")
    flag(p, "--yes", "-y", help="do not ask for confirmation")
    # fmt: on
    add_options(p)
    return p


def _run(
    host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace, request: Request
) -> int:
    snapshot = look(host, limits(options))
    check_chips(snapshot, options.chip, parse)
    plan = planned(host, snapshot, request)
    order = Order(options.signal, options.grace, options.wait)
    words = kill_text.plan_text(snapshot, plan, order)
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
        return Exit.CANNOT_WRITE  # nothing is ended that could not be announced
    try:
        return _ask_and_end(host, options, request, snapshot, plan)
    except BrokenPipeError:
        return Exit.CANNOT_WRITE  # the report could not be written


def _ask_and_end(
    host: Host, options: argparse.Namespace, request: Request, snapshot: Snapshot, plan: Plan
) -> int:
    asked_s = time.monotonic()
    if not options.yes and not _is_confirmed(plan):
        if options.json:
            _print_plan(options, plan, "")
        return Exit.USAGE
    if time.monotonic() - asked_s > CONFIRM_AGAIN_S:
        snapshot = look(host, limits(options))
        plan = _still_confirmed(plan, planned(host, snapshot, request))
    order = Order(options.signal, options.grace, options.wait)
    progress = _Progress()
    try:
        report = carry_out(host, snapshot.chips, plan, order, progress)
    except KeyboardInterrupt:
        progress.clear()
        pids = ", ".join(str(t.process.pid) for t in plan.targets)
        talk(f"interrupted: pid {pids} may have been signalled; no more signals are sent")
        raise
    progress.clear()
    _print(options, kill_text.report_dict(plan, report), kill_text.report_text(report))
    return _code(report, options)


def _still_confirmed(before: Plan, now: Plan) -> Plan:
    """The new plan, with only the targets that were confirmed. A holder that was listed as stale,
    and is no longer certainly stale, was not.
    """
    confirmed = {t.process.key: t.process for t in before.targets}
    kept, changed = [], []
    for target in now.targets:
        was = confirmed.get(target.process.key)
        if was is not None and was.stale and not target.process.stale:
            why = f"was stale when you were asked, and is no longer certainly stale ({target.why})"
            changed.append(Refusal(was.pid, target.process, why, nodes=was.holds))
        elif was is not None:
            kept.append(target)
    for left in (*changed, *now.refused, *now.spared):
        if left.process is not None and left.process.key in confirmed:
            talk(f"pid {left.pid} is left alone: {left.why}")
    return now._replace(targets=tuple(kept), refused=(*now.refused, *changed))


def _code_of_nothing(plan: Plan, options: argparse.Namespace) -> int:
    """The exit code of a plan without targets: no visible holder does not mean a free chip."""
    if plan.refused:
        return Exit.BUSY
    if any(left.is_unjudged for left in plan.spared):
        return Exit.SOURCE_FAILED
    return Exit.PERMISSION if plan.unseen and not options.visible_only else Exit.ANSWERED


def _print_plan(options: argparse.Namespace, plan: Plan, words: str) -> None:
    _print(options, kill_text.report_dict(plan, None), words)


def _print(options: argparse.Namespace, result: Mapping[str, object], words: str) -> None:
    if options.json:
        print_json(result)
    else:
        sys.stdout.write(words)
    sys.stdout.flush()


def _is_confirmed(plan: Plan) -> bool:
    """True when the user at the terminal answers yes."""
    if not sys.stdin.isatty():
        talk("not done: without a terminal to ask on, --yes is needed")
        return False
    if is_in_cell():
        talk("not done: a notebook cell takes no answer, --yes is needed")
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
    is_free = not report.still_held and (options.visible_only or not report.unseen)
    return Exit.ANSWERED if is_free else Exit.PERMISSION


class _Progress:
    """A line on the terminal that shows how far each process is; nothing without a terminal."""

    def __init__(self) -> None:
        self._has_terminal = sys.stderr.isatty() and not is_in_cell()
        self._words: dict[ProcessKey, str] = {}

    def __call__(self, words: Mapping[ProcessKey, str]) -> None:
        self._words.update(words)
        line = "; ".join(f"pid {key.pid}: {text}" for key, text in self._words.items())
        self._write(line[: (columns() or 80) - 1])

    def clear(self) -> None:
        """Remove the line: the report follows."""
        self._write("")

    def _write(self, line: str) -> None:
        if self._has_terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def _signal(text: str) -> int:
    """A signal by number or name, with or without SIG. Raises ArgumentTypeError."""
    name = text.upper().removeprefix("SIG")
    try:
        chosen = signal.Signals(int(text)) if text.isdigit() else signal.Signals[f"SIG{name}"]
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"{text} is not a signal") from None
    if chosen not in ENDING_SIGNALS:
        raise argparse.ArgumentTypeError(f"{chosen.name} is not TERM, INT, HUP, QUIT or KILL")
    return int(chosen)


def _limit(text: str) -> float:
    value = number(text, "seconds")
    if not 0 <= value <= WAIT_MOST_S:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {WAIT_MOST_S:.0f} s")
    return value
