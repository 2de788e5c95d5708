"""The tables of histograms: shares of declared values."""

from __future__ import annotations

from pldp.tables.declaration import RELEASE_ID, Interval, Table, error, flag, real, text, whole

INTERVAL = "how the interval was made: inverted test, the same extended to hold the estimate, or normal"
DEPENDENCE = "how far choices may depend on values for the interval to hold: how many times likelier, or unknown"
CAP = "how many times its share of the people a level may weigh at most; null where nothing bounds it"
BIAS = "the most that the declared dependence of choices on values adds to the unbiased estimate; null where not known"

HISTOGRAMS = Table(
    name="histograms",
    grain="release × attribute × value",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        text("value", "one of the declared values"),
        text("method", "how levels were combined, after any fallback"),
        text("postprocess", "what was done to the combined estimate"),
        real("frequency", "estimated share of the users of the release"),
        error("standard_error", "of frequency alone; a bootstrap's root mean squared error where frequency is biased"),
        real("ci_low", "interval of the unbiased estimate, cut to [0, 1]"),
        real("ci_high", "upper end of the interval"),
        real("count", "frequency times the number of users"),
        real("unbiased_frequency", "before post-processing; may be negative"),
        whole("n_reports", "reports behind it"),
        flag("reliable", "whether the unbiased frequency exceeds three standard errors"),
        error(
            "unbiased_standard_error", "of unbiased_frequency; null in releases of versions before 0.3.0", since="0.3.0"
        ),
        text("interval", INTERVAL, since="0.3.0"),
        text("dependence", DEPENDENCE, since="0.3.0"),
        real("bias_bound", BIAS, optional=True, since="0.3.0"),
        real("level_weight_cap", CAP, optional=True, since="0.3.0"),
    ),
    key=("attribute", "value"),
    intervals=(Interval(holds=("unbiased_frequency", "frequency"), bounds=(0.0, 1.0)),),
)

ESTIMATES = Table(
    name="estimates",
    grain="release × attribute × value × method: every combination that the spec names for the attribute, side by side",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        text("value", "one of the declared values"),
        text("method", "how levels were combined"),
        real("frequency", "the method's estimate of the share of the users of the release, after post-processing"),
        error("standard_error", "of frequency"),
        real("ci_low", "interval of the method's estimate before post-processing, within [0, 1]"),
        real("ci_high", "upper end of the interval"),
        whole("n_reports", "reports behind it"),
        flag("is_answer", "whether histograms has this method's estimate as the published answer"),
        text("interval", INTERVAL, since="0.3.0"),
        text("dependence", DEPENDENCE, since="0.3.0"),
        real("bias_bound", BIAS, optional=True, since="0.3.0"),
    ),
    key=("attribute", "value", "method"),
    intervals=(Interval(bounds=(0.0, 1.0)),),
)

LEVEL_ESTIMATES = Table(
    name="level_estimates",
    grain="release × attribute × level × value, where levels are public",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        text("level", "the level these users chose"),
        text("value", "one of the declared values"),
        text("mechanism", "the protocol that perturbed"),
        real("frequency", "unbiased estimate of the share among this level's users; may be negative"),
        error("standard_error", "of frequency"),
        whole("n_reports", "users at this level"),
    ),
    key=("attribute", "level", "value"),
)

LEVEL_SHARES = Table(
    name="level_shares",
    grain="release × level (× attribute where each has a level of its own), where levels are hidden",
    columns=(
        RELEASE_ID,
        text("attribute", "whose level it is; null where one level rules all attributes", optional=True),
        text("level", "the level"),
        real("share", "estimated share of users who chose it, unbiased; may be negative"),
        error("standard_error", "of share"),
    ),
    key=("attribute", "level"),
)

TABLES = (HISTOGRAMS, ESTIMATES, LEVEL_ESTIMATES, LEVEL_SHARES)
