"""The text around the options of a help fits the terminal."""

from __future__ import annotations

import pytest

from tpusmi.cli.command_word import COMMANDS, parser_of_command
from tpusmi.cli.help_fitting import fitted, parts

EXAMPLES = "  tpusmi "
"""An example stays on one line, however long: it is there to be copied."""


def test_a_paragraph_is_filled_and_an_example_stays_a_line() -> None:
    text = "one two\nthree four\n\n  tpusmi with a long list of options\nfive"
    assert fitted(text, 10) == "\n".join(
        ("one two", "three four", "", "  tpusmi with a long list of options", "five", "")
    )


def test_a_row_of_two_columns_continues_below_the_second() -> None:
    assert fitted("  idle    holds the chips", 20) == "  idle    holds the\n          chips\n"


def test_a_width_that_is_too_small_for_a_word_raises_nothing() -> None:
    assert "unbreakable" in fitted("  name    unbreakable words\nand unbreakable prose", 1)


def test_lines_that_follow_one_another_are_one_paragraph() -> None:
    assert list(parts("a\nb\n\nc\n  d")) == ["a b", "", "c", "  d", ""]


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_of_each_command_fits_the_terminal(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = parser_of_command(command).format_help().splitlines()
    assert [s for s in lines if len(s) > columns and not s.startswith(EXAMPLES)] == []
