"""The command line of `tpusmi` without a subcommand."""

from __future__ import annotations

import argparse

from tpusmi import __version__
from tpusmi.actions import is_readonly
from tpusmi.cli.width import columns

LOOP_DEFAULT_S = 5.0
HELP_COLUMNS = 100

COMMANDS = """commands:
  ps                    who holds the TPU, and is it free: see tpusmi ps --help
  kill                  end holders and wait until the TPU is free: see tpusmi kill --help
  simulate TYPE         a simulated TPU host, such as v5e-8, to try scripts and dashboards on;
                        see tpusmi simulate --help
  demo                  a simulated TPU host with a real JAX training job on it, and watch it
  serve-tui             the dashboard in a browser: see tpusmi serve-tui --help

exit codes: 0 answered, 1 no TPU and no agent here, 2 usage, 3 permission needed,
4 a source failed (--strict, or nothing was found), 5 busy or could not free, 6 a stale holder (ps),
7 a TPU without a node (ps), 74 cannot write, 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The parser of every option; its help is the manual."""
    p = argparse.ArgumentParser(
        prog="tpusmi",
        usage="tpusmi [options]\n"
        "       tpusmi ps [options]\n       tpusmi kill [PID ...] [--stale] [--chip N] [options]\n"
        "       tpusmi simulate TYPE [options]\n       tpusmi demo [options]\n"
        "       tpusmi serve-tui [options]",
        description="What nvidia-smi and nvitop are to GPUs, for TPUs. "
        "The dashboard on a terminal; one plain table elsewhere.",
        epilog=COMMANDS,
        formatter_class=Help,
        allow_abbrev=False,
    )
    p.add_argument("-V", "-v", "--version", action="version", version=f"tpusmi {__version__}")
    _add_outputs(p.add_argument_group("what to print"))
    _add_timing(p.add_argument_group("how often"))
    _add_filters(p.add_argument_group("of what"))
    _add_looks(p.add_argument_group("how it looks"))
    return p


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(columns() or HELP_COLUMNS, HELP_COLUMNS) - 2)


def _add_outputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-1", "--once", "-s", "--snapshot", action="store_true", help="one plain table"
    )
    group.add_argument(
        "--format", metavar="csv[,noheader][,nounits]", help="how a query is printed"
    )
    group.add_argument(
        "--programs",
        action="store_true",
        help="ask libtpu what each core runs, too: expensive for the job",
    )
    g = group.add_mutually_exclusive_group()
    g.add_argument("--json", action="store_true", help="one object; with --loop one per line")
    g.add_argument(
        "-m",
        "--monitor",
        action="store_true",
        help="the dashboard, also where keys seem to be of no use: in a notebook cell",
    )
    g.add_argument(
        "--print-config", action="store_true", help="the dashboard's settings, as a file of them"
    )
    g.add_argument("-L", "--list-tpus", "--list-gpus", action="store_true", help="list the devices")
    g.add_argument(
        "--query-tpu",
        "--query-gpu",
        metavar="FIELDS",
        help="chosen fields of every device: see --help-query-tpu",
    )
    g.add_argument(
        "--query-processes",
        "--query-compute-apps",
        metavar="FIELDS",
        help="chosen fields of every process: see --help-query-processes",
    )
    g.add_argument("--help-query-tpu", "--help-query-gpu", action="store_true", help="its fields")
    g.add_argument(
        "--help-query-processes",
        "--help-query-compute-apps",
        action="store_true",
        help="its fields",
    )


def _add_timing(g: argparse._ArgumentGroup) -> None:
    g.add_argument(
        "-l",
        "--loop",
        nargs="?",
        type=seconds,
        const=LOOP_DEFAULT_S,
        metavar="SECONDS",
        help=f"print again and again (default every {LOOP_DEFAULT_S:.0f} s)",
    )
    g.add_argument("--loop-ms", type=milliseconds, dest="loop", metavar="MS", help="the same")
    g.add_argument(
        "-i",
        "--interval",
        "--watch",
        type=seconds,
        metavar="SECONDS",
        help="refresh of the dashboard (default 1 s); of a loop, where that is what is printed",
    )


