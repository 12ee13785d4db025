"""`tpusmi kill`: end holders of the TPU, after saying which and why, and wait until it is free."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence

from tpusmi.actions.end import FREE_WITHIN_S, GRACE_S, Order, Report
from tpusmi.actions.me import me
from tpusmi.actions.plan import Plan, Request, make_plan
from tpusmi.cli.exits import Exit
from tpusmi.cli.holding import (
    add_options,
    check_chips,
    is_readonly,
    limits,
    numbers,
    on_host,
    talk,
)
from tpusmi.cli.options import Help
from tpusmi.freeing import end, look
from tpusmi.model import Host, ProcessKey
from tpusmi.report import ending

EPILOG = """
Whoever is ended is proven, right before each signal, to be the process that was shown and to hold
the TPU still. SIGTERM goes to all of them, SIGKILL after the time of grace to whoever is left; then
tpusmi waits until the device nodes are free. libtpu's lock file is removed only when nobody locks
it, nobody holds the TPU, and it is in the way. The init process, tpusmi itself, whatever started it
and agents of the platform are never ended.

exit codes: 0 free or nothing to do, 2 usage, or not confirmed, 3 no permission, 5 something could
not be freed
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
        description="End holders of the TPU and wait until it is free. Those are ended that every "
        "filter lets through.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    p.add_argument("pids", nargs="*", type=numbers, metavar="PID", help="holders by pid")
    p.add_argument("--stale", action="store_true", help="stale holders")
    p.add_argument("--all-users", action="store_true", help="those of other users, too")
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
    p.add_argument("--yes", "-y", action="store_true", help="do not ask")
    add_options(p)
    return p


def _run(
    host: Host, parse: argparse.ArgumentParser, options: argparse.Namespace, request: Request
) -> int:
    snapshot = look(host, limits(options))
    check_chips(snapshot, options.chip, parse)
    plan = make_plan(snapshot, request, me(host))
    order = Order(options.signal, options.grace, options.wait)
    words = ending.plan_text(snapshot, plan, order)
    nothing = not plan.targets and not plan.lock_files
    if options.dry_run or nothing:
        _print_plan(options, plan, words)
        return Exit.BUSY if plan.refused and not options.dry_run else Exit.ANSWERED
    sys.stderr.write(words)
    sys.stderr.flush()
    if not options.yes and not _is_confirmed(plan):
        return Exit.USAGE
    report = end(host, snapshot, plan, order, _Progress() if sys.stderr.isatty() else None)
    _print(options, ending.report_dict(plan, report), ending.report_text(report))
    return _code(plan, report)


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
    count = len(plan.targets)
    what = f"End {count} process{'es' if count > 1 else ''}?" if count else "Remove the lock file?"
    sys.stderr.write(f"{what} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    talk("not done")
    return False


def _code(plan: Plan, report: Report) -> int:
    failed = [r for r in report.results if not r.is_free]
    kept = [file for file in report.lock_files if not file.removed]
    if report.is_free and not plan.refused and not kept:
        return Exit.ANSWERED
    if failed and all(r.outcome in ("not_permitted", "unseen") for r in failed):
        return Exit.PERMISSION
    return Exit.BUSY


class _Progress:
    """A line on the terminal that says how far each process is."""

    def __init__(self) -> None:
        self._words: dict[ProcessKey, str] = {}

    def __call__(self, words: Mapping[ProcessKey, str]) -> None:
        self._words.update(words)
        line = "; ".join(f"pid {key.pid}: {text}" for key, text in self._words.items())
        from tpusmi.cli.width import columns

        sys.stderr.write(f"\r\x1b[K{line[: (columns() or 80) - 1]}")
        if all(text.startswith(("ended", "has let go")) for text in self._words.values()):
            sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _signal(text: str) -> int:
    """A signal by number or name, with or without SIG. Raises ArgumentTypeError."""
    name = text.upper().removeprefix("SIG")
    try:
        found = signal.Signals(int(text)) if text.isdigit() else signal.Signals[f"SIG{name}"]
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"no signal {text}") from None
    if found not in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL):
        raise argparse.ArgumentTypeError(f"{found.name} ends nothing: TERM, INT, HUP, QUIT or KILL")
    return int(found)


def _limit(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 86400 s")
    return value
