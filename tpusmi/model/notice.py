"""A notice: something a person can act on. No I/O, no clock."""

from typing import NamedTuple

STALE_HOLDER, SUSPECT_HOLDER = "stale_holder", "suspect_holder"
"""Codes of the notices about a stale holder, and about one that may be stale."""


class Notice(NamedTuple):
    """Something a person can act on: what is wrong, since when, and what to do."""

    code: str
    message: str
    pid: int | None = None
    """The process that it is about; None for a chip, and for the host."""
    chip: int | None = None
    """Index of the chip that it is about; None for a process, and for the host."""
    device: int | None = None
    """Local index of the device of `pid` that it is about; None for all of them."""
    advice: str = ""
    """What to do about it, in a sentence without a period."""
    since_s: float | None = None
    """For how long it has been so, at least; None when that is not known."""

    @property
    def identity(self) -> tuple[str, int | None, int | None, int | None]:
        """Its code and what it is about: the same while its words, numbers and age change."""
        return self.code, self.pid, self.chip, self.device
