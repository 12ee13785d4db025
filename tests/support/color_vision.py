"""How colors look: their contrast, and how far apart they are for different eyes.

Colors are red, green and blue, each up to 255.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Matrix = tuple[tuple[float, float, float], ...]
SEEING = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
PROTANOPIA = (
    (0.152286, 1.052583, -0.204868),
    (0.114503, 0.786281, 0.099216),
    (-0.003882, -0.048116, 1.051998),
)
"""Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB."""


def linear(color: Sequence[float]) -> list[float]:
    parts = (c / 255 for c in color)
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def contrast(a: Sequence[float], b: Sequence[float]) -> float:
    """As WCAG 2 defines it."""
    light, dark = sorted(map(_luminance, (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Sequence[float]) -> float:
    red, green, blue = linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lab(color: Sequence[float], eyes: Matrix = SEEING) -> tuple[float, float, float]:
    """CIE 1976 L*a*b*, under D65, as those eyes see it."""
    parts = linear(color)
    red, green, blue = (
        min(max(sum(a * b for a, b in zip(row, parts, strict=True)), 0.0), 1.0) for row in eyes
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def apart(a: Sequence[float], b: Sequence[float], eyes: Matrix = SEEING) -> float:
    """How different they look to those eyes; under 20 is much alike."""
    return math.dist(lab(a, eyes), lab(b, eyes))
