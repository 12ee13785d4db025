"""Whose requests are answered."""

from __future__ import annotations

import pytest

from tpusmi.web.guard import is_loopback, why_refused
from tpusmi.web.tab import DEFAULT, LARGEST, size_of

NAMES = frozenset({"127.0.0.1", "tpu-vm-0"})
OURS = [
    "localhost",
    "localhost:8780",
    "LOCALHOST:8780",
    "127.0.0.1:8780",
    "[::1]:8780",
    "10.1.2.3:9999",
    "tpu-vm-0:8780",
    "TPU-VM-0",
]
STRANGE = [
    "evil.example:8780",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "tpu-vm-0.evil.example",
    "evil.example@localhost",
    "localhost:8780:80",
    "localhost/",
    "localhost\n",
    "[::1",
    "[localhost]",
    "",
]


@pytest.mark.parametrize("asked", OURS)
def test_its_own_page_is_answered_by_every_name_of_this_server(asked: str) -> None:
    assert why_refused(asked, None, NAMES, drives=False) is None
    for drives in (False, True):
        for scheme in ("http", "https"):  # a proxy may speak TLS for us
            assert why_refused(asked, f"{scheme}://{asked}", NAMES, drives=drives) is None


@pytest.mark.parametrize("asked", STRANGE)
def test_a_name_that_somebody_else_has_given_our_address_is_refused(asked: str) -> None:
    for origin in (None, f"http://{asked}"):
        assert why_refused(asked, origin, NAMES, drives=False)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost",
        "http://localhost:9999",
        "http://127.0.0.1:8780",
        "http://localhost:8780.evil.example",
        "http://localhost:8780/",
        "file://localhost:8780",
        "null",
        "",
    ],
)
def test_a_page_from_elsewhere_is_refused(origin: str) -> None:
    for drives in (False, True):
        assert why_refused("localhost:8780", origin, NAMES, drives=drives)


def test_who_does_not_say_whose_page_it_is_cannot_drive() -> None:
    assert why_refused("localhost:8780", None, NAMES, drives=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is_what_only_this_machine_reaches(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.1.evil"])
def test_anything_else_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        (("120", "35"), (120, 35)),
        ((120, 35), (120, 35)),
        (("0", "-3"), (1, 1)),
        (("1000000000", "1000000000"), LARGEST),
        ((None, None), DEFAULT),
        (("80", "many"), DEFAULT),
        (({}, 1.5), DEFAULT),
    ],
)
def test_a_size_that_nobody_can_draw_is_cut_down(
    asked: tuple[object, object], drawn: tuple[int, int]
) -> None:
    assert size_of(*asked) == drawn
