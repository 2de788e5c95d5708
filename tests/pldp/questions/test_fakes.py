"""Fakes really sent move estimates as far as the plan says and no further, and the tests for suspicious reports see
what they say they see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from bench.poisoning_honest import evidence_of
from bench.poisoning_world import CATALOGUE, LEVELS, TARGET, fake_reports, honest_reports, honest_rows, spec, write
from pldp.channels.randomness import Keystream
from pldp.channels.words import from_words
from pldp.estimate.capped import water_filled
from pldp.estimate.invert import hypothesis_table
from pldp.questions.aggregates.fakes import fake_reaches as total_reaches
from pldp.questions.fakes import FAKES, Reach
from pldp.questions.histograms.fakes import fake_reaches as share_reaches
from pldp.questions.histograms.question import Histograms
from pldp.questions.items.fakes import fake_reaches as support_reaches
from pldp.questions.items.pooling import Weighing, weigher
from pldp.questions.items.question import Items
from pldp.questions.numbers.fakes import fake_reaches as number_reaches
from pldp.questions.numbers.histogram import bucket_counts, estimate_histogram
from pldp.questions.numbers.quantiles import quantiles
from pldp.questions.question import Columns
from pldp.questions.specs import spec_of
from pldp.tasks.sent import read_sent
from pldp.tasks.specfile import SpecFile, load_spec

N = 10_000
FEW = round(FAKES * N)


def planned(folder: Path, combination: str = "guarded", cap: float | None = None, **changes: Any) -> SpecFile:
    """The bench's spec, with tests for agreement that never fire: a fallback to `sum` would hide what is looked at."""
    content = spec(N, combination, cap)
    content["questions"][0]["combination"]["alpha"] = 1e-300
    for place, sections in changes.items():
        content["questions"][{"people": 0, "items": 1, "aggregates": 2}[place]] |= sections
    (folder / "catalogue.csv").write_text(CATALOGUE)
    (folder / "spec.yaml").write_text(yaml.safe_dump(content))
    return load_spec(folder / "spec.yaml")


def question_of(file: SpecFile, kind: str) -> Any:
    return next(question for question in file.plan.questions if question.kind == kind)


def joined(*parts: dict[str, Columns]) -> dict[str, Columns]:
    paths = dict.fromkeys(path for part in parts for path in part)
    return {
        path: {
            name: np.concatenate([part[path][name] for part in parts if path in part])
            for name in next(part[path] for part in parts if path in part)
        }
        for path in paths
    }


def estimates(question: Any, sent: dict[str, Columns]) -> dict[str, float]:
    result = evidence_of(question, sent, N).result
    match question.kind:
        case "histograms":
            shares = [float(one.unbiased.frequency[TARGET]) for one in result.histograms]
            return dict(zip([one.name for one in question.attributes], shares, strict=True))
        case "numbers":
            return {one.attribute: one.mean.mean for one in result.means}
        case "items":
            return {"items": float(result.mined.singles.support[TARGET])}
        case _:
            return dict(zip(question.attributes, result.totals["shop"].total.tolist(), strict=True))


def answers(window: Any, reports: Columns) -> Any:
    """What each report says of the number, in [−1, 1] terms: its cell, centred and scaled."""
    centred = 2.0 * reports["report"].astype(np.float64) - (window.cells - 1)
    return float(window.scales[0]) * centred


def reaches(question: Any) -> list[Reach]:
    sizes = question.expected_sizes()
    match question.kind:
        case "histograms":
            return list(share_reaches(question, sizes))
        case "numbers":
            return list(number_reaches(question, sizes))
        case "items":
            return list(support_reaches(question))
        case _:
            return list(total_reaches(question))


@dataclass(frozen=True)
class Lever:
    """What decides how far an estimate Σ w f goes: by level the people n, their mean f, the most a fake adds, and what
    those who are sent add in the mean; and the weights that it can have, (…, level), for numbers of people."""

    n: Any
    mean: Any
    end: Any
    fake: Any
    weights: Callable[[Any], Any]

    def moves(self, level: int) -> tuple[float, float, float]:
        """The least and the most that fakes at a level move the estimate; and what of the most is not their lever.

        m of them turn f into f + c (a − f), c = m/(n + m), so that Σ w'f' − Σ w f = w' c (a − f) + Σ (w' − w)(f − t)
        for any t, as weights sum to one. What is not known is at which estimate weights were taken: all are tried.
        """
        joined = self.n + FEW * (np.arange(self.n.size) == level)
        before, after = self.weights(self.n), self.weights(joined)
        share = FEW / joined[level]
        lever = share * (self.fake[level] - self.mean[level])
        drift = np.maximum(after.max(axis=0) - before.min(axis=0), before.max(axis=0) - after.min(axis=0))
        slack = float(drift @ np.abs(self.mean - np.average(self.mean, weights=self.n)))
        return after[:, level].min() * lever - slack, after[:, level].max() * lever + slack, slack

    def planned(self, level: int) -> tuple[float, float]:
        """The least and the most that a plan may say, which takes honest people to have nothing."""
        joined = self.n + FEW * (np.arange(self.n.size) == level)
        weights = self.weights(joined)[:, level]
        lever = FEW / joined[level] * self.end[level]
        return float(weights.min() * lever), float(weights.max() * lever)


