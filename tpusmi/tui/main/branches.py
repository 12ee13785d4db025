"""Columns of processes as those of a tree: what has only started others has pid and command."""

from __future__ import annotations

from collections.abc import Iterable

from tpusmi.model import Process
from tpusmi.report import words
from tpusmi.report.family import TREE_ASCII, Branch
from tpusmi.tui.draw.columns import Column
from tpusmi.tui.draw.look import Look, Row, width_of

LEAST_COMMAND = 8
"""So much of a command is drawn, however deep it is in the tree."""


def of_branches(look: Look, columns: Iterable[Column[Process]]) -> tuple[Column[Branch], ...]:
    """The same columns, the one of commands with the tree in front of them."""
    return tuple(_of_branch(look, column) for column in columns)


def _of_branch(look: Look, column: Column[Process]) -> Column[Branch]:
    text, known = column.text, column.known

    def draw(b: Branch, width: int) -> Row:
        if column.title != "COMMAND":
            return _cell(look, column, b, width)
        indent = _indent(look, b, width)
        return (*indent, *_cell(look, column, b, width - width_of(indent)))

    return Column(
        *(column.title, draw, column.width, column.rank, column.most, column.right),
        text=None if text is None else lambda b: "" if b.process is None else text(b.process),
        known=None if known is None else lambda b: b.process is not None and known(b.process),
        spare=column.spare,
    )


def _cell(look: Look, column: Column[Process], b: Branch, width: int) -> Row:
    if b.process is not None:
        return column.draw(b.process, width)
    told = {"PID": str(b.pid), "COMMAND": words.command(b.command)}
    return look.cell(told.get(column.title, ""), width, "dim", right=column.right)


def _indent(look: Look, b: Branch, width: int) -> Row:
    text = b.indent.translate(TREE_ASCII) if look.only_ascii else b.indent
    # The nearest branches are the last ones.
    room = max(0, width - LEAST_COMMAND)
    return look.line((text[-room:] if room else "", "dim"))
