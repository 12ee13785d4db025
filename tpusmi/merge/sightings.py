"""Since when a viewer has seen each notice. No clock of its own."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tpusmi.model import Notice, Snapshot

GAP_S = 5.0
"""A notice that disappears for no longer than this keeps its age."""
SIGHTINGS_MOST = 1024
"""How many notices are remembered; the age of any others is unknown."""


class _Sighting(NamedTuple):
    first_s: float
    gone_s: float | None = None
    """When it was first looked for and not there; None while it is there."""


_Key = tuple[object, str]
"""A notice's identity and its words."""


class Sightings:
    """When each notice was first seen. Its words may change: its identity does not. Of several with
    one identity, as two links of a chip, the words say which is which.
    """

    def __init__(self) -> None:
        self._by_key: dict[_Key, _Sighting] = {}

    def with_ages(self, s: Snapshot) -> Snapshot:
        """The snapshot with the ages of its notices."""
        return s._replace(warnings=self.aged(s.warnings, s.at_s))

    def aged(self, notices: Iterable[Notice], now_s: float) -> tuple[Notice, ...]:
        """The notices, with how long each has been seen unless it has an age of its own. None at
        first sight: the problem may be older.
        """
        notices = tuple(notices)
        current = dict.fromkeys(map(_key, notices))
        kept: dict[_Key, _Sighting] = {}
        for key, sighting in self._by_key.items():
            gone_s = now_s if sighting.gone_s is None else sighting.gone_s
            if now_s - gone_s <= GAP_S:
                kept[key] = sighting._replace(gone_s=None if key in current else gone_s)
        before, now = Counter(identity for identity, _ in kept), Counter(i for i, _ in current)
        only = {key[0]: key for key in kept if before[key[0]] == 1}
        for key in [key for key in current if key not in kept]:
            if key[0] in only and now[key[0]] == 1:
                kept[key] = _Sighting(kept.pop(only[key[0]]).first_s)
            elif len(kept) < SIGHTINGS_MOST:
                kept[key] = _Sighting(now_s)
        self._by_key = kept
        return tuple(self._with_age(n, now_s) for n in notices)

    def _with_age(self, n: Notice, now_s: float) -> Notice:
        sighting = self._by_key.get(_key(n))
        if n.since_s is not None or sighting is None or now_s <= sighting.first_s:
            return n
        return n._replace(since_s=now_s - sighting.first_s)


def _key(n: Notice) -> _Key:
    return n.identity, n.message
