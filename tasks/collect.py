"""Collect: reports that clients perturbed themselves, into the run. There is no vault: raw values never came here.

The folder has the layout of our own reports, attribute=<name>/level=<level>/*.parquet, one column `report`, one row
a user, made with the plan that `pldp plan --json` hands out. Where levels are hidden there is no folder a level, and a
column `level` before `report` holds the report about the level. All of it is checked before any of it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pldp.channels.protocol import Reports
from pldp.tasks.home import commit
from pldp.tasks.ingest import Ingested, n_partitions
from pldp.tasks.perturb import write_reports
from pldp.tasks.run import Run
from pldp.tasks.sent import Inbox, batches, read_sent
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage


@stage()
def collect(run: Run, file: SpecFile) -> Ingested:
    """Cut what clients sent into the run's partitions. A repeat finds committed ones and leaves them."""
    plan, folder = run.plan, file.source
    sent = read_sent(folder, plan)
    # Fixed by the first run: another memory on a rerun must not cut the rest differently.
    commit(run.folder / "partitions", str(n_partitions(sent.n_users, plan, file.spec.runner)).encode())
    partitions = int((run.folder / "partitions").read_bytes())
    for box, files, size in zip(sent.boxes, sent.files, sent.sizes, strict=True):
        bounds = [size * i // partitions for i in range(partitions + 1)]
        arrived = (rows for one in files for rows in batches(one, box))
        for partition, rows in enumerate(_cut(arrived, np.diff(bounds), box)):
            # The order of arrival would tell who sent when.
            stream = run.stream("order", box.attribute, box.level or "", partition)
            shuffled = rows[np.argsort(stream.copy(len(rows)))]
            told = shuffled[:, : -box.widths["report"]] if box.level is None else None
            reports = shuffled[:, -box.widths["report"] :]
            write_reports(run.report_file(box.attribute, box.level, partition), reports, told)
    run.require_unchanged()
    return Ingested(sent.n_users, partitions)


def _cut(arrived: Iterator[Reports], sizes: Iterable[int], box: Inbox) -> Iterator[Reports]:
    """The same rows in parts of these sizes, holding no more than a part at a time."""
    rest = np.empty((0, sum(box.widths.values())), dtype=np.uint8)
    for size in sizes:
        parts = [rest]
        while sum(map(len, parts)) < size:
            parts.append(next(arrived))
        rows = np.concatenate(parts)
        rest = rows[size:]
        yield rows[:size]
