"""Another user's numbers are on no chip that he does not hold alone, and judge no other process."""

from __future__ import annotations

import pytest
from test_join import JOB, OTHER, PORT, USED, agent, chips, column, holder, joined, libtpu, notes

from tpusmi.model import AGENT, DENIED, DeviceKey, Outcome, Reading, Snapshot, Visibility

STRANGER = 41001
NODES = ("/dev/vfio/0", "/dev/vfio/1")


def of_user(uid: int, *outcomes: Outcome) -> list[Outcome]:
    """The outcomes, with processes of that user."""
    return [o._replace(processes=tuple(p._replace(uid=uid) for p in o.processes)) for o in outcomes]


def holders(*outcomes: Outcome) -> Outcome:
    """One outcome of that source, as there is in truth."""
    return outcomes[0]._replace(processes=tuple(p for o in outcomes for p in o.processes))


def idle(o: Outcome) -> Outcome:
    """An agent that says also that its devices have run nothing for two hours."""
    rest = tuple(Reading("idle_s", d.key, 7200.0, 1000.0, AGENT, 5.0) for d in o.devices)
    return o._replace(readings=(*o.readings, *rest))


def on_chips(s: Snapshot, name: str) -> list[float | None]:
    return [s.value(name, d.key) for d in s.devices if d.chip is not None]


@pytest.mark.parametrize("holds", [(), NODES], ids=["holds-nothing", "has-opened-the-same-nodes"])
def test_the_agent_of_another_user_lays_no_numbers_over_held_chips(holds: tuple[str, ...]) -> None:
    (own,) = of_user(0, holder(JOB, *NODES))
    theirs = of_user(STRANGER, idle(agent(OTHER, (8, 9))), *([holder(OTHER, *holds)] * bool(holds)))
    s = joined(chips("v5e", 2), holders(own, *theirs[1:]), theirs[0])
    assert on_chips(s, USED) == on_chips(s, "idle_s") == [None, None]
    assert "listed separately" in notes(s)
    apart = [d for d in s.devices if d.chip is None]
    assert [d.owners for d in apart] == [(OTHER,), (OTHER,)]
    assert all(JOB not in d.owners for d in s.devices if s.value("idle_s", d.key) is not None)


def test_an_agent_whose_process_may_not_be_inspected_gets_no_chip_that_another_user_holds() -> None:
    (own,) = of_user(STRANGER, holder(JOB, NODES[0]))
    (theirs,) = of_user(0, agent(OTHER, (8,)))
    s = joined(chips("v5e", 2), own._replace(visibility=Visibility(not_inspected=3)), theirs)
    assert s.value(USED, s.devices[1].key) == 5
    assert s.devices[1].owners == (OTHER,)
    s = joined(chips("v5e", 1), own._replace(visibility=Visibility(not_inspected=3)), theirs)
    assert on_chips(s, USED) == [None]


def test_an_agent_that_cannot_be_seen_to_hold_a_chip_still_gets_the_free_ones() -> None:
    unseen = Outcome("holders", DENIED, visibility=Visibility(not_inspected=3))
    s = joined(chips("v5e", 2), unseen, agent(JOB, (8, 9)))
    assert on_chips(s, USED) == [5, 5]


def test_the_server_of_one_holder_lays_no_numbers_over_the_chips_of_another_user() -> None:
    (own,), (theirs,) = of_user(0, holder(JOB, NODES[1])), of_user(9, holder(OTHER, NODES[0]))
    server = libtpu({USED: {0: 7, 1: 7}}, PORT, OTHER)
    s = joined(chips("v5e", 2), holders(own, theirs), server)
    assert column(s, USED)[:2] == [None, None]


def test_processes_of_one_user_that_share_chips_still_have_their_numbers_there() -> None:
    both = of_user(7, holder(JOB, *NODES), holder(OTHER, *NODES), agent(JOB, (8, 9)))
    s = joined(chips("v5e", 2), holders(*both[:2]), both[2])
    assert on_chips(s, USED) == [5, 5]
    assert s.devices[0].key == DeviceKey(JOB, 0)
