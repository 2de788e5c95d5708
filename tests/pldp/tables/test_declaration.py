"""The declaration of the published tables: the analysts' interface, pinned; and what a declaration refuses."""

from __future__ import annotations

import pytest

from pldp.questions.tables import PUBLISHED, published_table
from pldp.tables.declaration import RELEASE_ID, Column, Table, Type, real, text

INTERFACE = {
    "releases": "release_id name status created_at:TIMESTAMP n_users:BIGINT spec_sha256 plan_sha256 code_version "
    "worst_epsilon:DOUBLE? protects?",
    "histograms": "release_id attribute value method postprocess frequency:DOUBLE standard_error:DOUBLE ci_low:DOUBLE "
    "ci_high:DOUBLE count:DOUBLE unbiased_frequency:DOUBLE n_reports:BIGINT reliable:BOOLEAN "
    "unbiased_standard_error:DOUBLE? interval? dependence? bias_bound:DOUBLE? level_weight_cap:DOUBLE?",
    "estimates": "release_id attribute value method frequency:DOUBLE standard_error:DOUBLE ci_low:DOUBLE "
    "ci_high:DOUBLE n_reports:BIGINT is_answer:BOOLEAN interval? dependence? bias_bound:DOUBLE?",
    "level_estimates": "release_id attribute level value mechanism frequency:DOUBLE standard_error:DOUBLE "
    "n_reports:BIGINT",
    "level_shares": "release_id attribute? level share:DOUBLE standard_error:DOUBLE",
    "means": "release_id attribute method mean:DOUBLE standard_error:DOUBLE ci_low:DOUBLE ci_high:DOUBLE "
    "n_reports:BIGINT lower:DOUBLE upper:DOUBLE interval? dependence?",
    "quantiles": "release_id attribute probability:DOUBLE method quantile:DOUBLE standard_error:DOUBLE ci_low:DOUBLE "
    "ci_high:DOUBLE n_reports:BIGINT dependence?",
    "bins": "release_id attribute bin_low:DOUBLE bin_high:DOUBLE method frequency:DOUBLE standard_error:DOUBLE "
    "n_reports:BIGINT",
    "aggregates": "release_id provider attribute total:DOUBLE standard_error:DOUBLE ci_low:DOUBLE ci_high:DOUBLE "
    "share:DOUBLE? share_error:DOUBLE? n_users:BIGINT",
    "itemsets": "release_id items:VARCHAR[] length:BIGINT support:DOUBLE standard_error:DOUBLE ci_low:DOUBLE "
    "ci_high:DOUBLE probability_frequent:DOUBLE n_users:BIGINT understatement:DOUBLE?",
    "rules": "release_id antecedent:VARCHAR[] consequent:VARCHAR[] support:DOUBLE confidence:DOUBLE "
    "standard_error:DOUBLE ci_low:DOUBLE ci_high:DOUBLE lift:DOUBLE?",
    "budgets": "release_id attribute level unit mechanism nominal_epsilon:DOUBLE exact_epsilon:DOUBLE "
    "level_leak:DOUBLE? share:DOUBLE n_users:BIGINT? noise_own:DOUBLE? noise_other:DOUBLE? covariance_slope:DOUBLE? "
    "covariance_base:DOUBLE? provider?",
    "spends": "release_id unit worst_epsilon:DOUBLE exact_epsilon:DOUBLE?",
    "doubts": "release_id attribute level? finding observed:DOUBLE bound:DOUBLE chance:DOUBLE withheld:BOOLEAN",
    "validations": "release_id gate sentence passed:BOOLEAN observed:DOUBLE bound:DOUBLE false_alarm:DOUBLE question?",
}
"""What analysts rely on: tables and columns in order, their types (VARCHAR unless said), `?` where null may stand.

Only ever add to it: a column at the end of its table and nullable, a table anywhere.
"""


def written(column: Column) -> str:
    kind = "" if column.type is Type.TEXT else f":{column.type.value}"
    return f"{column.name}{kind}{'?' if column.nullable else ''}"


def test_the_interface_is_what_analysts_rely_on() -> None:
    found = {table.name: " ".join(written(column) for column in table.columns) for table in PUBLISHED}
    assert found == INTERFACE
    assert list(found) == list(INTERFACE), "the order in which they are shown"


@pytest.mark.parametrize("table", PUBLISHED, ids=lambda table: table.name)
def test_every_table_and_column_says_what_it_is(table: Table) -> None:
    assert published_table(table.name) is table
    assert table.grain.startswith("release")
    assert all(len(column.comment) > 3 for column in table.columns)
    assert all("\n" not in column.comment and "|" not in column.comment for column in table.columns), "cells of a page"
    later = [bool(column.since) for column in table.columns]
    assert later == sorted(later), "what came later stands last, as it does in the results that got it later"


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(ValueError, match="'histogram' is no published table"):
        published_table("histogram")


def test_declarations_that_cannot_hold() -> None:
    assert real("late", "came later", since="0.4.0").nullable, "rows before it have none"
    with pytest.raises(ValueError, match="column quiet: has no comment"):
        text("quiet", "")
    with pytest.raises(ValueError, match="first column must be release_id"):
        Table(name="t", grain="release", columns=(text("a", "first"),), key=())
    with pytest.raises(ValueError, match="two columns have the same name"):
        Table(name="t", grain="release", columns=(RELEASE_ID, RELEASE_ID), key=())
    with pytest.raises(ValueError, match="the key names no column: b"):
        Table(name="t", grain="release", columns=(RELEASE_ID, text("a", "one")), key=("a", "b"))