def levers(
    question: Any, honest: dict[str, Columns], sent: dict[str, dict[str, Columns]], most: float
) -> dict[str, Lever]:
    """By attribute; `sent` are the fakes by level, and no estimate lies above `most`."""
    cap = reaches(question)[0].cap
    made: dict[str, Lever] = {}
    if isinstance(question, Histograms):
        for attribute in question.attributes:
            of = [honest[f"attribute={attribute.name}/level={level}"] for level in LEVELS]
            rows = [from_words(one, p.report_bytes) for one, p in zip(of, attribute.protocols, strict=True)]
            pairs = list(zip(attribute.protocols, rows, strict=True))
            end = np.array([(1 - p.q) / p.gap for p in attribute.protocols])
            mean = np.array([(p.support(one)[TARGET] / len(one) - p.q) / p.gap for p, one in pairs])

            def tested(n: Any, protocols: Any = tuple(attribute.protocols)) -> Any:
                table = hypothesis_table("guarded", n, protocols, replace(question.recipe.cover, cap=cap))
                return table.weights_at(np.linspace(0, most, 200)).T

            made[attribute.name] = Lever(np.array([len(one) for one in rows]), mean, end, end, tested)
    elif isinstance(question, Items):
        channels, target = [level.channel for level in question.levels], np.array([[TARGET]], dtype=np.int32)
        of = [honest[f"items/level={level}"] for level in LEVELS]
        n = np.array([len(next(iter(one.values()))) for one in of])
        sides = zip(channels, of, n, strict=True)
        mean = np.array([channel.singles(channel.support(one, 0), int(m))[0][TARGET] for channel, one, m in sides])
        end = np.array([channel.most(target)[0] for channel in channels])
        weighing = Weighing("oc+", cap)
        made["items"] = Lever(
            n, mean, end, end, lambda n: weigher(weighing, channels, n, question.minimum_support)(target)
        )
    else:
        (asked,) = question.questions
        windows, half = [question.mechanisms(0, level)[0] for level in range(len(LEVELS))], asked.bounds.half_width
        told = [
            answers(window, honest[f"numbers/level={level}"]) for window, level in zip(windows, LEVELS, strict=True)
        ]
        fake = [
            answers(w, sent[level][f"numbers/level={level}"]).mean() for w, level in zip(windows, LEVELS, strict=True)
        ]
        noise = np.array([[float(w.base), float(w.gain)] for w in windows])

        def by_moments(n: Any) -> Any:
            tried = [
                noise @ [1, moment] - mean**2
                for mean in np.linspace(-1, 1, 21)
                for moment in np.linspace(mean**2, 1, 21)
            ]
            return np.stack([water_filled(n / n.sum(), one[:, None], cap)[:, 0] for one in tried])

        n, mean = np.array([one.size for one in told]), np.array([one.mean() for one in told])
        end = np.array([float(window.furthest) + abs(asked.mean) for window in windows])
        made[asked.attribute] = Lever(n, half * mean, half * end, half * np.array(fake), by_moments)
    return made


@pytest.mark.parametrize("cap", [None, 1.5])
@pytest.mark.parametrize("kind", ["histograms", "numbers", "items"])
def test_one_percent_of_fakes_move_estimates_as_far_as_planned(kind: str, cap: float | None, tmp_path: Path) -> None:
    """The same honest reports with and without fakes: how far the estimate goes follows from the weights alone, of
    which those at every estimate are tried. What the plan says lies between their ends too, and no level has more."""
    question = question_of(planned(tmp_path, cap=cap), kind)
    stream = Keystream.seeded(19, kind)
    honest = honest_reports(question, honest_rows(question, N, np.random.default_rng(1)), stream)
    sent = {level: fake_reports(question, level, FEW, stream, alike=False) for level in LEVELS}
    before = estimates(question, honest)
    after = {level: estimates(question, joined(honest, fakes)) for level, fakes in sent.items()}
    published = [one for one in reaches(question) if one.combination not in ("sum", "reports")]
    first = {one.attribute: one for one in reversed(published)}  # with the cap, where there is one
    assert {one.cap for one in first.values()} == {np.inf if cap is None else cap}
    most = max(value for one in (before, *after.values()) for value in one.values())
    for attribute, lever in levers(question, honest, sent, most).items():
        reach = first[attribute].moved or 0.0
        for place, level in enumerate(LEVELS):
            least, furthest, _ = lever.moves(place)
            moved = after[level][attribute] - before[attribute]
            assert least - 1e-9 <= moved <= furthest + 1e-9, (attribute, level)
            low, high = lever.planned(place)
            assert low <= reach * (1 + 1e-9), (attribute, level)
            assert level != first[attribute].at or reach <= high * (1 + 1e-9), (attribute, level)


