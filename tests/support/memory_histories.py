"""Ten minutes of memory as jobs have it: leaks, and what looks like one for a while."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

MIB = 1 << 20
SECONDS = 600
Amount = Callable[[int], float]
"""Bytes at each second."""


def leak(mib_per_min: float, base_mib: float = 2000.0, every_s: int = 1) -> Amount:
    """A list that is never emptied, which grows every few seconds."""
    return lambda t: (base_mib + mib_per_min * (t // every_s * every_s) / 60) * MIB


def sawtooth(period_s: int, height_mib: float, base_mib: float = 1000.0) -> Amount:
    """What is collected in each epoch, and given back."""
    return lambda t: (base_mib + height_mib * (t % period_s) / period_s) * MIB


def noise(deviation_mib: float, over_s: float, seed: int = 1) -> Amount:
    """Noise that forgets itself in that time."""
    source, now, past = random.Random(seed), 0.0, math.exp(-1 / over_s)
    values = []
    for _ in range(SECONDS + 300):
        now = past * now + math.sqrt(1 - past * past) * source.gauss(0, deviation_mib)
        values.append(now * MIB)
    return lambda t: 1000 * MIB + values[t]


def together(*parts: Amount) -> Amount:
    """The sum."""
    return lambda t: sum(part(t) for part in parts)


def filling_cache(most_mib: float, over_s: float) -> Amount:
    """A cache that misses less and less."""
    return lambda t: most_mib * MIB * (1 - math.exp(-t / over_s))


def cache_of_random_keys(seed: int, mib: float = 0.25) -> Amount:
    """A cache of what is asked for, some of it seldom: it misses less and less, and never stops."""
    source, keys, sizes = random.Random(seed), set(), []
    for _ in range(SECONDS + 300):
        keys |= {int(source.expovariate(1 / 30)) for _ in range(4)}
        sizes.append(len(keys) * mib * MIB)
    return lambda t: sizes[t]


def warming_up(most_mib: float) -> Amount:
    """Weights, optimizer, first batches: steps, and a peak while it compiles."""

    def at(t: int) -> float:
        level = sum(t >= start for start in (5, 20, 45, 90, 150)) / 5
        return (most_mib * level + (800 if 60 <= t < 80 else 0)) * MIB

    return at


def evaluations(every_s: int, for_s: int, height_mib: float) -> Amount:
    """Evaluations, in which results are collected, and a checkpoint now and then."""

    def at(t: int) -> float:
        into = t % every_s
        peak = height_mib * into / for_s if into < for_s else 0.0
        return (3000 + peak + (500 if t % 200 < 8 else 0)) * MIB

    return at


def one_step(at_s: int, mib: float) -> Amount:
    """Something that is made once, and kept."""
    return lambda t: (1000 + (mib if t >= at_s else 0)) * MIB


LEAKS = {
    "a small list, 0.1 MiB a minute": (leak(0.1, 40), 0.1),
    "1 MiB a minute, in noise": (together(leak(1), noise(0.3, 5)), 1.0),
    "10 MiB a minute, in epochs of 40 s": (together(leak(10), sawtooth(40, 120)), 10.0),
    "40 MiB a minute, at each evaluation": (together(leak(40, every_s=30)), 40.0),
    "100 MiB a minute, in epochs, evaluations and noise": (
        together(leak(100), sawtooth(45, 300), evaluations(95, 20, 900), noise(10, 5)),
        100.0,
    ),
}
"""What grows, and its rate in MiB per minute."""
INNOCENT = {
    "warm-up": warming_up(6000),
    "a cache that fills": filling_cache(4000, 150),
    "a slow cache, and epochs": together(filling_cache(900, 400), sawtooth(50, 200)),
    "a cache of random keys": cache_of_random_keys(7),
    "evaluations and checkpoints": evaluations(140, 50, 2500),
    "epochs of two minutes": together(sawtooth(120, 3000), noise(5, 5)),
    "epochs of four minutes": sawtooth(240, 3000),
    "one step up": one_step(250, 700),
    "slow noise": noise(200, 120, seed=3),
    "fast noise": noise(200, 4, seed=4),
    "steady": lambda t: 5000.0 * MIB,
}
