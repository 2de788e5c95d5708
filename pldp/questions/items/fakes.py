"""How far fake people can move the support of a set: what a plan says of reports that clients send.

One report adds at most Y to the estimate of a set at a level (`RowChannel.most`): the product of (1 − q)/(p − q) over
its items where every item has a bit, ℓ(1 − q)/(p − q) where one of ℓ places is told, an entry of the channel's inverse
where everybody has one value. m fakes beside n_τ honest people move a support of nothing by w_τ·m/(n_τ + m)·Y.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.fakes import Reach, caps, joining, reach_of
from pldp.questions.items.pooling import BY_SIZE, Weighing, weigher
from pldp.questions.items.predict import group_sizes, set_error, widest

if TYPE_CHECKING:
    from pldp.questions.items.question import Items
    from pldp.questions.items.transactions import Itemsets


def fake_reaches(plan: Items) -> Iterator[Reach]:
    """Length × combination, of the set that fakes reach furthest with among the noisiest of its length."""
    z = reach_of(plan.confidence)
    weighed = [] if plan.combination == "sum" else [Weighing("oc+", cap) for cap in caps(plan.level_weight_cap)]
    for length in range(1, plan.length + 1):
        items = widest(plan, length)
        for weighing in (*weighed, BY_SIZE):
            moved, level = support_move(plan, items, weighing)
            yield Reach(
                plan.place,
                f"support of {length} item" + ("s" if length > 1 else ""),
                weighing.method,
                plan.level_names[level],
                plan.levels[level].channel.mechanism,
                moved,
                z * set_error(plan, items, weighing),
                weighing.cap,
            )


def support_move(plan: Items, items: Itemsets, weighing: Weighing) -> tuple[float, int]:
    """By how much a support moves at most, and the level from which it does; `items` is one set."""
    sizes = group_sizes(plan, plan.expected_sizes(), items.shape[1])
    fakes, moves = joining(int(sizes.sum())), []
    for place, level in enumerate(plan.levels):
        joined = sizes.copy()
        joined[place] += fakes
        there = np.flatnonzero(joined > 0)
        channels = [plan.levels[i].channel for i in there]
        weights = weigher(weighing, channels, joined[there], plan.minimum_support)(items)[0]
        weight = float(weights[int((there < place).sum())])
        moves.append((weight * fakes / int(joined[place]) * float(level.channel.most(items)[0]), place))
    return max(moves)
