"""Reading about one host, on threads beside the screen's."""

from __future__ import annotations

from support.fleets import ScriptedFleet, host

from tpusmi.tui.fleet.host_reading import HostReading


def test_a_question_may_be_answered_while_the_screen_looks_how_long_it_waits() -> None:
    reading = HostReading(ScriptedFleet(), lambda message: None)

    class Key(str):
        """A key of a host, at whose first comparison a thread ends."""

        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            reading._asked.pop(("past", "a"), None)
            return str.__eq__(self, other)

    reading._asked = {("details", "a"): 0.0, ("past", "a"): 0.0}
    assert reading.waited_s(host(0)._replace(key=Key("a"))) > 0
