"""Which metrics ports are asked besides the usual ones, and which chips the environment shows."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError

from tpusmi.cli.argument_types import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tpusmi.model import Host
    from tpusmi.report.select import Selection


def with_ports(host: Host, chosen: Sequence[int] | None) -> Host:
    """The host, asked on these ports as well. Whose they are is looked up as of all others."""
    if not chosen:
        return host
    return host._replace(metrics_ports=tuple(dict.fromkeys((*host.metrics_ports, *chosen))))


def with_visible(selection: Selection, environ: Mapping[str, str] = os.environ) -> Selection:
    """The selection with the chips that libtpu would use in this environment; as it is where no
    variable names any. Raises ValueError for a variable that cannot be understood.
    """
    from tpusmi.merge.machine import CHIPS_VARIABLES, PATHS_VARIABLE

    paths = [path.strip() for path in environ.get(PATHS_VARIABLE, "").split(",")]
    if any(paths):
        return selection._replace(visible_nodes=tuple(filter(None, paths)))
    for name in CHIPS_VARIABLES:
        if text := environ.get(name, ""):
            try:
                return selection._replace(visible_chips=tuple(numbers(text)))
            except ArgumentTypeError as error:
                raise ValueError(f"--only-visible: {name}: {error}") from None
    return selection
