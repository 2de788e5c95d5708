"""The tables of every release, whatever it asks."""

from __future__ import annotations

from pldp.tables.declaration import RELEASE_ID, Table, flag, moment, real, text, whole

UNIT = "what the budget protects: a user, an item or an occurrence; different units are never added"

RELEASES = Table(
    name="releases",
    grain="release, published or refused",
    columns=(
        text("release_id", "identity: spec, keyed snapshot of the source, schedule slot", primary=True),
        text("name", "the spec's name; releases of one name form a series"),
        text("status", "published, or refused because a gate failed"),
        moment("created_at", "when the release was first opened, UTC; always after the one of its name before it"),
        whole("n_users", "how many users took part; public"),
        text("spec_sha256", "hash of the spec"),
        text("plan_sha256", "hash of the plan: budgets, mechanisms, thresholds"),
        text("code_version", "version of pldp that made it"),
        real(
            "worst_epsilon",
            "the most that one user (or what protects says) can have spent on it; null before 0.3.0",
            since="0.3.0",
        ),
        text(
            "protects",
            "whom that budget protects: a user, an item or an occurrence; different ones are never added",
            since="0.3.0",
        ),
    ),
    key=(),
)

SPENDS = Table(
    name="spends",
    grain="release × unit that its budgets protect, refused releases too; none before 0.3.0",
    columns=(
        RELEASE_ID,
        text("unit", UNIT),
        real("worst_epsilon", "the most that one of them can have spent on the release, all its questions together"),
        real(
            "exact_epsilon",
            "the same from the realised probabilities, rounded up",
            optional=True,
        ),
    ),
    key=("unit",),
)

BUDGETS = Table(
    name="budgets",
    grain="release × attribute × level (× provider in a release of aggregates)",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        text("level", "the level"),
        text("unit", UNIT),
        text("mechanism", "the protocol that spends the budget"),
        real("nominal_epsilon", "the budget"),
        real("exact_epsilon", "exact worst case of the realised probabilities, rounded up"),
        real(
            "level_leak",
            "the most that this report and that about the level tell about it; null where levels are public",
            optional=True,
        ),
        real("share", "the attribute's share of the total budget"),
        whole("n_users", "users at this level; null where levels are hidden", optional=True),
        real("noise_own", "variance of one report's estimate at the user's own value", optional=True, since="0.3.0"),
        real("noise_other", "the same at any other value", optional=True, since="0.3.0"),
        real(
            "covariance_slope",
            "s: values with shares f, g have noise covariance -(s (f + g) + b) in one report",
            optional=True,
            since="0.3.0",
        ),
        real(
            "covariance_base",
            "b; both are zero where a mechanism perturbs every value on its own",
            optional=True,
            since="0.3.0",
        ),
        text(
            "provider",
            "who gets the reports, in a release of aggregates, where the level is a profile; null elsewhere",
            optional=True,
            since="0.3.0",
        ),
    ),
    key=("attribute", "level", "provider"),
)

DOUBTS = Table(
    name="doubts",
    grain="release × finding against reports that clients sent",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked (in a release of aggregates, the provider)"),
        text("level", "the level whose reports it is about; null where it is about all", optional=True),
        text("finding", "impossible estimate, weights of reports, repeated reports, or no reports at all"),
        real("observed", "the estimate, the probability of such weights, or how often one report stands there"),
        real("bound", "the last of these that honest noise explains"),
        real("chance", "bound on the probability that honest reports look like this or worse"),
        flag("withheld", "whether the estimates are withheld for it; the others are published, and suspect"),
    ),
    key=("attribute", "level", "finding"),
)

VALIDATIONS = Table(
    name="validations",
    grain="release × gate (× question, where the gate is about one)",
    columns=(
        RELEASE_ID,
        text("gate", "short name"),
        text("sentence", "what must hold"),
        flag("passed", "whether it did"),
        real("observed", "the worst figure seen"),
        real("bound", "what it was compared with"),
        real("false_alarm", "the most probable a correct release is to fail this gate"),
        text(
            "question",
            "which question of the release it looked at; null where it looked at all, and before 0.3.0",
            optional=True,
            since="0.3.0",
        ),
    ),
    key=("gate", "question"),
)
