"""The samples of one exporter, sorted by what they are about, in as much room as a host needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpusmi.fleet.hosts.sample_reads import HOST, LINK, NOTICE, NUMBER_MOST, Part, SampleRead
from tpusmi.model import CHIP, DEVICE, PROCESS

ITEMS_MOST = {HOST: 1, CHIP: 256, DEVICE: 1024, PROCESS: 128, LINK: 1024, NOTICE: 512}
"""More than an exporter says of a host."""
ITEMS_OF_ALL_MOST = 400_000
"""In all hosts together."""
TEXT_BYTES_MOST = 64 << 20
"""Labels of all hosts together. 100,000 chips have half of that."""

SHARES = 4
"""One instance can have a quarter of the room: it may be a server that has gathered others."""

Identity = tuple[str | None, ...]


class Room:
    """How many more items and labels there is room for, in all hosts together."""

    def __init__(self) -> None:
        self.items_left = ITEMS_OF_ALL_MOST
        self.bytes_left = TEXT_BYTES_MOST
        self.left_out = 0
        """Samples of items that had no room."""


class RoomOfInstance:
    """The share of that room which one instance can have, however many hosts it names."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._items_left = ITEMS_OF_ALL_MOST // SHARES
        self._bytes_left = TEXT_BYTES_MOST // SHARES
        self.hosts = 0
        """How many it has named."""

    def takes(self, texts: Iterable[str | None]) -> bool:
        """Whether there is room for these labels, which are then in it."""
        size = sum(len(text) * (1 if text.isascii() else 4) for text in texts if text)
        if size > min(self._bytes_left, self._room.bytes_left):
            return False
        self._bytes_left -= size
        self._room.bytes_left -= size
        return True

    def takes_item(self, identity: Identity) -> bool:
        """The same for another item."""
        if min(self._items_left, self._room.items_left) <= 0 or not self.takes(identity):
            return False
        self._items_left -= 1
        self._room.items_left -= 1
        return True

    def leave_out(self) -> None:
        """Count a sample that has no room."""
        self._room.left_out += 1


class HostItem:
    """A chip, device, process, link or notice, or the host itself. Its texts are not clean yet."""

    __slots__ = ("facts", "values")

    def __init__(self) -> None:
        self.facts: Mapping[str, str] = {}
        self.values: dict[str, float] = {}


class HostParts:
    """What one exporter says of its host."""

    def __init__(self, room: RoomOfInstance) -> None:
        self._room = room
        self._items: dict[str, dict[Identity, HostItem]] = {scope: {} for scope in ITEMS_MOST}

    def items(self, scope: str) -> Mapping[Identity, HostItem]:
        """The items of that scope, by the labels that identify them."""
        return self._items[scope]

    @property
    def host(self) -> HostItem:
        """The host itself."""
        return next(iter(self._items[HOST].values()), None) or HostItem()

    def add(self, read: SampleRead, labels: Mapping[str, str], value: float) -> None:
        """Take in a sample. Of two that say the same thing the first one counts."""
        if read.part is Part.NUMBER:
            number = read.number(value)
            if number is not None:
                item = self._item(read, labels)
                if item is not None:
                    item.values.setdefault(read.field, number)
        elif value == 1 or (read.part is Part.FACTS and 1 < value <= NUMBER_MOST):
            item = self._item(read, labels)
            if item is not None and not _tell(item, read, labels, self._room):
                self._room.leave_out()

    def _item(self, read: SampleRead, labels: Mapping[str, str]) -> HostItem | None:
        """The item that the sample is about; None where there is no room for another one."""
        items = self._items[read.scope]
        identity = tuple([labels.get(name) for name in read.identity])
        item = items.get(identity)
        if item is None:
            is_full = len(items) >= ITEMS_MOST[read.scope]
            if is_full or not self._room.takes_item(identity):
                self._room.leave_out()
                return None
            item = items[identity] = HostItem()
        return item


def _tell(
    item: HostItem, read: SampleRead, labels: Mapping[str, str], room: RoomOfInstance
) -> bool:
    """False where there is no room for it."""
    facts = {read.field: labels.get(read.field, "")} if read.part is Part.WORD else labels
    if not room.takes(facts.values()):
        return False
    item.facts = {**facts, **item.facts} if item.facts else facts
    return True
