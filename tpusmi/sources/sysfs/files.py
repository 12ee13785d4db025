"""Small files of the kernel, read without ever blocking and without trusting them."""

from __future__ import annotations

import os
import stat

from tpusmi.text import clean

READ_MOST = 256
NUMBER_MOST = 10
"""Characters of a number of 32 bits."""


class NotRegularError(OSError):
    """Not a regular file: a pipe would block, and opening a device node would disturb its job."""


def text_of(path: str, most: int) -> str:
    """The first bytes of a regular file. It never waits. Raises OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotRegularError
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(file, most).decode("utf-8", "replace")
    finally:
        os.close(file)


class SysfsDirectory:
    """One directory of sysfs, and the trouble with its files.

    Nothing here raises: a file that is absent, refused or malformed is None.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.troubles: list[str] = []
        """A sentence for each file that exists and could not be read."""
        self.denied = False

    def text(self, name: str) -> str | None:
        """The first line of a file, made safe to show."""
        try:
            text = text_of(f"{self.path}/{name}", READ_MOST)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._trouble(name, error)
            return None
        return clean(text.partition("\n")[0])

    def number(self, name: str, base: int = 16) -> int | None:
        """The number a file holds, as the kernel writes it (`0x1ae0`, `-1`)."""
        text = self.text(name)
        if text is None:
            return None
        try:
            if len(text) <= NUMBER_MOST:
                return int(text, base)
        except ValueError:
            pass
        self.troubles.append(f"{name} is not a number but {text[:20]!r}")
        return None

    def link(self, name: str) -> str | None:
        """The last part of a link's target: the number of an IOMMU group, the name of a driver."""
        try:
            target = os.readlink(f"{self.path}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._trouble(name, error)
            return None
        return clean(os.path.basename(target.rstrip("/")), 64) or None

    def names(self, name: str) -> list[str]:
        """The names in a subdirectory; empty when that is absent."""
        try:
            return os.listdir(f"{self.path}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._trouble(name, error)
            return []

    def _trouble(self, name: str, error: OSError) -> None:
        self.denied = self.denied or isinstance(error, PermissionError)
        is_odd = isinstance(error, NotRegularError)
        why = "is not a regular file" if is_odd else f"cannot be read: {error.strerror}"
        self.troubles.append(f"{name} {why}")


def number_after(prefix: str, name: str) -> int | None:
    """The N of `accelN`; None when the name has another form."""
    digits = name.removeprefix(prefix)
    if not name.startswith(prefix) or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits)