def test_a_cap_that_makes_fakes_stronger_is_said_to(tmp_path: Path) -> None:
    """In `sum`, which is a cap of 1, k-RR's strictest level has the longer lever; a cap of 4 binds no level."""
    said = {}
    for cap in (1, 4):
        file = planned(tmp_path, cap=cap)
        question = question_of(file, "histograms")
        notes = question.predictions(spec_of(file.spec, question)).notes
        said[cap] = [note for note in notes if "stronger" in note], reaches(question)
    assert said[4][0] == []
    (note,), known = said[1]
    capped, free = (one for one in known if one.attribute == "krr" and one.combination == "guarded")
    assert (capped.at, free.at) == ("high", "low")
    assert note == (
        f"level_weight_cap 1 makes fakes stronger on krr, share: they move it by {capped.moved:.3g} from high, and by "
        f"{free.moved:.3g} from low without the cap"
    )


def test_a_cap_bounds_the_weakest_level(tmp_path: Path) -> None:
    """At the cap fakes of the weakest level count for no more than c times what they do in `sum`."""
    question = question_of(planned(tmp_path, cap=1.5), "histograms")
    stream = Keystream.seeded(7, "cap")
    honest = honest_reports(question, honest_rows(question, N, np.random.default_rng(2)), stream)
    sent = joined(honest, fake_reports(question, "low", FEW, stream, alike=False))
    moved = {}
    for combination, cap in (("guarded", None), ("guarded", 1.5), ("sum", None)):
        one = question_of(planned(tmp_path, combination, cap), "histograms")
        moved[combination, cap] = estimates(one, sent)["subset"] - estimates(one, honest)["subset"]
    lever = levers(question, honest, {}, 1.0)["subset"]
    by_size = replace(lever, weights=lambda n: (n / n.sum())[None])
    slack = lever.moves(2)[2] + 1.5 * by_size.moves(2)[2]
    assert moved["guarded", 1.5] <= 1.5 * moved["sum", None] + slack, "but for weights of others, which change too"
    assert moved["guarded", None] > 2 * moved["guarded", 1.5]


def test_fakes_add_to_totals_what_a_report_may_hold(tmp_path: Path) -> None:
    file = planned(tmp_path)
    question = question_of(file, "aggregates")
    reach = reaches(question)[0]
    honest = honest_reports(question, honest_rows(question, N, np.random.default_rng(3)), Keystream.seeded(3, "t"))
    (path, columns), (sheet,) = next(iter(honest.items())), question.sheets()
    profile = question.profile_names.index(reach.at)
    each = int((reach.moved or 0) / FEW)
    fakes = {name: np.full(FEW, each, column.dtype) for name, column in columns.items()}
    fakes["profile"][:] = profile
    assert not question.invalid(sheet, fakes).size
    further = {name: column + (name != "profile") for name, column in fakes.items()}
    assert question.invalid(sheet, further).size == FEW, "one unit more is set aside"
    moved = estimates(question, joined(honest, {path: fakes}))["drama"] - estimates(question, honest)["drama"]
    assert (reach.moved or 0) - FEW < moved <= (reach.moved or 0), "each adds a whole number, rounded down"
    unbounded = question_of(planned(tmp_path, aggregates={"count": "occurrence"}), "aggregates")
    assert {one.moved for one in reaches(unbounded)} == {None}
    shown = unbounded.predictions(file.spec.questions[2])  # type: ignore[union-attr]
    assert any("nothing bounds what fake people add" in note for note in shown.notes)


