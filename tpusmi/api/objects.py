"""The classes of the Python API, made from the table of JSON keys.

`objects.pyi` beside it tells editors and mypy the same; `python assets/make_stub.py` writes it.
"""

from __future__ import annotations

from tpusmi.api.item import Item, object_class
from tpusmi.api.kinds import object_kinds
from tpusmi.api.parts import DevicePart, NoticePart, ProcessPart, SitePart
from tpusmi.api.whole import Whole

BASES = {
    "Snapshot": Whole,
    "Device": DevicePart,
    "Process": ProcessPart,
    "Site": SitePart,
    "Notice": NoticePart,
}
"""The classes with methods or a repr of their own."""

CLASSES = {
    name: object_class(name, kind, BASES.get(name, Item), __name__)
    for name, kind in object_kinds().items()
}
Item._classes.update(CLASSES)
globals().update(CLASSES)
