"""Why febsf's printed numbers differ from what its text describes; each reason puts a computed number instead."""

from __future__ import annotations

from pldp.papers.febsf.instead import (
    CURVES,
    SQUARED,
    SWAPPED,
    all_rows,
    always,
    another_run,
    code,
    drawn,
    grades_matter,
    kept,
    krr_levels,
    spread_otherwise,
    squared,
    swapped,
    twice,
    two_files,
)
from pldp.papers.model import Reason

REASONS = (
    Reason(
        key="published code",
        sentence="The published code does not do what the text says. It reports levels by SUE bits instead of k-RR, "
        "sets negative estimates to zero and scales the rest to one (for RCF and APLDP in every level), and its EM "
        "maximises for each bit alone a sum of log-likelihoods in which all levels weigh alike. Computed that way, the "
        "printed number comes out.",
        basis="verified",
        shown_by="the published code; the five most frequent values are the same with the school grades and without",
        applies=lambda fact: drawn(fact, "Education") and not grades_matter(fact),
        check=always,
        instead=code,
    ),
    Reason(
        key="school grades left out",
        sentence="Computed as the published code does, the printed number comes out if the seven school grades of "
        "Education, whose names have digits, are left out: nine values remain, and the experiments end at nine.",
        basis="inferred",
        shown_by="these numbers: the bias of the EM tells the shares of the values that were kept",
        applies=lambda fact: drawn(fact, "Education") and grades_matter(fact),
        check=always,
        instead=code,
    ),
    Reason(
        key="curves swapped",
        sentence="The curves of AUEM and EMOA are swapped for Education: each agrees with what the published code "
        "computes for the other.",
        basis="inferred",
        shown_by="both curves, each of which is the other's",
        applies=lambda fact: fact.panel == "Education" and fact.place in CURVES and fact.series in SWAPPED,
        check=always,
        instead=swapped,
    ),
    Reason(
        key="Job's file",
        sentence="The file published with the code has 11,162 rows, not the 45,211 of the text. With it, and computed "
        "as the published code does, the printed number comes out.",
        basis="verified",
        shown_by="the file and the code that were published",
        applies=lambda fact: drawn(fact, "Job") and fact.place != "Figure 2",
        check=always,
        instead=code,
    ),
    Reason(
        key="Job's file, nine values",
        sentence="With the file of 11,162 rows that was published, as the published code computes, the printed number "
        "comes out for nine values. How many were kept for this figure is not stated.",
        basis="inferred",
        shown_by="these numbers: nine values fit",
        applies=lambda fact: drawn(fact, "Job") and fact.place == "Figure 2",
        check=always,
        instead=code,
    ),
    Reason(
        key="Job's file, k-RR levels",
        sentence="With Job's smaller file and level reports by k-RR, as the text has them, the printed number comes "
        "out if the estimate is set to zero where negative and scaled to one.",
        basis="inferred",
        shown_by="these numbers: text and code each have a part of it",
        applies=lambda fact: drawn(fact, "Job") and fact.series == "AUEM",
        check=always,
        instead=krr_levels,
    ),
    Reason(
        key="counties, not countries",
        sentence="This is not the native country of Adult, nine tenths of which is one value. The code reads a file of "
        "census tracts. The errors printed for PPDA at two values are those of shares 23/36 and 13/36, as the two "
        "counties with most tracts have; with these two counts, seven behind them that fall evenly (two numbers fitted "
        "to EMOA's curve over the number of values) and the published code's way, the printed number comes out.",
        basis="inferred",
        shown_by="these numbers: two counts are fitted, two found from PPDA's",
        applies=lambda fact: drawn(fact, "Country"),
        check=always,
        instead=code,
    ),
    Reason(
        key="another power law",
        sentence="Users were spread by another power law than for the other methods: with its exponent doubled, −1.2 "
        "instead of −0.6, the printed number comes out. RCF of Education and Job needs it and that of Country refutes "
        "it; PPDA (calibrated report by report) of Education needs it, that of Job and Country allows either.",
        basis="inferred",
        shown_by="these numbers: the exponent was found from them",
        applies=spread_otherwise,
        check=always,
        instead=twice,
    ),
    Reason(
        key="another run",
        sentence="The squared error that Figure 7 prints for the same bar is what the published code gives. With it "
        "goes an absolute error that is a fixed multiple of its root (table below); what Figure 8 prints does not go "
        "with it, so the two are not of one run. Where Figure 4 prints the same quantity, it agrees.",
        basis="inferred",
        shown_by="the two printed numbers, which no one run gives",
        applies=lambda fact: fact.place == "Figure 8" and (fact.panel, fact.series, fact.x) in SQUARED,
        check=another_run,
    ),
    Reason(
        key="Figure 7 again",
        sentence="The panel of Country in Figure 8 repeats the squared errors of Figure 7, to the last digit read.",
        basis="inferred",
        shown_by="the numbers of both figures, which are the same",
        applies=lambda fact: fact.place == "Figure 8" and fact.panel == "Country",
        check=always,
        instead=squared,
    ),
    Reason(
        key="PPDA report by report",
        sentence="What was run is not PPDA, which learns q from the spare bits of everybody. The printed numbers come "
        "out if every report is calibrated by itself, by its number s of ones: q̂ = (s − ½)/(k − 1), its estimate is "
        "(b − q̂)/(1 − 2q̂), reports with s = k/2 are left out, the mean is scaled to one. With two values that is "
        "an even split, as printed to the last digit; an odd k errs more, because k − 2s comes nearer to zero. No "
        "code of it was published: the rule was found from the numbers, the half with it.",
        basis="inferred",
        shown_by="these numbers: the rule and its half were found from them",
        applies=lambda fact: fact.series == "PPDA" and fact.place in CURVES,
        check=always,
        instead=code,
    ),
    Reason(
        key="k-RR for the values",
        sentence="The text has SUE throughout; the published code uses k-RR for the values where there are two "
        "budgets, with the files and the scaling told above. Computed that way, the printed number comes out.",
        basis="verified",
        shown_by="the published code and file; Education's two most frequent values are the same in the text's",
        applies=lambda fact: fact.place in ("Figure 5", "Figure 6") and fact.panel != "Country",
        check=always,
        instead=code,
    ),
    Reason(
        key="k-RR for the values, counties",
        sentence="The published code uses k-RR for the values where there are two budgets. With the two counties told "
        "above, computed that way, the printed number comes out.",
        basis="inferred",
        shown_by="these numbers: which two shares were read is found from PPDA's",
        applies=lambda fact: fact.place in ("Figure 5", "Figure 6") and fact.panel == "Country",
        check=always,
        instead=code,
    ),
    Reason(
        key="two files compared",
        sentence="In this panel PBP was run on the file of 11,162 rows, AUEM and EMOA on that of 45,211: each agrees "
        "with its own file and with no other. The gain of 87 % comes from four times as many users.",
        basis="inferred",
        shown_by="these numbers, each of which agrees with one file only",
        applies=lambda fact: fact.place in ("Figure 5", "Figure 6") and fact.panel == "Job" and fact.x == "uniform",
        check=always,
        instead=all_rows,
    ),
    Reason(
        key="two files in one gain",
        sentence="The gain divides EMOA's error on 45,211 rows by PBP's on 11,162, as the panel it is taken from does; "
        "computed that way it comes out. On one file EMOA gains what stands beside.",
        basis="inferred",
        shown_by="the panel that the gain is taken from",
        applies=lambda fact: fact.place == "Section 7.3.3",
        check=always,
        instead=two_files,
    ),
    Reason(
        key="values kept",
        sentence="The file has more values; nine is the most that the experiments keep.",
        basis="verified",
        shown_by="the axis of Figure 3, which ends at nine",
        applies=lambda fact: fact.place == "Table 1" and fact.series == "values",
        check=always,
        instead=kept,
    ),
)
