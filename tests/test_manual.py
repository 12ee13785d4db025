"""The manual page tpusmi(1): it has every option, and man shows it without a complaint."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

import pytest
from support.requirements import needs

from tpusmi.cli.command_word import COMMANDS, parser_of_command

PAGE = Path(__file__).parents[1] / "assets" / "tpusmi.1"


def shown(columns: int) -> str:
    """The page as man prints it on a terminal of that width."""
    found = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(PAGE)],
        env={**os.environ, "MANWIDTH": str(columns), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


@needs("man")
@pytest.mark.parametrize("columns", [80, 120])
def test_man_shows_the_page_without_a_complaint(columns: int) -> None:
    text = shown(columns)
    for title in ("NAME", "OPTIONS", "TPUSMI KILL", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES"):
        assert f"\n{title}\n" in text
    assert "tpusmi - nvidia-smi and nvitop for Google TPUs" in text
    assert "print one JSON object; with --loop, one per line" in text


@needs("mandoc")
def test_mandoc_finds_nothing_but_the_date_that_is_left_out() -> None:
    found = subprocess.run(
        ["mandoc", "-Tlint", str(PAGE)], capture_output=True, text=True, timeout=60
    )
    assert [line for line in found.stdout.splitlines() if "missing date" not in line] == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_option_is_in_the_page(command: str) -> None:
    text = PAGE.read_text(encoding="utf-8").replace("\\-", "-")
    options = [a for a in parser_of_command(command)._actions if a.help != argparse.SUPPRESS]
    names = [name for a in options for name in a.option_strings]
    assert [name for name in names if f"\\fB{name}\\fR" not in text] == []


def test_the_page_is_part_of_the_package() -> None:
    project = (PAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"assets/{PAGE.name}" = "share/man/man1/{PAGE.name}"' in project
