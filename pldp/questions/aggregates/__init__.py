"""Attribute aggregates of a user's items, towards providers of different trust (multiupp).

`catalogue` reduces the public items, `budgets` spends each profile's budgets best (`solver` does the work),
`noise` and `release` draw and account for the implemented noise exactly, `totals` estimates, `metrics` measures.
"""
