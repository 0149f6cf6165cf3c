"""The text output of `muster replay` for a whole dump. Pure: from reruns to text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from muster.cli.ask.views import age, columns, counted, members, since
from muster.cli.replay.replaygang import how, placed_on, row_of, stands
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodState
from muster.decisions.recording import RecordingSource
from muster.decisions.replay import ReplayVerdict, Rerun
from muster.placement.decision import Wait
from muster.placement.reasons.explanation import short

Row = tuple[str, ...]


def summary(file: str, source: RecordingSource, snapshot: Snapshot, reruns: Sequence[Rerun]) -> str:
    """Return the cluster, every gang that was asked about, and whether the answers agree."""
    now = [each for each in reruns if not each.recorded.entry.made]
    before = [each for each in reruns if each.recorded.entry.made]
    parts = [columns(_cluster(file, source, snapshot))]
    if now:
        head = ("GANG", "PLACED", "WAITS", "AGE", "PRIORITY", "DECISION", "WHY", "REPLAY")
        parts.append(columns([head, *(_open(each, source) for each in now)]))
    else:
        parts.append("no gang waits for anything")
    if before:
        titles = ("DECIDED", "GANG", "GENERATION", "DECISION", "WHY", "REPLAY")
        table = columns([titles, *(_made(each, source) for each in before)])
        parts.append("Decided before, asked again of the cluster as it was then:\n" + table)
    parts += ["\n".join(lines) for lines in (list(_remarks(now, source)), verdict(reruns)) if lines]
    return "\n\n".join(parts)


def verdict(reruns: Sequence[Rerun]) -> list[str]:
    """Return how many answers are the recorded ones, and where the others differ."""
    counts = Counter(each.verdict for each in reruns)
    different = counts[ReplayVerdict.DIFFERENT]
    unrecorded = counts[ReplayVerdict.UNRECORDED]
    compared = len(reruns) - unrecorded
    asked = f"{compared} decision{'' if compared == 1 else 's'} asked again: "
    lines = [asked + (f"{different} DIFFERENT" if different else "all identical")]
    if unrecorded:
        lines.append(f"{unrecorded} more were not recorded, for want of time (dump.answerSeconds)")
    lines += [
        f"  {each.recorded.entry.question.gang}: {each.difference}"
        for each in reruns
        if each.verdict is ReplayVerdict.DIFFERENT
    ]
    if different:
        lines.append("Another version of Muster may decide otherwise; the same one may not: a bug")
    return lines


# --- the cluster ----------------------------------------------------------------------


def _cluster(file: str, source: RecordingSource, snapshot: Snapshot) -> Iterator[Row]:
    role = "leader" if source.leads else "standby: it plans nothing"
    yield "Dump", f"{file}, Muster {source.version}"
    yield "From", f"{source.replica} ({role}), {_moment(source.written_at)}"
    listed = "" if source.listed else ", NOT YET LISTED: much may be missing"
    yield "Cluster", f"{snapshot.cluster}, generation {snapshot.generation:,}{listed}"
    yield "Nodes", _nodes(snapshot)
    yield from _accelerators(snapshot)
    yield "Pods", _pods(snapshot)
    phases = Counter(view.phase.value for view in _views(snapshot))
    yield "Gangs", counted(phases)
    spares = f"{source.spare_count} spare{'' if source.spare_count == 1 else 's'} per pod"
    yield "Levels", " > ".join([*snapshot.levels[:-1], short(snapshot.levels[-1])])
    yield "Settings", f"pin {source.pin}, {spares}, window {source.window_s:g} s"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _nodes(snapshot: Snapshot) -> str:
    nodes = snapshot.nodes
    alive = nodes.alive
    kinds = {
        "ready": alive & nodes.ready & ~nodes.unschedulable,
        "cordoned": alive & nodes.unschedulable,
        "not ready": alive & ~nodes.ready,
    }
    counts = {name: int(np.count_nonzero(mask)) for name, mask in kinds.items()}
    return f"{np.count_nonzero(alive):,}: {counted(counts)}"


def _accelerators(snapshot: Snapshot) -> Iterator[Row]:
    """Yield a row per extended resource that some node has."""
    nodes = snapshot.nodes
    for name in sorted(nodes.resources):
        has = int(nodes.allocatable(name)[nodes.alive].sum()) if "/" in name else 0
        if has:
            free = int(np.maximum(nodes.free(name)[nodes.alive], 0).sum())
            yield name, f"{has:,}: {has - free:,} used, {free:,} free"


def _pods(snapshot: Snapshot) -> str:
    states = np.bincount(snapshot.pods.state.array(), minlength=len(PodState)).tolist()
    counts = {state.name: states[state] for state in PodState if state is not PodState.FREE}
    return f"{sum(counts.values()):,}: {counted(counts)}"


def _views(snapshot: Snapshot) -> Iterator[GangView]:
    return (view for view in map(snapshot.gang, snapshot.gangs()) if view is not None)


# --- decisions ------------------------------------------------------------------------


def _open(rerun: Rerun, source: RecordingSource) -> Row:
    row = row_of(rerun.snapshot, rerun.recorded.entry.question.gang)
    waits = str(row.waiting + row.blocked)
    return (
        row.gang, members(row), waits, since(row, source.now), str(row.priority),
        *how(rerun), rerun.verdict,
    )  # fmt: skip


def _made(rerun: Rerun, source: RecordingSource) -> Row:
    question = rerun.recorded.entry.question
    ago = f"{age(source.now - question.now)} ago"
    generation = f"{rerun.snapshot.generation:,}"
    return ago, question.gang, generation, *how(rerun), rerun.verdict


def _remarks(now: Sequence[Rerun], source: RecordingSource) -> Iterator[str]:
    """Yield warnings: gangs that would be planned now and are on no list of the planner."""
    for each in now:
        key, note = each.recorded.entry.question.gang, each.recorded.entry.note
        fits = placed_on(each)
        if source.leads and fits and note.listed == "parked":
            yield f"{key} would be placed now ({fits}), yet {stands(note, each.snapshot, source)}"
        elif note.said is not None and isinstance(each.answer, Wait):
            reason = each.answer.reason
            if note.said.reason != reason:
                yield f"{key}: {stands(note, each.snapshot, source)}; now it is {reason.value!r}"
