"""A release proves its channels and estimators before it is published: recomputed, recovered, rehearsed."""
