"""In which order a table is."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tpusmi.model import ProcessKey
from tpusmi.tui.draw.table import Column
from tpusmi.tui.main.process_table import Sorting


class Thing(NamedTuple):
    """Something with a name, a size that may be unknown, and a place in the table."""

    name: str
    size: int | None
    key: ProcessKey | None = None


A, B, C, D = Thing("a", 5), Thing("b", None), Thing("c", 7), Thing("d", 5)
THINGS = [B, D, A, C]


def sorting() -> Sorting[Thing]:
    columns = (
        Column[Thing]("NAME", lambda t, w: (), 1, sort=lambda t: t.name),
        Column[Thing]("MARK", lambda t, w: (), 1),
        Column[Thing]("SIZE", lambda t, w: (), 1, sort=lambda t: t.size, falls=True),
    )
    return Sorting(columns, "NAME", {"n": "NAME", "s": "SIZE"})


def names(order: Sorting[Thing]) -> str:
    return "".join(t.name for t in order.sorted(THINGS))


def test_unknown_values_are_last_in_both_directions_and_equal_ones_keep_their_order() -> None:
    order = sorting()
    assert names(order) == "abcd"
    order.step(1)
    assert (order.title, order.falls) == ("SIZE", True)
    assert names(order) == "cdab"
    order.choose("SIZE")
    assert not order.falls
    assert names(order) == "dacb"


def test_steps_go_round_and_pass_over_what_has_no_order() -> None:
    order = sorting()
    titles = []
    for step in (1, 1, -1, -1):
        order.step(step)
        titles.append(order.title)
    assert titles == ["SIZE", "NAME", "SIZE", "NAME"]


@pytest.mark.parametrize(
    ("letter", "title", "falls"),
    [("n", "NAME", False), ("N", "NAME", True), ("s", "SIZE", True), ("S", "SIZE", False)],
)
def test_a_letter_chooses_a_column_and_its_capital_the_other_way(
    letter: str, title: str, falls: bool
) -> None:
    order = sorting()
    order.choose("NAME")
    assert order.choose_letter(letter)
    assert (order.title, order.falls) == (title, falls)


@pytest.mark.parametrize("letter", ["z", "", "İ", "nn", "1"])
def test_a_letter_that_no_column_has_changes_nothing(letter: str) -> None:
    order = sorting()
    order.choose("NAME")
    assert not order.choose_letter(letter)
    assert (order.title, order.falls) == ("NAME", True)


def test_a_title_that_cannot_be_sorted_by_changes_nothing() -> None:
    order = sorting()
    order.choose("MARK")
    order.choose("no such title")
    assert (order.title, order.falls) == ("NAME", False)
