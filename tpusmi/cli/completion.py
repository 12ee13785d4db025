"""Shell completion: the script that `tpusmi --completion` prints, and the answer to each Tab."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tpusmi.cli.command_word import COMMANDS, parser_of_command, split
from tpusmi.cli.exits import Exit, talk

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

LINE_MOST = 64 * 1024
"""Characters of a command line that is completed."""
NOT_INSTALLED = "argcomplete is not installed here: pip install argcomplete"


def print_script(shell: str) -> Exit:
    """Print what makes that shell complete `tpusmi`."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        talk(NOT_INSTALLED)
        return Exit.NOTHING_HERE
    sys.stdout.write(shellcode(["tpusmi"], shell=shell))
    return Exit.ANSWERED


def complete() -> int:
    """Write what fits at the cursor where the shell's function reads it. The shell passes the
    line in its variables; without them, nothing is written.
    """
    try:
        from argcomplete import autocomplete
        from argcomplete.completers import SuppressCompleter
        from argcomplete.lexers import split_line
    except ImportError:
        return Exit.NOTHING_HERE
    line, point = os.environ.get("COMP_LINE", ""), os.environ.get("COMP_POINT", "")
    if not point.isdecimal() or len(line) > LINE_MOST:
        return Exit.USAGE
    parse = _parser_of_line(split_line(line, int(point))[3])
    autocomplete(parse, always_complete_options=False, default_completer=SuppressCompleter())
    return Exit.ANSWERED


def _parser_of_line(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command among the words before the cursor. The command's word is the first
    argument of it: without one yet, each command fits there.
    """
    from tpusmi.cli.completers import add_completers

    command, _ = split(words[1:])
    parse = parser_of_command(command)
    if command == "serve-tui":
        parse = parser_of_command("")
        for action in parser_of_command(command)._actions:
            if action.option_strings not in [own.option_strings for own in parse._actions]:
                parse._add_action(action)
    word = parse.add_argument("command", nargs="?", choices=[command] if command else [*COMMANDS])
    parse._actions.remove(word)
    parse._actions.insert(0, word)
    add_completers(parse)
    # A word that is there is not offered again: argparse takes it for the argument after it.
    word.completer = lambda **_: {} if command else COMMANDS  # type: ignore[attr-defined]
    return parse
