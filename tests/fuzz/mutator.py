"""Inputs made of known ones: bytes changed, removed, repeated and taken from others, by a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

MOST_BYTES = 512 * 1024
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1)
REPEATS = (2, 3, 10, 100, 5000)


class Mutator:
    """An endless source of inputs. The same seed gives the same ones."""

    def __init__(self, seed: int, inputs: Sequence[bytes], words: Sequence[bytes] = ()) -> None:
        """`words` are what the format is made of."""
        self.chance = random.Random(seed)
        self._inputs = [*inputs]
        self._words = [*words] or [b"\0"]

    def next(self) -> bytes:
        """Another input: a few changes to a known one, now and then nothing but noise."""
        chance = self.chance
        if chance.random() < 0.03:
            return chance.randbytes(chance.choice((0, 1, 7, 100, 5000)))
        data = bytearray(chance.choice(self._inputs))
        for _ in range(chance.choice((1, 1, 2, 3, 8, 30))):
            chance.choice(self._changes)(self, data)
        return bytes(data[:MOST_BYTES])

    def _span(self, data: bytearray) -> tuple[int, int]:
        start = self.chance.randint(0, len(data))
        return start, min(len(data), start + self.chance.choice((0, 1, 2, 4, 8, 16, 64, 300, 5000)))

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)

    def _noise(self, data: bytearray) -> None:
        start, end = self._span(data)
        data[start:end] = self.chance.randbytes(end - start)

    def _remove(self, data: bytearray) -> None:
        start, end = self._span(data)
        del data[start:end]

    def _repeat(self, data: bytearray) -> None:
        start, end = self._span(data)
        piece = bytes(data[start:end])
        data[start:end] = (piece * self.chance.choice(REPEATS))[:MOST_BYTES]

    def _number(self, data: bytearray) -> None:
        start, _ = self._span(data)
        number, size = self.chance.choice(NUMBERS), self.chance.choice((1, 2, 4, 8))
        order = self.chance.choice(("little", "big"))
        data[start : start + size] = (number % 256**size).to_bytes(size, order)

    def _word(self, data: bytearray) -> None:
        start, end = self._span(data)
        word = self.chance.choice(self._words) * self.chance.choice((1, 1, 1, *REPEATS))
        data[start : self.chance.choice((start, end))] = word[:MOST_BYTES]

    def _other(self, data: bytearray) -> None:
        other = self.chance.choice(self._inputs)
        at = self.chance.randint(0, len(other))
        start, end = self._span(data)
        data[start:end] = other[at : at + self.chance.choice((1, 8, 64, 1000, 10_000))]

    def _cut(self, data: bytearray) -> None:
        del data[self.chance.randint(0, len(data)) :]

    _changes = (_flip, _flip, _noise, _remove, _repeat, _number, _word, _word, _other, _cut)