def test_quantiles_move_as_far_as_planned(tmp_path: Path) -> None:
    """By the likelihood of really drawn reports, which bends, and ends where the honest noise takes it too."""
    number = {"name": "income", "kind": "number", "bounds": [0, 100], "quantiles": [0.5], "bins": 16}
    people: dict[str, Any] = {"attributes": [number], "numbers": {"sampling": 1}, "budget": {"total": 6}}
    question = question_of(planned(tmp_path, people={**people, "combination": {}, "postprocess": None}), "numbers")
    (reach,) = [one for one in reaches(question) if one.estimate == "quantile 0.5"]
    rng, stream = np.random.default_rng(5), Keystream.seeded(5, "q")
    levels = np.repeat([0, 1, 2], [N // 2, 3 * N // 10, N // 5])
    code, bins = LEVELS.index(reach.at), question.questions[1].bins
    windows = [question.windows(1, level)[0] for level in range(3)]
    codes = question.questions[1].bounds.encode(rng.random(N) * 100)[rng.random(N) < 0.5]  # half answer this one
    counts = [
        bucket_counts(window, window.perturb(codes[levels[: codes.size] == level], stream), bins)
        for level, window in enumerate(windows)
    ]
    moved = []
    for end in (0, -1):
        medians = []
        for fakes in (0, FEW):
            sent = [one.copy() for one in counts]
            sent[code][end] += fakes
            found = estimate_histogram(windows, sent, N, question.questions[1].bounds, bins, rng, 1)
            medians.append(quantiles(found.edges, found.frequency, found.covariance, [0.5])[0].quantile)
        moved.append(abs(medians[1] - medians[0]))
    assert max(moved) == pytest.approx(reach.moved, rel=0.5)


@pytest.mark.parametrize("kind", ["numbers", "items"])
def test_reports_all_alike_are_seen_and_honest_ones_are_not(kind: str, tmp_path: Path) -> None:
    question = question_of(planned(tmp_path), kind)
    stream = Keystream.seeded(11, kind)
    honest = honest_reports(question, honest_rows(question, N, np.random.default_rng(4)), stream)
    assert question.doubts(evidence_of(question, honest, N), 1e-4) == ()
    for level in LEVELS:
        sent = joined(honest, fake_reports(question, level, 5 * FEW, stream, alike=True))
        found = {(doubt.finding, doubt.level) for doubt in question.doubts(evidence_of(question, sent, N), 1e-4)}
        assert ("repeated reports", level) in found
    quiet = joined(honest, fake_reports(question, "low", FEW, stream, alike=False))
    assert question.doubts(evidence_of(question, quiet, N), 1e-4) == (), "what passes, as docs/poisoning.md says"


def test_the_same_file_of_numbers_twice_is_one_file(tmp_path: Path) -> None:
    """Honest people's files are hardly ever equal, so that the second one is set aside and counts for nothing."""
    question = question_of(planned(tmp_path), "numbers")
    sent = honest_reports(question, honest_rows(question, N, np.random.default_rng(6)), Keystream.seeded(6, "twice"))
    write(tmp_path / "sent", sent, "once")
    write(tmp_path / "sent", sent, "again")
    (folder,) = [load_spec(tmp_path / "spec.yaml")]
    taken = read_sent(tmp_path / "sent", folder.plan.model_copy(update={"questions": (question,)}), None)
    assert sum(taken.sizes) == N
    assert [(one.files, one.reports) for one in taken.set_aside] == [(3, N)]


def test_item_bits_have_a_weight_that_no_row_explains(tmp_path: Path) -> None:
    """One bit alone, or all of them, from a hundred people, each with other people's noise around it."""
    question: Any = question_of(planned(tmp_path), "items")
    stream = Keystream.seeded(13, "w")
    honest = honest_reports(question, honest_rows(question, N, np.random.default_rng(4)), stream)
    for bits in (1 << TARGET, (1 << len(question.items)) - 1):
        fakes: dict[str, Columns] = {"items/level=high": {"report": np.full(FEW, bits, np.uint16)}}
        found = {one.finding for one in question.doubts(evidence_of(question, joined(honest, fakes), N), 1e-4)}
        assert "weights of reports" in found


def test_what_is_set_aside_says_how_many_and_where(tmp_path: Path) -> None:
    """By the folder that the plan names, never by a name that a sender chose."""
    file = planned(tmp_path)
    question = question_of(file, "histograms")
    sent = honest_reports(question, honest_rows(question, N, np.random.default_rng(8)), Keystream.seeded(8, "aside"))
    write(tmp_path / "sent", sent, "good")
    renamed = {"attribute=oue/level=low": {"answer": sent["attribute=oue/level=low"]["report"][:30]}}
    write(tmp_path / "sent", renamed, "alice")
    taken = read_sent(tmp_path / "sent", file.plan.model_copy(update={"questions": (question,)}), None)
    (said,) = [one.sentence for one in taken.set_aside]
    assert "1 whole file among them: no whole Parquet file with exactly the columns" in said
    assert said.endswith("(first in attribute=oue/level=low: report uint16; by its room)")
    assert "alice" not in said
