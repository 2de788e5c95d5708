"""The tables of numbers: means, quantiles, and the distributions behind them."""

from __future__ import annotations

from pldp.tables.declaration import RELEASE_ID, Interval, Table, error, real, text, whole

DEPENDENCE = "how far choices may depend on values for the interval to hold: how many times likelier, or unknown"

MEANS = Table(
    name="means",
    grain="release × numeric attribute",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        text("method", "how reports were averaged, after any fallback"),
        real(
            "mean", "estimated mean over the users of the release, in the attribute's units; may lie beyond the bounds"
        ),
        error("standard_error", "of mean"),
        real("ci_low", "interval of the mean, cut to the bounds"),
        real("ci_high", "upper end of the interval"),
        whole("n_reports", "reports behind it: every user reports on some attributes only"),
        real("lower", "declared lower bound; values below it count as the bound"),
        real("upper", "declared upper bound"),
        text("interval", "how the interval was made: inverted test, or normal", since="0.3.0"),
        text("dependence", DEPENDENCE, since="0.3.0"),
    ),
    key=("attribute",),
    intervals=(Interval(holds=("mean",), bounds=("lower", "upper")),),
)

QUANTILES = Table(
    name="quantiles",
    grain="release × numeric attribute × probability",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        real("probability", "share of users at or below the quantile"),
        text("method", "how the distribution behind it was estimated"),
        real("quantile", "estimated quantile of the users of the release, in the attribute's units"),
        error("standard_error", "of quantile: half the interval over its normal factor"),
        real("ci_low", "interval of the quantile"),
        real("ci_high", "upper end of the interval"),
        whole("n_reports", "reports behind it"),
        text("dependence", DEPENDENCE, since="0.3.0"),
    ),
    key=("attribute", "probability"),
    intervals=(Interval(holds=("quantile",)),),
)

BINS = Table(
    name="bins",
    grain="release × numeric attribute × bin, for attributes with quantiles",
    columns=(
        RELEASE_ID,
        text("attribute", "what was asked"),
        real("bin_low", "lower edge"),
        real("bin_high", "upper edge"),
        text("method", "how the distribution was estimated"),
        real("frequency", "estimated share of the users of the release in the bin"),
        error("standard_error", "of frequency, bias included; bins next to each other are not independent"),
        whole("n_reports", "reports behind it"),
    ),
    key=("attribute", "bin_low"),
    intervals=(Interval(low="bin_low", high="bin_high"),),
)

TABLES = (MEANS, QUANTILES, BINS)
