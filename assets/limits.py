"""The limits of docs/security.md, from the constants of the program. make_docs.py prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpusmi import collect, configuration_file, memprofile, pprof, text
from tpusmi.agent import (
    output,
    own_captures,
    own_process,
    own_slice,
    sampler,
    threads,
    utilization,
)
from tpusmi.exporter import (
    accepting,
    families,
    guards,
    of_processes,
    of_snapshot,
    scrape_server,
    scrapes,
    web_config,
)
from tpusmi.fleet.exporters import exporter_addresses, exporters_reading
from tpusmi.fleet.hosts import host_parts, sample_targets
from tpusmi.fleet.http import http_identity, http_reading
from tpusmi.fleet.prometheus import (
    matchers,
    prometheus_answers,
    prometheus_api,
    prometheus_fleet,
    prometheus_history,
    prometheus_look,
    several_queries,
)
from tpusmi.model import history
from tpusmi.profiler import (
    finished_pages,
    log_folder,
    remote,
    remote_messages,
    remote_round,
    remote_stream,
    trace_files,
    xprof_child,
    xprof_run,
)
from tpusmi.profiler.remote_task import CONNECT_S
from tpusmi.profiler.requests import CaptureRequest
from tpusmi.sources import child_process, sockets, users
from tpusmi.sources.holders import allowance, lockfile, mount_kinds, passes, procfs, ties
from tpusmi.sources.libtpu import client, decode, percentiles, plain, ports
from tpusmi.sources.segments import contents, evidence, listing, quota
from tpusmi.trace import (
    busy_time,
    direct,
    host_plane,
    open_trace,
    plain_objects,
    stream_device,
    tpu_plane,
    xspace,
)
from tpusmi.trace.limits import TraceLimits
from tpusmi.web import connections, server, server_log, tab
from tpusmi.wire import capture_files, layout, mountinfo, places, reader, slice_summary
from tpusmi.wire.capture_messages import DURATION_MOST_MS

Row = tuple[str, ...]
VALUE_BYTES = 4
"""Of one second of one series."""


def number(value: float) -> str:
    return f"{value:,}"


def size(count: int) -> str:
    """Bytes in the largest unit that leaves a whole number."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count:,} bytes"


