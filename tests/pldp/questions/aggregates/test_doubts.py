"""One fake must not move a total by what it likes; honest people are neither set aside nor doubted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pldp.questions.aggregates.doubts import FAR, largest, scales
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.doubts import FALSE_ALARM, IMPOSSIBLE
from pldp.questions.received import Received
from tests.pldp.questions.aggregates.people import conclude, draw, evidence, vault
from tests.pldp.questions.aggregates.world import ATTRIBUTES, plan

CAPPED = {"count": {"cap": 2}}


def received(question: Aggregates, n: int) -> Received:
    return Received(
        reports={sheet.path: n for sheet in question.sheets()},
        weights={},
        repeats={},
        set_aside=(),
        most_set_aside=Fraction(0),
    )


def test_nobody_holds_more_than_the_catalogue_allows() -> None:
    question = plan(**CAPPED)
    most = largest(question)
    assert most is not None
    assert (most == np.array(question.rows).max(axis=0) * question.n_items).all()
    assert largest(plan()) is None, "nothing bounds what is counted without a cap"


def test_a_report_beyond_all_noise_is_set_aside_and_honest_ones_are_not(seed: int) -> None:
    question = plan(**CAPPED)
    files = draw(question, [vault(20_000, seed)], seed)
    for sheet in question.sheets():
        reports = {name: column.copy() for name, column in files.by_sheet[sheet.path][0].items()}
        assert question.invalid(sheet, reports).size == 0
        most, reach = largest(question), FAR * scales(question, question.provider_of(sheet))
        assert most is not None
        profile = int(reports["profile"][5])
        for place, attribute in enumerate(ATTRIBUTES):
            edge = int(most[place] + np.floor(reach[profile, place]))
            for value, refused in (
                (edge, False),
                (edge + 1, True),
                (-int(reach[profile, place]) - 1, True),
                (10**12, True),
            ):
                one = {**reports, attribute: reports[attribute].copy()}
                one[attribute][5] = value
                assert (question.invalid(sheet, one).tolist() == [5]) == refused, (attribute, value)


def test_a_total_that_no_people_could_hold_is_withheld(seed: int) -> None:
    question = plan(**CAPPED)
    result = conclude(question, draw(question, [vault(2_000, seed)], seed))
    shown = replace(evidence(question, result, 2_000), received=received(question, 2_000))
    assert question.doubts(shown, FALSE_ALARM) == ()
    totals = result.totals["shop"]
    for wrong in (-1e5, 1e9):
        spoilt = replace(totals, total=np.append(wrong, totals.total[1:]))
        other = replace(result, totals={**result.totals, "shop": spoilt})
        (doubt,) = question.doubts(replace(shown, result=other), FALSE_ALARM)
        assert (doubt.attribute, doubt.finding, doubt.withheld) == ("shop", IMPOSSIBLE, True)
        assert abs(doubt.bound) < abs(doubt.observed)
