"""What the pages of a fleet share: the newest answer, the filter, the grouping, the quantity."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tpusmi.fleet.figures import FleetHost, FleetSnapshot
from tpusmi.fleet.fleet_source import FleetSource
from tpusmi.text import clean
from tpusmi.tui.base_scene import BaseScene
from tpusmi.tui.draw.graphs import QUANTITIES, Quantity
from tpusmi.tui.draw.look import Look
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.fleet.fleet_filtering import keeps
from tpusmi.tui.fleet.fleet_options import GROUPINGS, FleetOptions
from tpusmi.tui.fleet.fleet_rows import Figures, FleetRow, rows_of, total_of

LABEL_MOST, ERROR_MOST = 80, 400


@dataclass(frozen=True)
class Scope:
    """The hosts that a page is about: all of them, or those of one row."""

    by: str = ""
    """`job` or `slice`; empty for all hosts."""
    name: str = ""
    """The name as it is in the key of the row; empty for hosts of none."""
    title: str = ""


class FleetScene(BaseScene):
    """Written to only by the app and its pages."""

    def __init__(
        self,
        look: Look,
        options: FleetOptions,
        source: FleetSource,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(look, options.interval_s)
        self.options, self.source = options, source
        self.label = clean(source.label, LABEL_MOST)
        self.clock = clock
        self.by = options.group if options.group in GROUPINGS else GROUPINGS[0]
        self.filter = options.filter
        names = {q.name.casefold(): q for q in QUANTITIES}
        self.quantity: Quantity = names.get(options.quantity.casefold(), QUANTITIES[0])
        self.span_s = options.span_s
        self.snapshot: FleetSnapshot | None = None
        self.error = ""
        """Why the newest look failed; empty if it did not."""
        self._hosts: tuple[object, tuple[FleetHost, ...]] | None = None
        self._rows: dict[tuple[str, Scope], tuple[object, list[FleetRow]]] = {}
        self._total: tuple[object, Figures] | None = None

    @property
    def picture_name(self) -> str:
        return "fleet"

    @property
    def age_s(self) -> float | None:
        """How old the newest answer is; None before the first."""
        return None if self.snapshot is None else max(0.0, self.clock() - self.snapshot.at_s)

    @property
    def is_simulated(self) -> bool:
        """Some host of it is simulated."""
        return self.snapshot is not None and any(h.simulated for h in self.snapshot.hosts)

    def take(self, snapshot: FleetSnapshot) -> None:
        """Accept a newer answer."""
        self.snapshot, self.error = snapshot, ""

    def fail(self, sentence: str) -> None:
        """Keep that the source could not be read; the last answer stays."""
        self.error = clean(sentence, ERROR_MOST)

    def next_quantity(self, step: int) -> None:
        """Show the next quantity."""
        self.quantity = stepped(QUANTITIES, self.quantity, step)

    # -- what is shown, made once for each answer

    @property
    def total(self) -> Figures | None:
        """The figures of all hosts, whatever the filter is."""
        if self.snapshot is None:
            return None
        if self._total is None or self._total[0] is not self.snapshot:
            self._total = self.snapshot, total_of(self.snapshot)
        return self._total[1]

    def hosts(self) -> tuple[FleetHost, ...]:
        """The hosts that match the filter."""
        if self.snapshot is None:
            return ()
        made_of = (self.snapshot, self.filter)
        if self._hosts is None or not _same(self._hosts[0], made_of):
            self._hosts = made_of, tuple(keeps(self.snapshot, self.filter))
            self._rows.clear()
        return self._hosts[1]

    def rows(self, by: str, scope: Scope = Scope()) -> list[FleetRow]:  # noqa: B008
        """The rows of the hosts in that scope which match the filter, by name."""
        hosts: Sequence[FleetHost] = self.hosts()
        made = self._rows.get((by, scope))
        if made is not None and made[0] is hosts:
            return made[1]
        if scope.by:
            groups = {row.key: row for row in self.rows(scope.by)}
            group = groups.get((scope.by, scope.name))
            rows = [] if group is None else rows_of(group.hosts, by)
        else:
            rows = rows_of(hosts, by)
        self._rows[by, scope] = hosts, rows
        return rows

    def host(self, key: str) -> FleetHost | None:
        """That host, whatever the filter is; None where it is no longer in the answer."""
        hosts = () if self.snapshot is None else self.snapshot.hosts
        return next((h for h in hosts if h.key == key), None)


def _same(made_of: object, now: tuple[object, str]) -> bool:
    return isinstance(made_of, tuple) and made_of[0] is now[0] and made_of[1] == now[1]
