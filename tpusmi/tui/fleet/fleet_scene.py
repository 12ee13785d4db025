"""What the pages of a fleet share: the newest answer, the filter, the grouping, the quantity."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot
from tpusmi.fleet.fleet_source import FleetError, FleetSource
from tpusmi.fleet.groups.fleet_filter import filtered
from tpusmi.fleet.groups.fleet_groups import FleetGroup, whole
from tpusmi.fleet.groups.group_members import GROUPINGS
from tpusmi.report.quantities import QUANTITIES, Quantity
from tpusmi.text import clean
from tpusmi.tui.base_scene import BaseScene
from tpusmi.tui.draw.look import Look
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.fleet.fleet_options import FleetOptions
from tpusmi.tui.fleet.fleet_rows import FleetRow, inside, rows_of

LABEL_MOST, ERROR_MOST = 80, 400


@dataclass(frozen=True)
class Scope:
    """The hosts that a page is about: all of them, or those of one row."""

    by: str = ""
    """`job` or `slice`; empty for all hosts."""
    key: str = ""
    """The key of the row."""
    title: str = ""


ALL = Scope()


class FleetAnswer(NamedTuple):
    """An answer with its groups, which take longest: made before it comes to the screen."""

    snapshot: FleetSnapshot
    total: FleetGroup
    filter: str
    kept: FleetSnapshot
    """What matches the filter."""
    by: str
    rows: list[FleetRow]
    """Those of `kept`."""
    moment_s: float | None = None
    """The Unix time that was asked for; None for now."""


class FleetFailure(NamedTuple):
    """Why there is no answer."""

    sentence: str
    moment_s: float | None


def prepared(s: FleetSnapshot, filter: str, by: str, moment_s: float | None = None) -> FleetAnswer:
    """The answer for a screen with that filter and that grouping."""
    kept = filtered(s, filter)
    rows = rows_of(kept, by)
    return FleetAnswer(
        snapshot=s,
        total=whole(s),
        filter=filter,
        kept=kept,
        by=by,
        rows=rows,
        moment_s=moment_s,
    )


class Preparing:
    """Reads on the thread of a Reader, and makes there what is shown."""

    def __init__(self, source: FleetSource, scene: FleetScene) -> None:
        self._source, self._scene = source, scene

    def snapshot(self) -> FleetAnswer | FleetFailure:
        """The answer for the moment that the user has chosen."""
        scene, moment_s = self._scene, self._scene.moment_s
        try:
            read = self._source.snapshot(moment_s)
        except FleetError as error:
            return FleetFailure(str(error), moment_s)
        return prepared(read, scene.filter, scene.by, moment_s)


class FleetScene(BaseScene):
    """Written to only by the app and its pages."""

    def __init__(self, look: Look, options: FleetOptions, source: FleetSource) -> None:
        super().__init__(look, options.interval_s)
        self.options, self.source = options, source
        self.label = clean(source.label, LABEL_MOST)
        self.clock: Callable[[], float] = time.time
        self.by = options.group if options.group in GROUPINGS else GROUPINGS[0]
        self.filter = options.filter
        self.quantity: Quantity = QUANTITIES[0]
        """What heat maps and the topology show."""
        self.span_s: int | None = None
        """The span of graphs that the user has chosen."""
        self.snapshot: FleetSnapshot | None = None
        self.moment_s = options.at_s
        """The Unix time that the user has chosen, by the clock of the source; None for now."""
        self.shown_s: float | None = None
        """The same of the answer that is shown: another one while the chosen one is read."""
        self._newest: FleetAnswer | None = None
        """The last answer about now."""
        self._ahead_s = 0.0
        """How far the clock of the source is ahead of ours."""
        self.error = ""
        """Why the newest look failed; empty if it did not."""
        self._kept: tuple[FleetSnapshot, str, FleetSnapshot] | None = None
        self._rows: dict[tuple[str, Scope], list[FleetRow]] = {}
        self.total: FleetGroup | None = None
        """All hosts, whatever the filter is; None before the first answer."""

    @property
    def picture_name(self) -> str:
        return "fleet"

    @property
    def age_s(self) -> float | None:
        """How old the newest answer is, by the clock of the source; None before the first."""
        return None if self.snapshot is None else max(0.0, self.now_s - self.snapshot.at_s)

    @property
    def now_s(self) -> float:
        """Unix time by the clock of the source."""
        return self.clock() + self._ahead_s

    @property
    def back_s(self) -> float:
        """How far back the chosen moment is; 0 for now."""
        return 0.0 if self.moment_s is None else max(0.0, self.now_s - self.moment_s)

    @property
    def is_reading(self) -> bool:
        """What is shown is not of the chosen moment: that is being read."""
        return self.snapshot is not None and self.shown_s != self.moment_s

    @property
    def is_settled(self) -> bool:
        """What is shown stays the same: the past does not change."""
        is_there = self.snapshot is not None and not self.error and not self.is_reading
        return is_there and self.moment_s is not None

    def look_at(self, moment_s: float | None) -> None:
        """Choose a moment. For now the last answer is shown at once; others are read first."""
        is_past = moment_s is not None and moment_s < math.floor(self.now_s)
        self.moment_s = max(1.0, moment_s) if moment_s is not None and is_past else None
        self.error = ""
        if self.moment_s is None and self.shown_s is not None and self._newest is not None:
            self._show(self._newest)

    def travel(self, seconds: float) -> None:
        """Go that many seconds into the past, or back to now."""
        start_s = self.now_s if self.moment_s is None else self.moment_s
        self.look_at(math.floor(start_s) - seconds)

    @property
    def is_simulated(self) -> bool:
        """Some host of it is simulated."""
        return self.snapshot is not None and any(h.simulated for h in self.snapshot.hosts)

    def take(self, answer: FleetAnswer) -> None:
        """Accept a newer answer about the chosen moment."""
        self.error = ""
        if answer.moment_s is None:
            self._newest = answer
            self._ahead_s = answer.snapshot.at_s - self.clock()
        self._show(answer)

    def _show(self, answer: FleetAnswer) -> None:
        self.snapshot, self.shown_s = answer.snapshot, answer.moment_s
        self.total = answer.total
        self._kept = answer.snapshot, answer.filter, answer.kept
        self._rows = {(answer.by, ALL): answer.rows}

    def fail(self, sentence: str) -> None:
        """Keep that the source could not be read; the last answer stays."""
        self.error = clean(sentence, ERROR_MOST)

    def next_quantity(self, step: int) -> None:
        """Show the next quantity."""
        self.quantity = stepped(QUANTITIES, self.quantity, step)

    # -- what is shown, made once for each answer

    def group(self, scope: Scope) -> FleetGroup | None:
        """What the hosts of a scope add up to; None where there is none."""
        if not scope.by:
            return self.total
        return next((row.group for row in self.rows(scope.by) if row.key == scope.key), None)

    def kept(self) -> FleetSnapshot | None:
        """What matches the filter; None before the first answer."""
        s = self.snapshot
        if s is None:
            return None
        if self._kept is None or self._kept[0] is not s or self._kept[1] != self.filter:
            self._kept = s, self.filter, filtered(s, self.filter)
            self._rows.clear()
        return self._kept[2]

    def rows(self, by: str, scope: Scope = ALL) -> list[FleetRow]:
        """The rows of the hosts in that scope which match the filter, by name."""
        of = self.kept()
        if of is None:
            return []
        rows = self._rows.get((by, scope))
        if rows is None:
            rows = self._rows[by, scope] = self._made(of, by, scope)
        return rows

    def _made(self, of: FleetSnapshot, by: str, scope: Scope) -> list[FleetRow]:
        if not scope.by:
            return rows_of(of, by)
        group = next((row.group for row in self.rows(scope.by) if row.key == scope.key), None)
        return [] if group is None else rows_of(inside(of, group), by)

    def host(self, key: str) -> FleetHost | None:
        """That host, whatever the filter is; None where it is no longer in the answer."""
        hosts = () if self.snapshot is None else self.snapshot.hosts
        return next((h for h in hosts if h.key == key), None)
