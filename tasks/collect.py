"""Collect: reports that clients perturbed themselves, into the run. There is no vault: raw values never came here.

The folder has the layout of our own reports, such as attribute=<name>/level=<level>/*.parquet: columns of numbers,
made with the plan that `pldp plan --json` hands out. All of it is checked before any of it is taken; what is no report
is set aside, and refuses nobody else's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np

from pldp.questions.question import Columns
from pldp.questions.received import Received
from pldp.questions.rows import height
from pldp.questions.shuffle import shuffle
from pldp.tasks.drafts import commit
from pldp.tasks.inbox import Delivery
from pldp.tasks.ingest import Ingested, ingest, n_partitions
from pldp.tasks.repeats import most_equal
from pldp.tasks.reports import commit_reports
from pldp.tasks.run import ANSWERED, Run
from pldp.tasks.sent import Inbox, Sent, batches, sent_of
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage


def ingest_source(run: Run, file: SpecFile) -> Ingested:
    """People come from raw rows, or as reports that their own clients perturbed."""
    return (ingest if file.spec.source.reports is None else collect)(run, file)


@stage()
def collect(run: Run, file: SpecFile) -> Ingested:
    """Cut what clients sent into the run's partitions. A repeat finds committed ones and leaves them."""
    plan, sent = run.plan, sent_of(file)
    # Fixed by the first run: another memory on a rerun must not cut the rest differently.
    there = [box.sheet.path for box, size in zip(sent.boxes, sent.sizes, strict=True) if size]
    if plan.answered(there) != plan:
        commit(run.folder / ANSWERED, json.dumps(there).encode(), mode=0o644)
    commit(run.folder / "partitions", str(n_partitions(sent.n_users, plan, file.spec.runner)).encode())
    partitions = int((run.folder / "partitions").read_bytes())
    for box, files, size in zip(sent.boxes, sent.files, sent.sizes, strict=True):
        bounds = [size * i // partitions for i in range(partitions + 1)]
        arrived = (rows for one in files for rows in batches(one, box))
        for partition, rows in enumerate(_cut(arrived, np.diff(bounds).tolist(), box)):
            # The order of arrival would tell who sent when.
            stream = run.stream("order", *box.sheet.labels, partition)
            commit_reports(run.report_file(box.sheet, partition), shuffle(rows, stream))
    run.require_unchanged()
    return Ingested(sent.n_users, partitions, _received(sent, file))


def _received(sent: Sent, file: SpecFile) -> Received:
    paths = [box.sheet.path for box in sent.boxes]
    repeats = [
        most_equal(lambda files=files, box=box: _rare(files, box), size)  # type: ignore[misc]
        for box, files, size in zip(sent.boxes, sent.files, sent.sizes, strict=True)
    ]
    return Received(
        reports=dict(zip(paths, sent.sizes, strict=True)),
        weights=dict(zip(paths, sent.weights, strict=True)),
        repeats=dict(zip(paths, repeats, strict=True)),
        set_aside=sent.set_aside,
        most_set_aside=file.spec.source.max_left_out,
        refuse=file.spec.gates.poisoning == "refuse",
    )


def _rare(files: Iterable[Delivery], box: Inbox) -> Iterator[Columns]:
    """The reports whose repeats tell something."""
    return (box.question.rare(box.sheet, rows) for one in files for rows in batches(one, box))


def _cut(arrived: Iterator[Columns], sizes: Iterable[int], box: Inbox) -> Iterator[Columns]:
    """The same rows in parts of these sizes, holding no more than a part at a time."""
    rest = {name: _nothing(kind) for name, kind in box.question.report_types(box.sheet).items()}
    for size in sizes:
        parts: list[Columns] = [rest]
        while sum(height(part) for part in parts) < size:
            parts.append(next(arrived))
        rows = {name: np.concatenate([part[name] for part in parts]) for name in rest}
        rest = {name: column[size:] for name, column in rows.items()}
        yield {name: column[:size] for name, column in rows.items()}


def _nothing(kind: str) -> np.ndarray:
    plain, _, length = kind.partition(" × ")
    return np.empty((0, int(length)) if length else 0, dtype=plain)
