"""What `pldp plan` shows of items: exact budgets and predicted errors, before anybody's items are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pldp.channels.exact import float_above, log_above
from pldp.estimate.capped import cap_sentence
from pldp.questions.items.predict import one_place_error, predicted_errors, typical_error, understatement
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.statement import item_statements
from pldp.questions.question import Predictions, Rows

if TYPE_CHECKING:
    from pldp.questions.items.question import Items


def predictions(plan: Items) -> Predictions:
    """Tables: protocols (the chosen one, and why), levels (what a whole row spends; an infinite ε is null), items (the
    exact ε of one item at each level; none where users are sampled), sensitivities (what each gets), paddings (where
    they are sampled: places, and what they cost), errors (by length, at the minimum support, of a typical set and of
    the noisiest)."""
    return Predictions(
        {
            "protocols": {"protocol": [plan.protocol], "why": [plan.why]},
            "levels": _levels(plan),
            "items": _items(plan),
            "sensitivities": _sensitivities(plan),
            "paddings": _paddings(plan),
            "errors": _table([vars(row) for row in predicted_errors(plan)]),
        },
        assumptions(plan),
        notes(plan),
    )


def _levels(plan: Items) -> Rows:
    return _table(
        [
            {
                "level": level.level,
                "mechanism": level.channel.mechanism,
                "nominal_epsilon": float_above(level.budget),
                "exact_epsilon": None if (ratio := level.channel.worst_ratio) is None else log_above(ratio),
                "bound": float_above(level.bound),
                "keeps_bound": level.keeps_bound,
            }
            for level in plan.levels
        ]
    )


def _items(plan: Items) -> Rows:
    """One column of ε per level, beside the item and its sensitivity."""
    rows = item_statements(plan)
    return _table([{name: row[name] for name in row if name != "exact_epsilon"} | row["exact_epsilon"] for row in rows])


def _sensitivities(plan: Items) -> Rows:
    """What each sensitivity gets, the least sensitive first; an infinite ε is null, and so are its odds."""
    rows: list[dict[str, object]] = []
    of_items = plan.sensitivity or ()
    for sensitivity in sorted(set(of_items)):
        members = [item for item, of_item in enumerate(of_items) if of_item == sensitivity]
        for level in plan.levels:
            ratios = level.channel.item_ratios or ()
            finite = [ratio for item in members if (ratio := ratios[item]) is not None]
            worst = max(finite) if len(finite) == len(members) else None
            rows.append(
                {
                    "sensitivity": sensitivity,
                    "items": len(members),
                    "level": level.level,
                    "exact_epsilon": None if worst is None else log_above(worst),
                    "odds": None if worst is None else float_above(worst),
                }
            )
    return _table(rows)


def _paddings(plan: Items) -> Rows:
    """Places of a row and of the sets it holds: how many, why, and what they cost beside a single one."""
    channel = plan.levels[0].channel
    if not isinstance(channel, Sampled):
        return {}
    rows = []
    for length, (what, phase) in enumerate(zip(("items", "sets"), channel.asked, strict=False), start=1):
        rows.append(
            {
                "of": what,
                "places": phase.length,
                "chosen": "by declared lengths" if plan.lengths is not None else "cautiously, no lengths declared",
                "standard_error": typical_error(plan, min(length, plan.length)),
                "at_one_place": one_place_error(plan, length),
                "understatement": understatement(plan, min(length, plan.length)),
            }
        )
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> Rows:
    """All rows have the same columns; no rows have none."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def assumptions(plan: Items) -> tuple[str, ...]:
    """The sentences that predictions rest on: people by level, what is frequent, caps and limits of rows."""
    sizes = ", ".join(f"{name} {size:,}" for name, size in zip(plan.level_names, plan.expected_sizes(), strict=True))
    sentences = [f"{plan.expected_users:,} users" + (f", of whom choose {sizes}" if len(plan.levels) > 1 else "")]
    sentences.append(
        f"sets held by {plan.minimum_support:.2%} of users, the minimum, and their items by nobody else"
        if plan.holds == "many"
        else "equal shares of all values"
    )
    sentences += [
        sentence for sentence in (plan.covered, cap_sentence(plan.level_weight_cap), plan.row_limits) if sentence
    ]
    return tuple(sentences)


def notes(plan: Items) -> tuple[str, ...]:
    """Sentences of advice below the predictions: what was cut short, not declared, or bounds less than it seems."""
    sentences = []
    if plan.length < plan.asked_length:
        sentences.append(
            f"sets of {plan.length} are the longest that are looked for, of {plan.asked_length} asked: the errors of "
            "longer ones would make frequent sets of noise"
        )
    if isinstance(plan.levels[0].channel, Sampled) and plan.lengths is None:
        sentences.append(
            "sampling.lengths is not declared, so paddings are cautious and reports alone tell how many rows are "
            "longer: say how many items users have, for example {4: 0.6, 10: 0.4}, and intervals get shorter"
        )
    beyond = [level.level for level in plan.levels if not level.keeps_bound]
    if beyond:
        sentences.append(
            f"the exact ε of a row exceeds its bound at {', '.join(beyond)}: `pldp release` refuses this spec, "
            "`pldp evaluate` takes it"
        )
    return tuple(sentences)


def refusal(plan: Items) -> str | None:
    """Why a plan whose exact ε exceeds its bound may be evaluated and not released."""
    for level in plan.levels:
        if not level.keeps_bound:
            ratio = level.channel.worst_ratio
            spent = "is infinite: an open item is not perturbed" if ratio is None else f"is {log_above(ratio):.4f}"
            return (
                f"the exact ε of a row at level {level.level} {spent}, above its bound {float(level.bound):g} "
                f"(protocol {plan.protocol} was given {float(level.budget):g}). Use protocol: bounded, raise "
                "budget.bound, or use `pldp evaluate`"
            )
    return None
