"""The page of a host: its state, its past, its devices and processes, what is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import inf

from tpusmi.fleet.fleet_figures import FleetHost, HostHistory, HostState
from tpusmi.report import words
from tpusmi.text import clean
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.fleet import host_curves, host_lines
from tpusmi.tui.fleet.fleet_page import ScrollingFleetPage
from tpusmi.tui.fleet.fleet_scene import FleetScene
from tpusmi.tui.fleet.host_reading import HostDetails, HostPast, HostReading
from tpusmi.tui.fleet_keys import HOST

LATE_S = 3.0
"""A question that is open for longer is mentioned."""
DETAILS_MOST_S, DETAILS_TICKS = 15.0, 3
"""Older details than that, or than so many intervals, give way to the numbers of the answer."""
SPAN_S = 3600
"""The first span of the graphs."""
PAST_LEAST_S = 5.0
"""The past is not read more often than this."""
GRAPHS_FROM, GRAPHS_SHARE = 14, 3
"""Screens with at least this many lines have graphs, on a third of them."""
READING_PAST = "reading its past …"
NO_PAST = "Its past is unknown."
NOT_THEN = "The answer of that time does not have it: these are its numbers of another time."
GONE = "It is no longer in the answer: these are its last numbers."


class HostPage(ScrollingFleetPage):
    """One host; Tab goes to the next one of the list that it was opened from."""

    KEYS = HOST
    BINDINGS = [*HOST]  # noqa: RUF012  # Textual's name and type
    NAME = "host"

    def __init__(self, scene: FleetScene, key: str, keys: Sequence[str]) -> None:
        super().__init__(scene)
        self._key, self._keys = key, keys
        self._reading = HostReading(scene.source, self.post_message)
        self._host = scene.host(key)
        """As it was in the last answer that it was in."""
        self._details: FleetHost | None = None
        self._details_at_s = 0.0
        """When they came, by CLOCK_MONOTONIC."""
        self._details_error = ""
        self._details_of: float | None = None
        """The moment of which they are; None for now."""
        self._asked_of: object = None
        """The answer for which its details were asked."""
        self._past: Mapping[str, HostHistory] | None = None
        self._past_error = ""
        self._past_of: float | None = None
        """The moment at which it ends; None for now."""
        self._past_asked_of: float | None = None
        self._past_at_s = -inf
        """When its past was asked for, by CLOCK_MONOTONIC."""
        if scene.span_s not in host_curves.SPANS_S:
            scene.span_s = SPAN_S

    @property
    def span_s(self) -> int:
        """How far back the graphs go."""
        return self.scene.span_s or SPAN_S

    @property
    def page_title(self) -> str:
        return f"host {clean(self.host_name, 60)}"

    @property
    def host_name(self) -> str:
        return "" if self._host is None else self._host.name

    def draw_shown(self) -> None:
        newest = self.scene.host(self._key)
        self._host = newest or self._host
        host = self._host
        if host is None:
            self.lines.show([self.look.line((self._gone, "warn"))])
            return
        self._ask(host)
        width, height = self.room
        text = self._text(host, newest is None, width, height)
        self.lines.show(self.in_view(text, height))

    def _text(self, host: FleetHost, is_gone: bool, width: int, height: int) -> list[Row]:
        """All lines of the page."""
        look, rich = self.look, self._with_details(host)
        text: list[Row] = [look.line((self._gone, "warn"))] if is_gone else []
        text += host_lines.head(look, rich, width)
        text += self._remarks(host, width)
        text += host_lines.notices(look, rich, width, self._of_slice(host))
        text += [(), *self._graphs(rich, width, height)]
        text += [*host_lines.devices(look, rich, width), ()]
        text += host_lines.processes(look, rich, width)
        return text

    def _of_slice(self, host: FleetHost) -> list[FleetHost]:
        """All hosts of its slice; none for a host without one."""
        hosts = () if self.scene.snapshot is None else self.scene.snapshot.hosts
        return [h for h in hosts if host.slice and h.slice == host.slice]

    @property
    def _gone(self) -> str:
        return GONE if self.scene.shown_s is None else NOT_THEN

    def _with_details(self, host: FleetHost) -> FleetHost:
        """The host with all of its metrics, where they have been read. Of a host that has gone or
        is down they stay, as old ones.
        """
        details, age_s = self._details, time.monotonic() - self._details_at_s
        if details is None or self._details_of != self.scene.shown_s:
            return host
        most_s = max(DETAILS_MOST_S, DETAILS_TICKS * self.scene.interval_s)
        if age_s > most_s and self._details_of is None:
            return host
        if host.state != HostState.LIVE and not details.devices:
            return host
        return details._replace(
            state=host.state, reason=host.reason, age_s=host.age_s, notices=host.notices
        )

    def _remarks(self, host: FleetHost, width: int) -> list[Row]:
        """What could not be read, or is late."""
        texts = [f"details: {self._details_error}"] if self._details_error else []
        if self._past_error and self._past is not None:  # its graphs are older than they look
            texts.append(f"past: {self._past_error}")
        if (late_s := self._reading.waited_s(host)) >= LATE_S:
            texts.append(f"no answer about it for {words.elapsed(late_s)}")
        return [row for text in texts for row in self.look.wrapped(text, width, "warn")]

    def _graphs(self, host: FleetHost, width: int, height: int) -> list[Row]:
        if height < GRAPHS_FROM - 2:
            return []
        if self._past is None:
            text = f"past: {self._past_error}" if self._past_error else READING_PAST
            return [*self.look.wrapped(text, width, "dim"), ()]
        at_s = self._end_s(self._past)
        most = max(host_curves.LEAST_HEIGHT, height // GRAPHS_SHARE)
        size = width, host_curves.height_for(self._past, width, most)
        end = "now" if self.scene.shown_s is None else "then"
        drawn = host_curves.lines(self.look, host, self._past, (at_s, self.span_s), size, end)
        return [*(drawn or self.look.wrapped(NO_PAST, width, "dim")), ()]

    def _end_s(self, past: Mapping[str, HostHistory]) -> float:
        """The time at which the graphs end. A past of another moment than what is shown keeps its
        place in time until the right one is read.
        """
        end_s = host_curves.end_of(past) if self._past_of == self.scene.shown_s else None
        s = self.scene.snapshot
        return end_s or (self.scene.clock() if s is None else s.at_s)

    # -- reading

    def _ask(self, host: FleetHost) -> None:
        """Ask again for what may be newer."""
        scene = self.scene
        moment_s, is_moved = scene.shown_s, self._past_of != scene.shown_s
        if scene.paused and self._past is not None and not is_moved:
            return
        if self._asked_of is not scene.snapshot and self._reading.ask_details(host, moment_s):
            self._asked_of = scene.snapshot
        if self._is_past_due(moment_s) and self._reading.ask_past(
            host, self.span_s, host_curves.POINTS, moment_s
        ):
            self._past_at_s, self._past_asked_of = time.monotonic(), moment_s

    def _is_past_due(self, moment_s: float | None) -> bool:
        """Whether its past has not been read, or there is more of it."""
        if self._past_asked_of != moment_s:
            return True
        if moment_s is not None and self._past is not None and self._past_of == moment_s:
            return False
        every_s = max(PAST_LEAST_S, self.scene.interval_s, self.span_s / host_curves.POINTS)
        return time.monotonic() - self._past_at_s >= every_s

    def on_host_details(self, message: HostDetails) -> None:
        if message.key != self._key or message.moment_s != self.scene.shown_s:
            return
        self._details_of = message.moment_s
        if isinstance(message.answer, str):
            self._details, self._details_error = None, message.answer
        else:
            self._details, self._details_error = message.answer, ""
            self._details_at_s = time.monotonic()
        self.draw()

    def on_host_past(self, message: HostPast) -> None:
        is_late = message.moment_s != self.scene.shown_s
        if message.key != self._key or message.span_s != self.span_s or is_late:
            return
        if isinstance(message.answer, str):
            self._past_error = message.answer
        else:
            self._past, self._past_error = message.answer, ""
            self._past_of = message.moment_s
        self.draw()

    # -- keys

    def action_span(self) -> None:
        """Give the graphs the next span."""
        self.scene.span_s = host_curves.next_span(self.span_s)
        self._forget_past()
        self.app.say(f"Graphs show {host_curves.span_words(self.span_s)}")  # type: ignore[attr-defined]
        self.draw()

    def _forget_past(self) -> None:
        self._past, self._past_error, self._past_at_s = None, "", -inf

    def action_step(self, step: int) -> None:
        """Show the host that many further on."""
        there = [key for key in self._keys if self.scene.host(key) is not None]
        if not there:
            return
        self._key = stepped(there, self._key, step)
        self._host, self._details, self._details_error = None, None, ""
        self._asked_of, self.top = None, 0
        self._forget_past()
        self.draw()

    def action_topology(self) -> None:
        """Show its slice as a torus."""
        if self._host is not None:
            self.app.open_topology(self._host)  # type: ignore[attr-defined]
