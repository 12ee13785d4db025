"""Records what each version of JAX has of the names that the slice uses, for
`tests/data/jax_surfaces.json`.

    python tests/support/jax_surfaces.py PLACE… > tests/data/jax_surfaces.json

A PLACE is a directory filled by `pip install --no-deps --target PLACE jax==0.4.30 jaxlib==0.4.30`,
or a Python that has JAX.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

FUNCTIONS = ("key_value_set", "key_value_dir_get", "key_value_delete")
ONE = "--one"
"""The first word of a child's command: it records the JAX that it can import, or has to."""


def surface() -> dict[str, Any]:
    """Of the JAX that can be imported here."""
    import jax
    from jax._src import distributed, lib

    module = getattr(lib, "_jax", None) or lib.xla_extension
    client = module.DistributedRuntimeClient
    return {
        "version": jax.__version__,
        "state": sorted(distributed.State.__annotations__),
        "global_state": type(distributed.global_state).__name__,
        "client": {name: getattr(client, name).__doc__ for name in FUNCTIONS},
    }


def recorded(place: str) -> dict[str, Any]:
    """Of the JAX at that place, by a process of its own."""
    is_python = os.path.isfile(place)
    command = [place, __file__, ONE] if is_python else [sys.executable, __file__, ONE, place]
    output = subprocess.run(command, capture_output=True, check=True, timeout=120)
    found: dict[str, Any] = json.loads(output.stdout)
    return found


if __name__ == "__main__":
    places = sys.argv[1:]
    if places[:1] == [ONE]:
        sys.path[:0] = places[1:]
        made: Any = surface()
    else:
        made = [*map(recorded, places)]
    json.dump(made, sys.stdout, indent=1)
    sys.stdout.write("\n")
