"""For how long a viewer has seen each notice. No clock of its own."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.model import Notice

GAP_S = 5.0
"""A notice that is gone for no longer than this keeps its age."""
SIGHTINGS_MOST = 1024
"""As many notices are remembered; of any others the age is not known."""


class _Sighting(NamedTuple):
    first_s: float
    gone_s: float | None = None
    """When it was first looked for and not there; None while it is there."""


_Key = tuple[str, int | None, int | None, int | None]


class Sightings:
    """When each notice was seen first. It is the same one while its code is, and what it is about:
    its words may change.
    """

    def __init__(self) -> None:
        self._by_key: Mapping[_Key, _Sighting] = {}

    def aged(self, notices: Iterable[Notice], now_s: float) -> tuple[Notice, ...]:
        """The notices, those without an age of their own with how long they have been seen. None at
        the first sight: it may have been so before.
        """
        notices = tuple(notices)
        current = dict.fromkeys(map(_key, notices))
        kept = {}
        for key, seen in self._by_key.items():
            gone_s = now_s if seen.gone_s is None else seen.gone_s
            if now_s - gone_s <= GAP_S:
                kept[key] = _Sighting(seen.first_s, None if key in current else gone_s)
        for key in current:
            if len(kept) < SIGHTINGS_MOST:
                kept.setdefault(key, _Sighting(now_s))
        self._by_key = kept
        return tuple(self._with_age(n, now_s) for n in notices)

    def _with_age(self, n: Notice, now_s: float) -> Notice:
        seen = self._by_key.get(_key(n))
        if n.since_s is not None or seen is None or now_s <= seen.first_s:
            return n
        return n._replace(since_s=now_s - seen.first_s)


def _key(n: Notice) -> _Key:
    return n.code, n.pid, n.chip, n.device
