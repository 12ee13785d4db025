"""The manual page tpusmi(1), from the parsers of the commands. make_docs.py writes it."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from itertools import groupby

from tpusmi import __version__
from tpusmi.cli.command_word import COMMANDS, parser_of_command
from tpusmi.cli.help_fitting import fitted, parts
from tpusmi.cli.options import DASHBOARD, EXIT_CODES

LINE_MOST = 66
"""Characters of a line of the source, before some of them are escaped."""
NAME = "nvidia\\-smi and nvitop for Google TPUs"
ABOUT = (
    "Each command has --help, and takes its options before or after its name. tpusmi demo and "
    "tpusmi serve-tui also have the options of tpusmi. Data goes to stdout, messages go to stderr."
)
VARIABLES = {
    "NO_COLOR": "no colors, unless it is empty. It beats FORCE_COLOR; --color beats both.",
    "FORCE_COLOR, CLICOLOR_FORCE": "colors without a terminal, unless it is empty or 0.",
    "COLUMNS": "the width of tables and help that are not printed on a terminal. Without it, a "
    "table in a pipe is as wide as it needs to be.",
    "TPUSMI_CONFIG": "the settings file of the dashboard.",
    "TPUSMI_DIR": "the only directory to look for the segments of agents in.",
    "TPUSMI_MODE": "readonly: no process is ended, by the dashboard or by tpusmi kill, and none is "
    "captured by tpusmi profile.",
    "TMPDIR": "where tpusmi profile keeps a trace until it is read; /tmp without it.",
    "XDG_CONFIG_HOME": "where tpusmi/config.toml is; ~/.config without it.",
}
EXAMPLES = {
    "tpusmi": "the dashboard",
    "tpusmi -1": "one table",
    "tpusmi --query-tpu=index,memory.used --format=csv --loop 5 --count 12":
        "the memory of every device, every 5 s for a minute",
    "tpusmi ps --wait-free 60 && python train.py": "wait until the TPU is free, then train",
    "tpusmi kill --stale --dry-run": "which holders would be ended, and why",
    "tpusmi profile": "what the cores of the job here really do, from a trace of one second",
    "tpusmi serve --bind 0.0.0.0 --web-config /etc/tpusmi/web.yml":
        "let Prometheus scrape this host, with a certificate and passwords",
    "tpusmi --simulate v5e-8": "try it without a TPU",
}  # fmt: skip


def page() -> str:
    """The page as roff."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    main = parser_of_command("")
    yield '.\\" Made by assets/make_docs.py from the options of the program.'
    yield f'.TH TPUSMI 1 "" "tpusmi {__version__}" "User Commands"'
    yield from (".SH NAME", f"tpusmi \\- {NAME}", ".SH SYNOPSIS")
    for number, command in enumerate(("", *COMMANDS)):
        yield from ([".br"] if number else [])
        yield f".B {_text(_usage(parser_of_command(command)))}"
    yield from (".SH DESCRIPTION", *_prose(f"tpusmi alone: {DASHBOARD}."), ".PP", *_prose(ABOUT))
    yield from (
        ".SH COMMANDS",
        *_terms({f"tpusmi {name}": about for name, about in COMMANDS.items()}),
    )
    yield from (".SH OPTIONS", *_options(main))
    for command in COMMANDS:
        yield from _command(command)
    yield from (".SH EXIT STATUS", *_terms(_exit_codes()))
    yield from (".SH ENVIRONMENT", *_terms(VARIABLES))
    yield from (".SH EXAMPLES", *_terms(EXAMPLES))
    yield from (".SH SEE ALSO", ".BR nvidia\\-smi (1),", ".BR watch (1)")


def _command(command: str) -> Iterator[str]:
    """The section of a command."""
    parse = parser_of_command(command)
    yield f".SH TPUSMI {command.upper()}".replace("-", "\\-")
    yield from _prose(parse.description or "")
    if command != "demo":
        yield from _options(parse)
        yield from _more(parse.epilog or "")


def _usage(parse: argparse.ArgumentParser) -> str:
    return " ".join((parse.usage or "").split())


def _options(parse: argparse.ArgumentParser) -> Iterator[str]:
    """Each group of options under its title. Hidden ones are other tools' words."""
    formatter = parse._get_formatter()
    for group in parse._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        if not shown:
            continue
        yield f".SS {_text((group.title or '').capitalize())}"
        for action in shown:
            help_text = formatter._expand_help(action) if action.help else ""
            yield from (".TP", _heading(action), *_prose(help_text))


def _heading(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"\\fI{_text(value)}\\fR"
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in action.option_strings)
    if action.nargs == 0:
        return names
    shape = {"?": "[{}]", "*": "[{} ...]", "+": "{} ..."}.get(str(action.nargs), "{}")
    return f"{names} " + shape.format(f"\\fI{_text(value)}\\fR")


def _terms(terms: dict[str, str]) -> Iterator[str]:
    for term, meaning in terms.items():
        yield from (".TP", f"\\fB{_text(term)}\\fR", *_prose(meaning))


def _exit_codes() -> dict[str, str]:
    """Each code, and what it means, from the help."""
    text = " ".join(EXIT_CODES.split()).removeprefix("exit codes: ")
    codes: dict[str, str] = {}
    for part in text.split(", "):
        number, _, meaning = part.partition(" ")
        if number.isdigit():
            codes[number] = meaning
        else:
            codes[[*codes][-1]] += f", {part}"
    return codes


def _more(text: str) -> Iterator[str]:
    """Paragraphs, and between them lines that stay lines, such as examples."""
    for is_prose, group in groupby(parts(text.strip("\n")), key=lambda part: part[:1] > " "):
        if is_prose:
            yield from (line for part in group for line in (".PP", *_prose(part)))
        elif lines := [line for part in group for line in fitted(part, LINE_MOST).splitlines()]:
            yield from (".PP", ".nf", *map(_text, lines), ".fi")


def _prose(text: str) -> Iterator[str]:
    """Text that may be filled, in short lines."""
    return map(_text, textwrap.wrap(text, LINE_MOST, break_long_words=False))


def _text(text: str) -> str:
    """Text that roff prints as it is."""
    for character, name in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga")):
        text = text.replace(character, name)
    return f"\\&{text}" if text.startswith(".") else text
