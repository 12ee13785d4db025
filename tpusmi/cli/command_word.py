"""Which word of a command line is the command: its options may stand before it and after it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from types import ModuleType

COMMANDS = {
    "ps": "show which processes hold the TPU, and whether it is free",
    "kill": "end holders and wait until the TPU is free",
    "clear": "forget jobs that have ended",
    "dmon": "print each device again and again, as nvidia-smi dmon does",
    "pmon": "print each process again and again, as nvidia-smi pmon does",
    "topo": "show how devices are connected, as nvidia-smi topo -m does",
    "profile": "show what the cores really did, from a short trace of a job",
    "simulate": "run a simulated TPU host, such as v5e-8, to try things on",
    "demo": "show a simulated TPU host with a real JAX training job on it",
    "fleet": "show many hosts at once, through Prometheus or directly",
    "serve": "serve this host's numbers to Prometheus",
    "serve-tui": "serve the dashboard to a browser",
}
"""What each does. It has a module of its name in this folder, except demo, which has the options of
`tpusmi`.
"""
ALIASES = ("capture_tpu_profile",)
"""Commands with a module that no list shows: the names of older tools."""

CANDIDATES_MOST = 8
"""Words of a command line that may be the command: each may be the value of an option before it."""


def split(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command, empty without one; and all other words, in their order."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    places = [
        place for place, word in enumerate(arguments[:end]) if word in COMMANDS or word in ALIASES
    ]
    for place in places[:CANDIDATES_MOST]:
        word = arguments[place]
        if not place or _is_command(word, arguments[:place]):
            return word, [*arguments[:place], *arguments[place + 1 :]]
    return "", list(arguments)


def module_of(command: str) -> ModuleType:
    """The module that runs a command; not for demo."""
    import importlib

    return importlib.import_module(f"tpusmi.cli.{command.replace('-', '_')}")


def parser_of_command(command: str) -> argparse.ArgumentParser:
    """The parser of a command; of `tpusmi` itself if it is empty."""
    from tpusmi.cli.options import parser

    if command in ("", "demo"):
        return parser(is_demo=bool(command))
    made: argparse.ArgumentParser = module_of(command).parser()
    return made


def _is_command(word: str, before: Sequence[str]) -> bool:
    """False if the word is a value of an option before it, or comes after a wrong word."""
    by_name = {**actions(parser_of_command("")), **actions(parser_of_command(word))}
    option, values = None, 0
    for value in before:
        if value.startswith("-"):
            option, values = _open(value, by_name), 0
        elif _takes(option, values, value):
            values += 1
        else:
            return False
    return not _takes(option, values, word)


def actions(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a parser, by each of their names."""
    return {name: a for a in parser._actions for name in a.option_strings}


def _takes(option: argparse.Action | None, values: int, word: str) -> bool:
    """True if the word is a value of the option, which has some already. A command ends a list."""
    if option is None:
        return False
    if not values:
        return option.nargs not in ("*", "?") or _fits(word, option.type)
    return option.nargs in ("*", "+") and word not in COMMANDS


def _fits(word: str, convert: object) -> bool:
    from argparse import ArgumentTypeError

    try:
        return not callable(convert) or convert(word) is not None
    except (ArgumentTypeError, ValueError):
        return False


def _open(word: str, by_name: dict[str, argparse.Action]) -> argparse.Action | None:
    """The option that takes the words after this one: `--id` and `-1l`, but not `--id=0` or `-l5`.
    None without one.
    """
    if word in by_name:
        action = by_name[word]
        return None if action.nargs == 0 else action
    if word.startswith("--") or "=" in word:
        return None
    for rest, action in _cluster(word, by_name):
        if action.nargs != 0:
            return None if rest else action
    return None


def _cluster(
    word: str, by_name: dict[str, argparse.Action]
) -> Iterator[tuple[str, argparse.Action]]:
    """The options of `-1l5`, each with the characters after it."""
    for place, letter in enumerate(word[1:], 2):
        action = by_name.get(f"-{letter}")
        if action is None:
            return
        yield word[place:], action
