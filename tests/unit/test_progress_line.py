"""What a long command says about its progress, by terminal."""

from __future__ import annotations

import io

import pytest

from tpusmi.cli.progress_line import CLEARED, ProgressLine


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_terminal_that_cannot_rewrite_a_line_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, term: str | None
) -> None:
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stderr", stderr := _Terminal())
    monkeypatch.setattr("tpusmi.cli.progress_line.is_in_cell", lambda: False)
    line = ProgressLine(as_lines=False)
    line("capturing")
    line.clear()
    assert stderr.getvalue() == "tpusmi: capturing\n"


def test_another_terminal_gets_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", stderr := _Terminal())
    monkeypatch.setattr("tpusmi.cli.progress_line.is_in_cell", lambda: False)
    line = ProgressLine(as_lines=False)
    line("capturing")
    line.clear()
    assert stderr.getvalue() == f"{CLEARED}capturing{CLEARED}"
