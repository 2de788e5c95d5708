"""The tables of aggregates towards providers."""

from __future__ import annotations

from pldp.tables.declaration import RELEASE_ID, Interval, Table, error, real, text, whole

AGGREGATES = Table(
    name="aggregates",
    grain="release × provider × attribute",
    columns=(
        RELEASE_ID,
        text("provider", "who got the reports behind it"),
        text("attribute", "what items count for"),
        real("total", "estimated sum over all users, unbiased; may be negative"),
        error("standard_error", "of total; that of the noise"),
        real("ci_low", "interval of total"),
        real("ci_high", "upper end of the interval"),
        real(
            "share",
            "of the sum of all attributes' totals; null where that sum is less than three standard errors",
            optional=True,
        ),
        real("share_error", "standard error of share, to first order", optional=True),
        whole("n_users", "users behind it, those without items too"),
    ),
    key=("provider", "attribute"),
    intervals=(Interval(holds=("total",)),),
)

TABLES = (AGGREGATES,)