def seconds(value: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if value >= 2 * unit and value % unit == 0:
            return f"{value / unit:.0f} {name}"
    return f"{value:g} s"


def percent(share: float) -> str:
    return f"{100 * share:g} %"


SHARES: Sequence[quota.ReadCost] = (quota.OF_OTHER_USER, quota.OF_ALL_OTHERS, quota.OF_TRUSTED)

SEGMENT_SHARES: Sequence[Row] = (
    ("names in their directories", *(number(of.files) for of in SHARES)),
    ("segments", *(number(of.segments) for of in SHARES)),
    ("bytes of these files", *(size(of.bytes) for of in SHARES)),
    ("devices", *(number(of.devices) for of in SHARES)),
    ("processor time", *(seconds(of.cpu_s) for of in SHARES)),
    ("past values for graphs, in all", *(number(of.past) for of in SHARES)),
)

SEGMENTS: Sequence[Row] = (
    (
        "names in `/dev/shm` or `/tmp`, names of segment directories among them",
        f"{number(places.NAMES_MOST)} / {number(places.NAMED_MOST)}, "
        f"every {seconds(listing.DIRECTORIES_EVERY_S)}",
    ),
    ("segment directories of one user there", number(places.OF_USER_MOST)),
    ("a debt of processor time that carries over", seconds(quota.DEBT_MOST_S)),
    ("a segment", size(reader.MOST_BYTES)),
    ("devices, samples in it", f"{number(reader.MOST_DEVICES)} / {number(reader.MOST_SLOTS)}"),
    (
        "static facts (JSON)",
        f"{size(reader.FACTS_MARGIN * layout.FACTS_HALF)} + "
        f"{number(reader.FACTS_MARGIN * layout.FACTS_PER_DEVICE)} bytes for each device",
    ),
    (
        "memory profile, packed, unpacked",
        f"{size(reader.MOST_BLOB_BYTES)} / {size(pprof.MOST_UNPACKED_BYTES)}",
    ),
    ("samples, locations, functions, strings, each", number(pprof.MOST_ROWS)),
    (
        "fields and frames that are read",
        f"{number(pprof.WORK_LEAST)} + {pprof.WORK_PER_BYTE} for each packed byte, "
        f"{number(pprof.WORK_MOST)} in all",
    ),
    (
        "frames of a stack, lines of a location, a string",
        f"{number(pprof.MOST_FRAMES)} / {number(pprof.MOST_LINES)} / "
        f"{size(pprof.MOST_STRING_BYTES)}",
    ),
    (
        "sites, allocations that are kept",
        f"{number(contents.SITES_MOST)} / {number(memprofile.ALLOCATIONS_MOST)}",
    ),
    (
        "looking for processes of other pid namespaces",
        f"{number(evidence.ELSEWHERE_MOST)} processes, {seconds(evidence.ELSEWHERE_CPU_S)}, "
        f"every {seconds(evidence.ELSEWHERE_AGAIN_S)}",
    ),
)

SERVERS: Sequence[Row] = (
    ("ports that one holder names", number(ports.NAMED_MOST)),
    (
        "ports of one user, of all other users together",
        f"{number(ports.OF_USER_MOST)} / {number(ports.OF_OTHERS_MOST)}",
    ),
    (
        "looking for the owner of a port, of all ports",
        f"{seconds(ports.CPU_MOST_S)} / {seconds(ports.LOOK_MOST_S)}",
    ),
    (
        "connecting, asking, all questions of one look",
        f"{seconds(ports.CONNECT_S)} / {seconds(client.DEADLINE_S)} / "
        f"{seconds(client.READ_MOST_S)}",
    ),
    ("pause after a server has failed", f"up to {seconds(client.RETRY_S[-1])}"),
    (
        "a message, all messages of one pass",
        f"{size(plain.RECEIVE_MOST_BYTES)} / {size(plain.ROUND_MOST_BYTES)}",
    ),
    (
        "an HTTP/2 frame, frames for each request",
        f"{size(plain.FRAME_MOST_BYTES)} / {number(plain.FRAMES_MOST)}",
    ),
    (
        "rows about devices, other rows",
        f"{number(decode.DEVICES_MOST)} / {number(decode.ROWS_MOST)}",
    ),
    (
        "labels, buckets of a distribution",
        f"{number(decode.LABELS_MOST)} / {number(percentiles.BUCKETS_MOST)}",
    ),
    (
        "characters of a name, device ids that are remembered",
        f"{number(decode.TEXT_MOST)} / {number(client.IDS_MOST)}",
    ),
    ("an answer of the SDK's child process", size(child_process.ANSWER_BYTES_MOST)),
    ("profiler services of one capture", number(remote.ADDRESSES_MOST)),
    (
        "finding a profiler service, its wait for the others",
        f"{seconds(CONNECT_S)} / {seconds(remote_round.LATE_S)}",
    ),
    (
        "the trace of a service, the time beyond its duration",
        f"{size(CaptureRequest().bytes_most)} / {seconds(CaptureRequest().deadline_s)}",
    ),
    (
        "frames of a service that bring nothing, fields beside its trace",
        f"{number(remote_stream.FRAMES_MOST)} / {number(remote_messages.FIELDS_MOST)}",
    ),
    ("all traces of one capture", "half of the free space"),
    (
        "looking for traces in a folder",
        f"{number(log_folder.ENTRIES_MOST)} names, {seconds(log_folder.LOOK_MOST_S)}",
    ),
)

PROCESSES: Sequence[Row] = (
    ("a file of `/proc/PID`, command line and environment included", size(procfs.READ_MOST)),
    (
        "arguments, characters of one, of all",
        f"{number(text.WORDS_MOST)} / {number(text.WORD_MOST)} / {number(text.ARGV_MOST)}",
    ),
    ("mounts of a process", size(mountinfo.MOST_BYTES)),
    (
        "namespaces that are searched for a mount, part of each list, mounts of all",
        f"{number(mount_kinds.OTHERS_MOST)} / {size(mount_kinds.OTHERS_BYTES)}"
        f" / {number(mount_kinds.OTHERS_MOUNTS)}",
    ),
    (
        "descriptors of all processes in one pass; then of each user except root and you. A mount"
        f" counts as {mount_kinds.MOUNT_COST}",
        f"{number(allowance.FREE_DESCRIPTORS)} / {number(allowance.USER_DESCRIPTORS)}",
    ),
    (
        "memory maps of one process, of all in one pass",
        f"{size(passes.MAPS_MOST_BYTES)} / {size(passes.LOOK_MOST_BYTES)}",
    ),
    ("processes that have libtpu loaded and hold nothing", number(passes.SHOWN_MOST)),
    ("looking for the reader of a suspect's output", seconds(ties.LOOK_MOST_S)),
    (
        "the kernel's tables of sockets: of a suspect, where netlink is refused",
        f"{size(sockets.SUSPECT_TABLE_MOST_BYTES)} / {size(sockets.TABLE_MOST_BYTES)}",
    ),
    ("the kernel's table of locks", size(lockfile.LOCKS_MOST_BYTES)),
    (
        "waiting for user names in all, names at once, names kept",
        f"{seconds(users.WAIT_MOST_S)} / {number(users.AT_ONCE_MOST)} / {number(users.KEPT_MOST)}",
    ),
    ("`--json`, `--once`, CSV: all sources together", seconds(collect.ONCE_DEADLINE_S)),
    ("`ps`, `kill`, `tpusmi.free()`: one pass", seconds(collect.LOOK_DEADLINE_S)),
    (
        "history: time, series, memory of their values",
        f"{seconds(history.HISTORY_S)} / {number(history.SERIES_MOST)} / "
        f"{history.SERIES_MOST * history.HISTORY_S * VALUE_BYTES / 1e6:.0f} MB",
    ),
    (
        "history: series of one process or server, when there is no room",
        number(history.SHARE),
    ),
)

AGENT: Sequence[Row] = (
    (
        "processor time of wall time: for samples, memory profiles, asking its own libtpu",
        f"{percent(threads.SAMPLE_SHARE)} / {percent(threads.PROFILE_SHARE)} / "
        f"{percent(threads.UTILIZATION_SHARE)}",
    ),
    (
        "processor time for the other hosts of its job",
        percent(threads.SLICE_SHARE),
    ),
    (
        "requests per second to the coordinator of its job, of all processes together",
        f"{slice_summary.REQUESTS_MOST_PER_S:g}",
    ),
    (
        "a coordinator that does not answer, before it is given up",
        seconds(own_slice.DEADLINE_S),
    ),
    (
        "one memory profile; after a slower one, no more are taken",
        seconds(sampler.PROFILE_COST_MOST_S),
    ),
    ("pause for a server that does not answer", f"up to {seconds(utilization.QUIET_MOST_S)}"),
    (
        "its command line in the segment, one argument",
        f"{own_process.COMMAND_MOST_BYTES:,} bytes / {own_process.ARGUMENT_MOST} characters",
    ),
    ("a line on stderr", f"{own_process.LINE_MOST} characters"),
    (
        "segments of ended jobs that are kept for a user",
        f"{output.KEEP_DEAD_MOST}, for {seconds(output.KEEP_DEAD_S)}",
    ),
    (
        "a capture; until its request expires; until its trace is removed, if none fetches it",
        f"{seconds(DURATION_MOST_MS / 1000)} / {seconds(capture_files.LIFE_MOST_S)} / "
        f"{seconds(capture_files.KEPT_S)}",
    ),
    (
        "JAX for a capture: until it is said to hang; at the end of the process",
        f"{seconds(own_captures.JAX_MOST_S)} / {seconds(own_captures.FINISH_MOST_S)}",
    ),
)

WEB: Sequence[Row] = (
    ("tabs, each with its own process", number(server.TABS_MOST)),
    ("other connections", number(connections.CONNECTIONS_MOST)),
    (
        "time until the first request, until the next one",
        f"{seconds(connections.HEAD_S)} / {seconds(connections.REQUEST_S)}",
    ),
    ("a message from a tab", size(server.MESSAGE_BYTES)),
    ("a terminal in a tab", f"{tab.LARGEST.columns:,} × {tab.LARGEST.lines} cells"),
    ("the same message on stderr", f"once in {seconds(server_log.AGAIN_S)}"),
)

EXPORTER: Sequence[Row] = (
    ("a text is made", f"once in {seconds(scrapes.KEPT_S)}, for all clients"),
    ("time until a text is made; then the answer is 503", seconds(scrapes.MADE_WITHIN_S)),
    (
        "connections, TLS handshakes",
        f"{number(connections.CONNECTIONS_MOST)} / "
        f"{number(accepting.HANDSHAKES_MOST)}, for {seconds(accepting.HANDSHAKE_S)} each",
    ),
    (
        "time until the first request, until the next one",
        f"{seconds(connections.HEAD_S)} / {seconds(connections.REQUEST_S)}",
    ),
    ("a line or header of a request", size(scrape_server.LINE_BYTES)),
    (
        "passwords that wait for a check: of one peer, of all",
        f"{guards.CHECKS_OF_PEER} / {guards.CHECKS_MOST}",
    ),
    (
        "the web configuration, the cost of a hash",
        f"{size(configuration_file.FILE_BYTES)} / {web_config.COST_MOST}",
    ),
    (
        "chips, devices, processes that are exported",
        f"{number(of_snapshot.CHIPS_MOST)} / {number(of_snapshot.DEVICES_MOST)} / "
        f"{of_processes.PROCESSES_MOST}",
    ),
    ("samples of one series", number(families.SAMPLES_MOST)),
    ("a value of a label", f"{families.LABEL_MOST} characters"),
)

FLEET: Sequence[Row] = (
    (
        "all queries of a look at a Prometheus server, of one host",
        f"{seconds(prometheus_fleet.SNAPSHOT_S)} / {seconds(prometheus_fleet.HOST_S)}",
    ),
    ("queries at the same time", number(several_queries.AT_A_TIME)),
    (
        "an answer of Prometheus, of an exporter, its headers",
        f"{size(prometheus_api.ANSWER_BYTES)} / {size(exporters_reading.LARGE_BYTES)} / "
        f"{size(http_reading.HEAD_BYTES)}",
    ),
    (
        "samples of a look; hosts, and their chips, devices and the like together",
        f"{number(prometheus_look.SAMPLES_MOST)}; {number(sample_targets.HOSTS_MOST)} / "
        f"{number(host_parts.ITEMS_OF_ALL_MOST)}",
    ),
    ("labels of all hosts together", size(host_parts.TEXT_BYTES_MOST)),
    ("reading the answers, after the time of the queries", seconds(prometheus_api.READING_S)),
    (
        "warnings of a server, their length",
        f"{prometheus_answers.NOTES_MOST} in an answer, "
        f"{prometheus_api.SHOWN_CHARACTERS} characters",
    ),
    (
        "points, metrics of a history",
        f"{number(prometheus_history.POINTS_MOST)} / {prometheus_history.METRICS_MOST}",
    ),
    (
        "matchers, their characters together",
        f"{matchers.MATCHERS_MOST} / {number(matchers.TEXT_MOST)}",
    ),
    (
        "the HTTP configuration, a secret in a file",
        f"{size(configuration_file.FILE_BYTES)} / {size(http_identity.SECRET_BYTES)}",
    ),
    ("addresses of exporters", number(exporter_addresses.ADDRESSES_MOST)),
)

TRACE = TraceLimits._field_defaults
"""What an analysis may use unless it is given other limits."""

TRACES: Sequence[Row] = (
    ("a trace", size(TRACE["bytes_most"])),
    (
        "planes, lines and entries of tables, a message that is read as a whole",
        f"{number(xspace.PLANES_MOST)} / {number(open_trace.PARTS_MOST)} / "
        f"{size(open_trace.PART_MOST)}",
    ),
    (
        "different operations; operations, programs and steps of all devices; operations inside "
        "each other",
        f"{number(TRACE['operations_most'])} / {number(direct.ROWS_MOST)} / "
        f"{number(busy_time.DEPTH_MOST)}",
    ),
    (
        "events that are kept: of a line out of order, of one GPU, of the host",
        f"{number(tpu_plane.SORTED_MOST)} / {number(stream_device.EVENTS_MOST)} / "
        f"{number(host_plane.EVENTS_MOST)}",
    ),
    ("bytes of a name", number(xspace.NAME_MOST)),
    (
        "xprof's process: memory, files, its answer",
        f"{size(TRACE['memory_most'])} / {size(xprof_run.DISK_MOST)} / "
        f"{size(xprof_run.ANSWER_BYTES_MOST)}",
    ),
    (
        "rows of a table of xprof, characters of a cell",
        f"{number(xprof_child.ROWS_MOST)} / {number(xprof_child.TEXT_MOST)}",
    ),
    (
        "a page that xprof wrote, unpacked; a saved profile; lists and objects in one",
        f"{size(finished_pages.PAGE_BYTES_MOST)} / {size(trace_files.SAVED_BYTES_MOST)} / "
        f"{number(plain_objects.CONTAINERS_MOST)}",
    ),
)

TABLES: Mapping[str, tuple[Row, Sequence[Row]]] = {
    "shares of segments": (
        ("read in one pass", "of one user", "of all other users together", "of root and of you"),
        SEGMENT_SHARES,
    ),
    "limits of segments": (("segments", "at most"), SEGMENTS),
    "limits of servers": (("metrics servers", "at most"), SERVERS),
    "limits of processes": (
        ("processes, the machine, and a pass as a whole", "at most"),
        PROCESSES,
    ),
    "limits of traces": (("traces", "at most"), TRACES),
    "limits of the agent": (("the agent", "at most"), AGENT),
    "limits of serve": (("`serve`", "at most"), EXPORTER),
    "limits of fleet": (("`fleet`", "at most"), FLEET),
    "limits of serve-tui": (("`serve-tui`", "at most"), WEB),
}
"""By the name between the marks: titles and rows."""
