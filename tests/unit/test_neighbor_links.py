"""Links between neighbors of a torus, and how healthy they can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.report.torus.neighbor_links import at_worst, between_neighbors

SIZES = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))


def places(size: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(x, y, z) for x in range(size[0]) for y in range(size[1]) for z in range(size[2])]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(0, 0, 0, id="both ends are healthy"),
        pytest.param(0, 9, 0, id="one end has healthy links only: the bad one leads elsewhere"),
        pytest.param(3, 9, 3, id="no worse than the better end"),
        pytest.param(0, None, 0, id="one end is enough to say that it is healthy"),
        pytest.param(9, None, None, id="one end has a bad link, which may be another one"),
        pytest.param(None, None, None, id="no end says anything"),
    ],
)
def test_a_link_is_at_worst_as_bad_as_its_better_end(
    a: int | None, b: int | None, expected: int | None
) -> None:
    assert at_worst(a, b) == at_worst(b, a) == expected


@given(SIZES, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_neighbors_are_symmetrical_and_each_link_is_there_once(
    size: tuple[int, int, int], wraps: tuple[bool, bool, bool]
) -> None:
    links = between_neighbors(places(size), {}, size, wraps)
    pairs = [frozenset((link.a, link.b)) for link in links]
    assert len({*pairs}) == len(pairs)
    assert all(len(pair) == 2 for pair in pairs)
    for place in places(size):
        mine = {*(link.b for link in links if link.a == place)}
        mine |= {link.a for link in links if link.b == place}
        for other in places(size):
            steps = [
                min((p - q) % n, (q - p) % n) if w and n > 2 else abs(p - q)
                for p, q, n, w in zip(place, other, size, wraps, strict=True)
            ]
            assert (other in mine) is (sum(steps) == 1)


def test_ends_are_not_joined_where_that_is_unknown_or_half_is_missing() -> None:
    row = [(x, 0, 0) for x in range(4)]
    assert len(between_neighbors(row, {}, (4, 1, 1), None)) == 3
    assert len(between_neighbors(row, {}, None, (True, True, True))) == 3
    assert len(between_neighbors(row, {}, (4, 1, 1), (True, False, False))) == 4
    assert len(between_neighbors(row[1:], {}, (4, 1, 1), (True, False, False))) == 2


def test_two_chips_in_a_row_have_one_link_between_them() -> None:
    both = [(0, 0, 0), (1, 0, 0)]
    assert len(between_neighbors(both, {}, (2, 1, 1), (True, True, True))) == 1
