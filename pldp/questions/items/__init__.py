"""Value-sensitive responses and frequent items (aprr).

`levels` turns scores into levels and budgets; `values` and `channels` perturb single values and item sets and know
their exact ε; `bounded` designs channels within a bound; `reconstruct` inverts; `transactions`, `mining` and `rules`
find frequent sets and what follows from them; `sampling` serves large universes; `comparators` and `metrics` evaluate.
"""
