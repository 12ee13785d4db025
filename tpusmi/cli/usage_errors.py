"""What a wrong command line is answered with: one sentence, and one line that names the help."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tpusmi.cli.command_word import COMMANDS, actions, parser_of_command
from tpusmi.cli.foreign import command_hint, option_hint
from tpusmi.nearest import nearest
from tpusmi.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

MESSAGE_MOST = 1000
"""Characters of a message: it quotes words that a script may have got from anywhere."""


def write_error(prog: str, message: str, arguments: Sequence[str]) -> None:
    """Say on stderr what is wrong with the arguments, in which the words of other tools may be."""
    ours = {*_names(prog.partition(" ")[2])}
    if " " in prog:  # such as `topo -c`: dmon has that
        ours.update(name for command in ("", *COMMANDS) for name in _names(command))
    foreign = (option_hint(word) for word in _options(arguments) if word not in ours)
    hint = next(filter(None, foreign), "")
    text = clean(hint or _plain(message, arguments), MESSAGE_MOST)
    help_line = "" if "--help" in text else f"{prog} --help lists the options\n"
    sys.stderr.write(f"{prog}: error: {text}\n{help_line}")


def _plain(message: str, arguments: Sequence[str]) -> str:
    """argparse's message; about a missing value, or one too many, in plain words. It takes -3 for
    an option.
    """
    option, _, excess = message.removeprefix("argument ").partition(": ignored explicit argument ")
    if excess:
        return f"{option} takes no value, such as {excess}"
    if not message.endswith("expected one argument"):
        return message
    names = message.removeprefix("argument ").partition(":")[0].split("/")
    pairs = pairwise(arguments)
    value = next((after for word, after in pairs if word in names), "")
    if value[1:].replace(".", "", 1).isdigit():
        return f"{'/'.join(names)} cannot be negative"
    return f"{'/'.join(names)} needs a value"


def why_unknown(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """Why the first of those words is not understood, and what may be meant."""
    word = unknown[0].partition("=")[0]
    if word == "--":
        return f"{parser.prog} takes nothing after --"
    if word.startswith("-"):
        return _why_no_option(parser, word)
    if " " in parser.prog:
        return f"{parser.prog} does not take {unknown[0]}"
    if hint := command_hint(word):
        return f"unknown command {word}: {hint}"
    near = nearest(word, COMMANDS)
    return f"unknown command {word}" + (f"; did you mean {near}?" if near else "")


def _why_no_option(parser: argparse.ArgumentParser, word: str) -> str:
    own = actions(parser)
    others = [f"tpusmi {name}".strip() for name in ("", *COMMANDS) if word in _names(name)]
    if others:
        return f"{parser.prog} does not take {word}: it is an option of {_listed(others)}"
    names = {name.lstrip("-"): name for name in own if len(name) > 2}
    near = nearest(word.lstrip("-"), names)
    hint = f"; did you mean {names[near]}?" if near else ""
    return f"{parser.prog} has no option {word}{hint}"


def _names(command: str) -> Iterable[str]:
    return actions(parser_of_command(command))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _options(arguments: Sequence[str]) -> list[str]:
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return [word.partition("=")[0] for word in words if word.startswith("-")]
