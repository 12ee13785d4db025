"""One process of the simulated job: holds its chips, locks libtpu's file, serves metrics.

`python -m tpusmi.simulate.job DIRECTORY NUMBER`, started by the keeper. It ends when its stdin
does, however the keeper has ended.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys

from tpusmi.simulate.running import Running

LOOK_S = 0.2
"""How soon other faults are noticed."""


def main(directory: str, process: int) -> None:
    """Hold and serve until stdin ends. One line on stdout says that everything is open."""
    running = Running(directory)
    me = running.description["processes"][process]
    held = [os.open(directory + node, os.O_RDWR) for node in me["holds"]]
    if me["locks"]:
        lock(f"{directory}/tmp/libtpu_lockfile")
    if "orphan" in running.faults and os.fork():
        os._exit(0)  # the child has the nodes, and answers for us
    from tpusmi.simulate.host import PortBusyError
    from tpusmi.simulate.server import Port

    port = Port(running, process, me["port"])
    try:
        port.update()
    except PortBusyError as error:
        _say(f"busy {error}")
        os._exit(1)
    _say(f"ready {os.getpid()}")
    while not select.select([sys.stdin], [], [], LOOK_S)[0]:
        if running.refresh():
            port.update()
    for descriptor in held:
        os.close(descriptor)
    os._exit(0)  # threads of slow answers would hold up a polite end


def lock(path: str) -> int:
    """Take libtpu's lock as libtpu does, for as long as this process lives; its descriptor."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _say(words: str) -> None:
    os.write(sys.stdout.fileno(), f"{words}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