def _add_filters(g: argparse._ArgumentGroup) -> None:
    g.add_argument(
        "--id", type=words, metavar="DEVICES", help="devices by index, name or uuid: 0,1"
    )
    g.add_argument("-u", "--user", nargs="*", metavar="USER", help="users; without a name, me")
    g.add_argument(
        "-p", "--pid", nargs="+", type=words, metavar="PID", help="processes: 1,2 or 1 2"
    )
    g.add_argument(
        "--only",
        type=only,
        action="append",
        default=[],
        metavar="WHAT=WHICH",
        help="user=NAME, pid=N, chip=0,1 or id=tpu:8; text=WORD for processes with it in their "
        "command, or elsewhere in their row; repeatable",
    )
    g.add_argument(
        "--simulate",
        metavar="TYPE",
        help="a simulated TPU host such as v5e-8, for as long as this command runs; or the "
        "directory of one that runs: `tpusmi simulate` prints it, and has more options",
    )


def add_colors(g: argparse._ActionsContainer) -> None:
    """The options of every command for what its terminal can show."""
    g.add_argument("--no-color", action="store_true", help="no colours (also NO_COLOR)")
    g.add_argument(
        "--color", "--force-color", "--colorful", action="store_true", help="colours in a pipe too"
    )
    g.add_argument("--ascii", "-U", "--no-unicode", action="store_true", help="ASCII only")


def _add_looks(g: argparse._ArgumentGroup) -> None:
    add_colors(g)
    g.add_argument(
        "--theme",
        type=lambda text: _setting("theme", text),
        metavar="NAME",
        help="of the dashboard: dark, light, colorblind, ansi (the default: the terminal's own 16 "
        "colours) or mono",
    )
    g.add_argument(
        "--light", action="store_const", const="light", dest="theme", help="--theme light"
    )
    g.add_argument(
        "--view",
        type=lambda text: _setting("view", text),
        metavar="{auto,full,compact,heat}",
        help="how the dashboard shows devices; auto is by how many there are",
    )
    g.add_argument(
        "--config",
        metavar="PATH",
        help="the dashboard's settings (also TPUSMI_CONFIG); default: tpusmi/config.toml in "
        "$XDG_CONFIG_HOME or ~/.config",
    )
    g.add_argument(
        "--readonly",
        action="store_true",
        default=is_readonly(),
        help="no key of the dashboard ends a process (also TPUSMI_MODE=readonly)",
    )
    g.add_argument("--strict", action="store_true", help="exit 4 when a source failed")
    g.add_argument("--debug", action="store_true", help="show tracebacks")


def words(text: str) -> list[str]:
    """The words of a comma list. Raises ArgumentTypeError when there is none."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise argparse.ArgumentTypeError("is empty")
    return found


ONLY = ("user", "pid", "chip", "id", "text")


def only(text: str) -> tuple[str, list[str]]:
    """What to show only: a kind, and which of it. Raises ArgumentTypeError."""
    kind, equals, which = text.partition("=")
    if not equals or kind not in ONLY:
        raise argparse.ArgumentTypeError(f"{text} is none of {'=, '.join(ONLY)}=")
    if kind == "text" or (kind == "user" and not which):  # no user is everybody
        return kind, [which]
    found = words(which)
    if kind in ("pid", "chip") and not all(map(_is_number, found)):
        raise argparse.ArgumentTypeError(f"{which} is not a list of numbers")
    return kind, found


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


def _setting(name: str, text: str) -> str:
    """The value of a setting. Raises ArgumentTypeError."""
    from tpusmi.settings import checked

    try:
        return str(checked(name, text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """A time that can be waited. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds") from None
    # Not for --version.
    from tpusmi.settings import checked

    try:
        return float(checked("interval", value))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is {error}") from None


def milliseconds(text: str) -> float:
    """A time in milliseconds, as seconds."""
    return seconds(str(float(text) / 1000))
