"""Value-sensitive responses and frequent items (aprr).

`question` is what the pipeline sees; `resolve` plans it from a spec; `rowchannels` are what a level reports through;
`reports`, `combine`, `tables`, `gates`, `truth` and `evaluate` are its stages; `predictions` and `statement` come
before.

Beneath, `levels` turns scores into levels and budgets; `values` and `channels` perturb single values and item sets and
know their exact ε; `bounded` designs channels within a bound; `reconstruct` inverts; `transactions`, `mining` and
`rules` find frequent sets and what follows from them; `sampling` serves large universes; `comparators` and `metrics`
evaluate.
"""
