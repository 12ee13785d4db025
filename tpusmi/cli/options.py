"""The options of `tpusmi` without a subcommand, and the parser that every command has."""

from __future__ import annotations

import argparse
import os
import sys

from tpusmi import __version__
from tpusmi.actions import is_readonly
from tpusmi.cli.argument_types import (
    count,
    interval,
    milliseconds,
    numbers,
    only,
    period,
    ports,
    seconds,
    setting,
    words,
)
from tpusmi.cli.command_word import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from tpusmi.model import Host

LOOP_DEFAULT_S = 5.0
WATCH_S = 1.0
"""The interval of `--watch` without a number, and of `--count` without an interval."""
SHELLS = ("bash", "zsh", "fish")
HELP_COLUMNS = 100
SIZE_DIGITS_MOST = 5

DASHBOARD = "show the dashboard; without a terminal, one plain table"
AFTER_COMMANDS = """Each command has --help, and takes its options before or after its name. The
options below are those of tpusmi, tpusmi demo and tpusmi serve-tui."""

DEMO = """Show a simulated TPU host with a real JAX training job on it, until this command ends.
Needs JAX: pip install 'tpusmi[demo]'. The options are those of tpusmi, without --simulate. With -1
or --json it prints once the job has taken its first steps."""

EXIT_CODES = """exit codes: 0 success, 1 no TPU and no agent here, 2 usage, 3 permission needed,
4 a source failed (--strict, or nothing was found), 5 busy or could not free, 6 a stale holder (ps),
7 a TPU without a node (ps), 74 cannot write, 130 interrupted
"""


def parser(is_demo: bool = False) -> argparse.ArgumentParser:
    """The parser of every option, which `tpusmi demo` has as well; its help is the manual."""
    commands = "\n".join(f"  tpusmi {name:<11}{about}" for name, about in _commands().items())
    description = (
        f"nvidia-smi and nvitop for Google TPUs.\n\ncommands:\n{commands}\n\n{AFTER_COMMANDS}"
    )
    p = (
        parser_of("tpusmi demo", "[options]", DEMO, EXIT_CODES)
        if is_demo
        else parser_of("tpusmi", "[COMMAND] [options]", description, EXIT_CODES)
    )
    p.add_argument("-V", "-v", "--version", action="version", version=f"tpusmi {__version__}")
    _add_outputs(p.add_argument_group("output"))
    _add_timing(p.add_argument_group("timing"))
    _add_filters(p.add_argument_group("filters"))
    _add_appearance(p.add_argument_group("appearance"))
    _add_more(p.add_argument_group("more"))
    return p


def _commands() -> dict[str, str]:
    """What each command does; the empty one is `tpusmi` itself."""
    return {"": DASHBOARD, **COMMANDS}


