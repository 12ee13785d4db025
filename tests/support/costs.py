"""What each test costs, told by its folder and by the helpers it uses: markers to choose by.

`pytest -m fast` is what one runs while thinking: units, sources and the pure parts of the views.
`pytest -m "not browser"` is everything that needs no Chromium, `pytest -m golden` what compares
with a file in the tree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
MARKERS = {
    "fast": "none of the costs below",
    "process": "starts commands, servers or namespaces, each a process of its own",
    "jax": "starts a job that imports JAX",
    "tui": "runs the dashboard on a script",
    "browser": "drives a Chromium",
    "slow": "computes for seconds",
    "fuzz": "mutates inputs for a while",
    "golden": "compares with a file in the tree: TPUSMI_ACCEPT=1 writes it",
    "accelerator": "needs a TPU or GPU that JAX can use",
}
OF_FOLDERS = {
    "processes": "process",
    "web": "process",
    "fuzz": "fuzz",
    "accelerator": "accelerator",
}
OF_FILES = {"test_history.py": "slow", "test_patterns.py": "slow"}
OF_HELPERS = {
    "browsers": "browser",
    "certificates": "process",
    "commands": "process",
    "dashboards": "tui",
    "goldens": "golden",
    "hostile_machine": "process",
    "jobs": "jax",
    "listening_commands": "process",
    "namespaces": "process",
    "networks": "process",
    "notebook_kernels": "process",
    "official_clients": "process",
    "private_dev": "process",
    "private_machine": "process",
    "profiled_jobs": "jax",
    "run_as": "process",
    "scrapers": "process",
    "simulated_hosts": "process",
    "terminals": "process",
    "web_servers": "process",
}
"""By module of `support`; the others cost next to nothing."""
OF_FIXTURES = {"golden_screen": ("golden", "tui"), "snap_compare": ("golden", "tui")}
OF_MODULES = {"subprocess": "process"}


def mark(item: pytest.Function) -> None:
    """Add the markers of what the test costs; `fast` where it costs nothing."""
    parts = item.path.relative_to(TESTS).parts
    places = OF_FOLDERS | OF_FILES
    costs = {places[part] for part in parts if part in places}
    fixtures = item._fixtureinfo.name2fixturedefs
    for name in fixtures:
        costs.update(OF_FIXTURES.get(name, ()))
    functions = [item.function, *(one.func for found in fixtures.values() for one in found)]
    costs.update(_costs([inspect.unwrap(f) for f in functions]))
    for cost in sorted(costs) if costs - {"golden"} else [*costs, "fast"]:
        item.add_marker(cost)


def _costs(functions: list[Callable[..., object]]) -> Iterator[str]:
    """What they use, and what those use that stand beside them."""
    seen = set()
    while functions:
        function = functions.pop()
        code = getattr(function, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        for name in _names(code):
            value = function.__globals__.get(name)
            yield from _cost(value)
            if getattr(value, "__module__", None) == function.__module__:
                functions.append(inspect.unwrap(value))


def _cost(value: Any) -> Iterator[str]:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if isinstance(value, ModuleType) and module in OF_MODULES:
        yield OF_MODULES[module]
    if isinstance(module, str) and module.startswith("support."):
        helper = OF_HELPERS.get(module.partition(".")[2])
        if helper:
            yield helper


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
