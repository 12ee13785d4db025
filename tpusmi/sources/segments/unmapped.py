"""Users whom our user namespace does not know, as in a container without root."""

UIDS, OVERFLOW_UID = 2**32 - 1, 65534
"""How many there are, and the one for users that are not known where the kernel tells none."""


def uid_of_the_unmapped() -> int | None:
    """The uid that stands for every user whom our user namespace does not know; None where it knows
    all, as outside of containers.
    """
    try:
        with open("/proc/self/uid_map", "rb") as file:
            known = sum(int(line.split()[2]) for line in file.read(65536).splitlines())
        if known >= UIDS:
            return None
    except (OSError, IndexError, ValueError):
        return None
    try:
        with open("/proc/sys/kernel/overflowuid", "rb") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return OVERFLOW_UID  # a /proc with processes alone
