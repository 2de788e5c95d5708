"""The hash family of local hashing, by brute force over a small prime, and its decoding."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from pldp.channels import olh
from pldp.channels.exact import SCALE
from pldp.channels.olh import OLH, PRIME, bucket_sizes, hash_values, support_law
from pldp.channels.randomness import Keystream
from tests.pldp.world import ALPHA


def _every_hash(prime: int) -> NDArray[np.uint32]:
    return np.array(list(itertools.product(range(prime), repeat=3)), dtype=np.uint32).T


def test_the_modulus_is_prime_and_sums_of_residues_fit() -> None:
    assert all(PRIME % divisor for divisor in range(2, 182))
    assert PRIME < 182**2
    assert 2 * (PRIME - 1) < 1 << 16
    assert (PRIME - 1) + 2 * (PRIME - 1) ** 2 < 1 << 32


@pytest.mark.parametrize("prime", [3, 5, 7, 11])
def test_three_values_hash_independently_and_uniformly(prime: int) -> None:
    # Over all hashes every triple of residues appears exactly once, at any three values.
    hashes = _every_hash(prime)
    at = [hash_values(hashes, np.full(1, x, dtype=np.uint16), prime).astype(np.int64) for x in range(prime)]
    for triple in itertools.combinations(range(prime), 3):
        joint = sum(at[x] * prime**i for i, x in enumerate(triple))
        assert np.array_equal(np.bincount(joint, minlength=prime**3), np.ones(prime**3))


@pytest.mark.parametrize(("prime", "buckets"), [(5, 2), (7, 2), (7, 3), (7, 5), (11, 4)])
def test_the_support_law_is_the_sum_over_all_hashes(prime: int, buckets: int) -> None:
    redraw = Fraction(2, 7)
    hashes = _every_hash(prime)
    sizes = bucket_sizes(buckets, prime)
    assert sizes.sum() == prime
    bucket_of = np.repeat(np.arange(buckets), sizes)
    own, other, third = (bucket_of[hash_values(hashes, np.full(1, x, dtype=np.uint16), prime)] for x in (0, 1, 2))
    sums = [Fraction(0)] * 4
    for said in range(buckets):
        chance = [(1 - redraw) * int(bucket == said) + redraw / buckets for bucket in own]
        events = (own == said, other == said, (own == said) & (other == said), (other == said) & (third == said))
        for i, event in enumerate(events):
            sums[i] += sum((c for c, hit in zip(chance, event, strict=True) if hit), Fraction(0))
    assert tuple(total / prime**3 for total in sums) == support_law(buckets, redraw, prime)


def test_given_the_hash_the_bucket_is_k_rr() -> None:
    # Pr[y | x] depends on whether y is the bucket of x only, so the worst ratio is the same for every hash.
    protocol = OLH.for_budget(9, Fraction(1))
    redraw = Fraction(protocol.redraw, SCALE)
    hit, miss = 1 - redraw + redraw / protocol.buckets, redraw / protocol.buckets
    assert hit + (protocol.buckets - 1) * miss == 1
    assert hit / miss == protocol.worst_ratio


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "8", "1000"])
def test_decoding_is_hashing_every_value(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(olh, "_BLOCK_ROWS", 64)  # several blocks, and a last one that is not full
    protocol = OLH.for_budget(700, Fraction(epsilon))
    reports = protocol.perturb((np.arange(333) * 2 + 1).astype(np.uint16), Keystream.seeded(3))
    # The largest residues and the first and last bucket too.
    edges = np.array([[PRIME - 1] * 3 + [0], [PRIME - 1] * 3 + [protocol.buckets - 1], [0, 0, 0, 0]], dtype="<u2")
    reports = np.concatenate([reports, edges.view(np.uint8)])
    fields = np.ascontiguousarray(reports).view("<u2")
    before = reports.copy()
    for x in (0, 1, 2, 350, 699):
        expected = [
            sum(int(c) * w for c, w in zip(row[:3], (1, x, x * (x - 1) // 2), strict=True)) % PRIME for row in fields
        ]
        bucket = np.repeat(np.arange(protocol.buckets), bucket_sizes(protocol.buckets))[expected]
        assert np.array_equal(protocol.members(reports)[:, x], bucket == fields[:, 3])
    assert np.array_equal(protocol.support(reports), protocol.members(reports).sum(axis=0))
    assert np.array_equal(reports, before)


def test_one_report_is_not_changed_by_counting() -> None:
    protocol = OLH.for_budget(50, Fraction(1))
    report = protocol.perturb(np.array([7], dtype=np.uint16), Keystream.seeded(1))
    before = report.copy()
    assert np.array_equal(protocol.support(report), protocol.support(report))
    assert np.array_equal(report, before)


def test_hashes_are_uniform_and_the_own_bucket_has_its_chance(seed: int) -> None:
    # c, d, e in 61 classes each, pairs in 13 × 13, buckets other than the own one: α = 1e-6 for each of eight tests.
    protocol, n = OLH.for_budget(40, Fraction(2)), 200_000
    values = np.full(n, 39, dtype=np.uint16)
    fields = protocol.perturb(values, Keystream.seeded(seed, "olh")).view("<u2").astype(np.int64)
    for column in range(3):
        seen = np.bincount(fields[:, column] * 61 // PRIME, minlength=61)
        shares = np.bincount(np.arange(PRIME) * 61 // PRIME, minlength=61) / PRIME * n
        assert (np.square(seen - shares) / shares).sum() < chi2.isf(ALPHA, 60)
    coarse = np.bincount(np.arange(PRIME) * 13 // PRIME, minlength=13) / PRIME
    for one, other in ((0, 1), (0, 2), (1, 2)):
        seen = np.bincount(fields[:, one] * 13 // PRIME * 13 + fields[:, other] * 13 // PRIME, minlength=169)
        shares = np.outer(coarse, coarse).ravel() * n
        assert (np.square(seen - shares) / shares).sum() < chi2.isf(ALPHA, 168)
    bucket = np.repeat(np.arange(protocol.buckets), bucket_sizes(protocol.buckets))
    own = bucket[hash_values(fields[:, :3].T.astype(np.uint32), values)]
    # By how far the said bucket lies behind the own one, round the circle: k-RR over g.
    seen = np.bincount((fields[:, 3] - own) % protocol.buckets, minlength=protocol.buckets)

    def distance(law: OLH) -> float:
        expected = np.full(protocol.buckets, (1 - law.p) / (protocol.buckets - 1)) * n
        expected[0] = law.p * n
        return float((np.square(seen - expected) / expected).sum())

    bound = chi2.isf(ALPHA, protocol.buckets - 1)
    assert distance(protocol) < bound
    wrong = OLH.for_budget(40, Fraction("2.2"))
    assert distance(OLH(40, protocol.buckets, wrong.redraw)) > bound


def test_total_tail_catches_a_wrong_budget(seed: int) -> None:
    # The sum of all support tells p, since q does hardly depend on the budget at one g.
    protocol, n = OLH.for_budget(3, Fraction(1)), 200_000
    wrong = OLH(3, protocol.buckets, OLH.for_budget(3, Fraction("1.3")).redraw)
    values = np.arange(n, dtype=np.uint32).astype(np.uint16) % np.uint16(3)
    for drawn, correct in ((protocol, True), (wrong, False)):
        total = int(drawn.support(drawn.perturb(values, Keystream.seeded(seed, "total"))).sum())
        assert (protocol.total_tail(total, n) > ALPHA) is correct