def parser_of(command: str, usage: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """The parser of a command, still without options; its help is as wide as the terminal."""
    width = min(columns() or HELP_COLUMNS, HELP_COLUMNS) - 2
    return _Parser(
        prog=command,
        usage=f"{command} {usage}",
        description=description,
        epilog=epilog,
        formatter_class=lambda prog: _HelpFormatter(prog, width=width),
        allow_abbrev=False,
    )


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fits paragraphs to the width; examples and tables stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from tpusmi.cli.help_fitting import fitted

        return fitted(text, width)


class _Parser(argparse.ArgumentParser):
    """Reports what is wrong in one sentence, without the usage."""

    _arguments: Sequence[str] = ()

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """As argparse, but with a better answer to words that it does not know."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            from tpusmi.cli.usage_errors import why_unknown

            self.error(why_unknown(self, unknown))
        return options

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse."""
        self._arguments = sys.argv[1:] if args is None else args
        return super().parse_known_args(self._arguments, namespace)

    def error(self, message: str) -> NoReturn:
        """End with code 2 and the message. A word of another tool gets what does the same here."""
        from tpusmi.cli.usage_errors import write_error  # here: most command lines are right

        write_error(self.prog, message, self._arguments)
        self.exit(2)


def columns() -> int | None:
    """Columns of the terminal on stdout. Without one, COLUMNS, which `watch` sets; None if no size
    is known.

    Does not use shutil, which no other module here imports.
    """
    try:
        own = os.get_terminal_size().columns
    except OSError:
        own = 0
    return own or _exported_columns()


def _exported_columns() -> int | None:
    text = os.environ.get("COLUMNS", "")
    is_size = text.isascii() and text.isdigit() and len(text) <= SIZE_DIGITS_MOST
    return (int(text) or None) if is_size else None


def flag(g: argparse._ActionsContainer, *names: str, help: str) -> None:
    """Add an option without a value."""
    g.add_argument(*names, action="store_true", help=help)


def add_colors(g: argparse._ActionsContainer) -> None:
    """The options that every command has for its terminal."""
    flag(g, "--no-color", help="no colors (also NO_COLOR)")
    flag(
        g,
        "--color",
        "--force-color",
        "--colorful",
        help="colors even without a terminal (also FORCE_COLOR)",
    )
    flag(g, "--ascii", "-U", "--no-unicode", help="ASCII only")


def add_metrics_port(g: argparse._ActionsContainer) -> None:
    """The option that names ports."""
    g.add_argument("--metrics-port", type=ports, metavar="N[,N]",
        help="also ask these ports for libtpu's metrics (also LIBTPUINFO_GRPC_PORT)")  # fmt: skip


def with_ports(host: Host, ports: Sequence[int] | None) -> Host:
    """The host, with these ports also asked for metrics. It is looked up whose they are, as of the
    usual ones.
    """
    if not ports:
        return host
    return host._replace(metrics_ports=tuple(dict.fromkeys((*host.metrics_ports, *ports))))


class _Interval(argparse.Action):
    """Notices an `-i 1`, which is a device in nvidia-smi."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)
        is_index = isinstance(values, float) and values.is_integer() and values is not self.const
        namespace.is_maybe_device = option_string == "-i" and is_index


# fmt: off
def _add_outputs(group: argparse._ArgumentGroup) -> None:
    flag(group, "-1", "--once", "-s", "--snapshot", help="print one plain table")
    group.add_argument("--format", metavar="csv[,noheader][,nounits]", help="the format of a query")
    flag(group, "--programs", help="also show what each core runs: expensive for the job")
    g = group.add_mutually_exclusive_group()
    flag(g, "--json", help="print one JSON object; with --loop, one per line")
    flag(g, "-m", "--monitor", help="show the dashboard, even in a notebook cell")
    flag(g, "--print-config", help="print the current settings as a TOML file")
    flag(g, "-L", "--list-tpus", "--list-gpus", help="list the devices")
    flag(g, "-q", "--query", help="print everything about each device, as nvidia-smi -q does")
    group.add_argument("-d", "--display", metavar="SECTIONS",
        help="only these sections of -q: MEMORY,UTILIZATION")
    for names, what in (
        (("--query-tpu", "--query-gpu"), "device"),
        (("--query-processes", "--query-compute-apps"), "process"),
    ):
        g.add_argument(*names, metavar="FIELDS", help=f"print these fields of every {what}")
        helps = [name.replace("--", "--help-", 1) for name in names]
        flag(g, *helps, help=f"list the fields of a {what}")


def _add_timing(g: argparse._ArgumentGroup) -> None:
    g.add_argument("-l", "--loop", nargs="?", type=period, const=LOOP_DEFAULT_S, metavar="SECONDS",
        help=f"print again and again (default: every {LOOP_DEFAULT_S:.0f} s)")
    g.add_argument("-lms", "--loop-ms", type=milliseconds, dest="loop", metavar="MS",
        help="--loop in milliseconds")
    g.add_argument("-i", "--interval", "--watch", nargs="?", type=interval, const=WATCH_S,
        action=_Interval, metavar="SECONDS",
        help="refresh interval of the dashboard (default: 1 s); for printed output, same as --loop")
    g.add_argument("--count", type=count, metavar="N",
        help="stop after printing N times; without --loop, every second")
    g.set_defaults(is_maybe_device=False)
    # tpu-info's words.
    g.add_argument("--rate", type=seconds, dest="interval", help=argparse.SUPPRESS)
    g.add_argument("--streaming", action="store_true", help=argparse.SUPPRESS)
    g.add_argument("--list_metrics", action="store_true", dest="help_query_tpu",
        help=argparse.SUPPRESS)


def _add_filters(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--id", type=words, metavar="DEVICES",
        help="devices by index, name, UUID or PCI address: 0,2-3")
    g.add_argument("-u", "--user", nargs="*", metavar="USER", help="users; without a name, you")
    g.add_argument("-p", "--pid", nargs="+", type=numbers, metavar="PID",
        help="processes: 1,2 or 1 2")
    flag(g, "-ov", "--only-visible",
        help="only the chips in TPU_VISIBLE_CHIPS, TPU_VISIBLE_DEVICES or TPU_VISIBLE_DEVICE_PATHS")
    g.add_argument("--only", type=only, action="append", default=[], metavar="WHAT=WHICH",
        help="user=NAME, pid=N, chip=0-3,6, id=tpu:8, or text=FILTER for processes that match a "
        "filter as in the dashboard: a word in their row, mxu<30, ~train.*v2; repeatable")


def _add_appearance(g: argparse._ArgumentGroup) -> None:
    add_colors(g)
    g.add_argument("--theme", type=lambda text: setting("theme", text), metavar="NAME",
        help="theme of the dashboard: dark, light, colorblind, ansi (the default: the terminal's "
        "own 16 colors) or mono")
    g.add_argument("--light", action="store_const", const="light", dest="theme",
        help="--theme light")
    g.add_argument("--view", type=lambda text: setting("view", text),
        metavar="{auto,full,compact,heat}",
        help="how the dashboard shows devices; auto depends on their number")
    flag(g, "--no-header", help="without the line about the host")
    flag(g, "--no-processes", help="without the processes")
    g.add_argument("--config", metavar="PATH",
        help="settings file of the dashboard (also TPUSMI_CONFIG); default: tpusmi/config.toml in "
        "$XDG_CONFIG_HOME or ~/.config")


def _add_more(g: argparse._ArgumentGroup) -> None:
    g.add_argument("--simulate", metavar="TYPE",
        help="run on a simulated TPU host such as v5e-8 that ends with this command, or on a "
        "running one: the directory that `tpusmi simulate` printed")
    g.add_argument("--readonly", action="store_true", default=is_readonly(),
        help="no key of the dashboard ends a process (also TPUSMI_MODE=readonly)")
    add_metrics_port(g)
    g.add_argument("--completion", "--print-completion", choices=SHELLS, metavar="SHELL",
        help="print what makes bash, zsh or fish complete tpusmi: "
        'eval "$(tpusmi --completion bash)"')
    flag(g, "--strict", help="exit with 4 if a source failed")
    flag(g, "--debug", help="show tracebacks")
# fmt: on


def hidden_by(options: argparse.Namespace) -> tuple[str, ...]:
    """The panels that the options hide."""
    return tuple(name for name in ("header", "processes") if getattr(options, f"no_{name}"))
