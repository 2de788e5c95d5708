"""The tables of item sets and the rules in them."""

from __future__ import annotations

from pldp.tables.declaration import RELEASE_ID, Interval, Table, error, real, texts, whole

PLACE = "items"
"""What rows of budgets are named that are about items: a user's whole row of them, or a user's one value."""

ITEMSETS = Table(
    name="itemsets",
    grain="release × item set: every declared item, every longer set that may be frequent or was asked about",
    columns=(
        RELEASE_ID,
        texts("items", "the items of the set, in the order of their declaration"),
        whole("length", "how many they are"),
        real("support", "estimated share of users who hold them all, unbiased; may be negative"),
        error("standard_error", "of support"),
        real("ci_low", "interval of support"),
        real("ci_high", "upper end of the interval"),
        real(
            "probability_frequent",
            "chance that the true support reaches the spec's minimum, given this estimate and those of all such sets; "
            "at least so much where understatement is above 0",
        ),
        whole("n_users", "users of the release, those without items too"),
        real(
            "understatement",
            "the most by which support may be too low, since some users hold more than sampling has places for: above "
            "0, support is a lower bound but for noise, and ci_high includes it; null in releases before it was there",
            since="0.3.0",
        ),
    ),
    key=("items",),
    intervals=(Interval(holds=("support",)),),
)

RULES = Table(
    name="rules",
    grain="release × rule: a split of a frequent set",
    columns=(
        RELEASE_ID,
        texts("antecedent", "who holds these items …"),
        texts("consequent", "… holds these too"),
        real("support", "estimated share of users who hold both"),
        real("confidence", "estimated share of those with the antecedent who hold the consequent too; may exceed 1"),
        error("standard_error", "of confidence, to first order"),
        real("ci_low", "interval of confidence"),
        real("ci_high", "upper end of the interval"),
        real(
            "lift",
            "confidence over the consequent's support; null where that is less than three standard errors",
            optional=True,
        ),
    ),
    key=("antecedent", "consequent"),
    intervals=(Interval(holds=("confidence",)),),
)

TABLES = (ITEMSETS, RULES)
