"""The name of a job: that of its program, from a command line whose secrets are hidden. Pure."""

from __future__ import annotations

import os
import re

NAME_MOST = 64
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]{0,8}")
_WITH_VALUE = ("-W", "-X")


def job_name(command: str) -> str:
    """`train.py` for `python -u /home/ann/train.py --lr=1`, `maxtext.train` for `python3 -m
    maxtext.train`, and the name of any other program.
    """
    program, *words = command.split(None, 32) or [""]
    name = os.path.basename(program)
    if _PYTHON.fullmatch(name):
        name = _of_python(words) or name
    return name[:NAME_MOST]


def _of_python(words: list[str]) -> str:
    """The module or script that Python runs; empty for code in the command line."""
    left = iter(words)
    for word in left:
        if word == "-m":
            return next(left, "")
        if word in _WITH_VALUE:
            next(left, None)
        elif word.startswith("-c"):
            return ""
        elif not word.startswith("-"):
            return os.path.basename(word)
    return ""
