"""The chips that libtpu would use in this environment: `--only-visible`."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError

from tpusmi.cli.argument_types import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpusmi.report.select import Selection


def with_visible(selection: Selection, environ: Mapping[str, str] = os.environ) -> Selection:
    """The selection with those chips; unchanged where no variable names any. Raises ValueError for
    a variable that cannot be understood.
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
