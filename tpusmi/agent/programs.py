"""The compiled programs of one tracked function, and what a call of each costs.

While all cost the same, one look at how many there are is all that a call needs. Only when two
differ, a sequence length for example, is each call told by its arguments: by those alone in which
the programs known so far differ, and at most so often that it takes 1 % of the job's time.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from tpusmi.agent.costs import INCOMPLETE, UNKNOWN, cost
from tpusmi.agent.flops import Flops
from tpusmi.agent.signatures import Arguments, Kinds, places_of

SIGNATURES_MOST = 256
"""Of one function; a call of another one counts like the newest."""
KEYED = -1
"""In place of a number of compiled programs: calls are told apart by their arguments."""
SHARE = 0.01
CHEAP_S = 20e-6
"""Telling calls apart may take so much of the time between them, or so long."""
DEAR_LEAST = 5
"""So many dear looks in a row are no accident of the machine's."""
SKIPPED_MOST = 1000


class Programs:
    """What each call of a function costs. Raises nothing."""

    def __init__(self, function: Callable[..., Any], flops: Flops) -> None:
        self._function = function
        self._flops = flops
        size = getattr(function, "_cache_size", None)
        self._real_size: Callable[[], int] = size if callable(size) else _one
        self.size = self._real_size
        """Changes when there may be a program that was not seen before; when KEYED, always."""
        self._arguments = Arguments(function)
        self._skip = self._skipped = self._dear = 0
        self._looked_at_s = 0.0
        self._forget()

    def _forget(self) -> None:
        self._size = 0
        self._each = 0.0
        self._costs: dict[int, float] = {}
        self._places: set[int] = set()
        self._first: Kinds | None = None
        self._first_cost = 0.0
        self._differing: tuple[Any, ...] = ()

    def count(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, int]:
        """Count a call that may be of a program not seen before.

        What the next call costs if size() says no other number than this one.
        """
        try:
            if self._skip > 0:
                self._skip -= 1
            else:
                self._look(args, kwargs)
            self._flops.tracked += self._each
        except Exception as error:  # noqa: BLE001  # the job's own call has succeeded
            reason = f"cannot be counted: {type(error).__name__}: {error}"
            note(self._flops, self._function, UNKNOWN, reason)
            self._each = 0.0
        return self._each, KEYED if self.size is _keyed else self._size

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        started = perf_counter()
        size = self._real_size()
        if size < self._size:  # the job cleared the cache
            self._forget()
        is_new, self._size = size != self._size, size
        if is_new:
            self._learn(args, kwargs)
        elif self.size is _keyed:
            known = self._known(args, kwargs)
            if known is None:
                self._meet(args, kwargs)
            else:
                self._each = known
                self._pause(started)

    def _learn(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """There are more programs than before: this call's, or those of others in its cache."""
        before, cost_before = len(self._places), self._each
        kinds = self._arguments.kinds(args, kwargs)
        self._see(kinds, args, kwargs)
        self._each = self._cost(args, kwargs)
        # Programs that no call here has made: somebody else shares the cache, or another thread.
        are_unseen = len(self._places) == before or self._size != len(self._places)
        if are_unseen or (before and self._each != cost_before):
            self.size = _keyed
        self._remember(kinds)

    def _known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
        """The cost of a call, looked up; None for a signature not seen before."""
        # Arguments all count while a program may be in the cache that no call here was of.
        are_all = self._size > len(self._places)
        names = [*range(len(args)), *kwargs] if are_all else self._differing
        kinds = self._arguments.some(args, kwargs, names)
        if not are_all or self._differ(kinds) <= set(self._differing):
            return self._costs.get(self._key(kinds))
        return None

    def _meet(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call of a signature not seen before."""
        if len(self._costs) >= SIGNATURES_MOST:
            return
        self._each = self._cost(args, kwargs)
        kinds = self._arguments.kinds(args, kwargs)
        self._see(kinds, args, kwargs)
        self._remember(kinds)

    def _see(self, kinds: Kinds, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._places.add(hash((frozenset(kinds.items()), places_of(args, kwargs))))

    def _differ(self, kinds: Kinds) -> set[Any]:
        """The arguments in which a call differs from the first."""
        first = self._first or {}
        return {name for name in {**first, **kinds} if first.get(name) != kinds.get(name)}

    def _key(self, kinds: Kinds) -> int:
        return hash(tuple(kinds.get(name) for name in self._differing))

    def _remember(self, kinds: Kinds) -> None:
        """The cost of calls like this one."""
        if self._first is None:
            self._first = kinds
        names = self._differ(kinds)
        if not names <= set(self._differing):
            self._differing = tuple(sorted(names.union(self._differing), key=str))
            self._costs.clear()  # their keys were shorter
            self._costs[self._key(self._first)] = self._first_cost
        key = self._key(kinds)
        if self._costs.setdefault(key, self._each) != self._each:
            reason = "has programs that its arguments do not tell apart"
            note(self._flops, self._function, INCOMPLETE, reason)
        self._costs[key] = self._each
        if len(self._costs) == 1:
            self._first_cost = self._each

    def _pause(self, started_s: float) -> None:
        """After a dear look, let so many calls count like this one that it takes its share only."""
        now = perf_counter()
        took_s, since_s = now - started_s, started_s - self._looked_at_s
        calls, self._looked_at_s = self._skipped + 1, now
        self._skipped = 0
        allowed_s = max(CHEAP_S, SHARE * since_s / calls)
        self._dear = self._dear + 1 if took_s > allowed_s else 0
        if self._dear > DEAR_LEAST:
            self._skip = self._skipped = min(int(took_s / allowed_s), SKIPPED_MOST)
            reason = "has too many arguments to look at in each call: an estimate"
            note(self._flops, self._function, INCOMPLETE, reason)

    def _cost(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        """FLOPs of one such call; 0, with a warning published, when unknown."""
        found = cost(self._function, args, kwargs)
        if found.code is not None:
            note(self._flops, self._function, found.code, found.note)
        return found.flops or 0.0


def note(flops: Flops, function: Any, code: str, reason: str) -> None:
    """Publish what is to be known of a function's FLOPs. Raises nothing."""
    try:
        name = str(getattr(function, "__name__", None) or type(function).__name__)
    except Exception:  # noqa: BLE001  # an object of the job's may raise what it likes
        name = "?"
    flops.note(code, f"track({name}): {reason}; tell step(flops=) instead")


def _one() -> int:
    return 1


def _keyed() -> int:
    return 0
