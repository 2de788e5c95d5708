"""`python -m bench [NAME]…`, names as in NAMES: all of them if none is given. Exits 1 if a requirement fails.

`python -m bench scale --users N…` and `runners --users N` run a part of them, and so does
`python -m bench coverage [--quick] [--seconds N] [--fresh] [--write] [--only PART…]`.
`python -m bench people [--people PYTHON NODE PAGE WRONG]` takes fewer people of each client.
`python -m bench fuzz [--cases N] [--seed N]` stands apart: it looks for crashes, and takes as long as it is told to.
`python -m bench poisoning [--write]` stands apart too: what fake people do to a release, for docs/poisoning.md.
`python -m bench performance` writes docs/performance.md from the last results, as a run of all does at its end.
"""

from __future__ import annotations

import sys
import traceback
from importlib import import_module

from bench import common

NAMES = (
    "startup",
    "kernel",
    "peers",
    "ingest",
    "scale",
    "runners",
    "rest",
    "groupby",
    "optimiser",
    "numbers",
    "aggregates",
    "items",
    "items_release",
    "census",
    "number_scale",
    "coverage",
    "clients",
    "collector",
    "people",
)


def main(names: list[str]) -> int:
    if names[:1] in (["fuzz"], ["performance"], ["coverage"], ["people"], ["poisoning"]):
        return 0 if import_module(f"bench.{names[0]}").main(names[1:]) else 1
    if names[:1] in (["scale"], ["runners"]) and names[1:2] == ["--users"]:
        return 0 if import_module(f"bench.{names[0]}").main(names[1:]) else 1
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"bench: {', '.join(unknown)} must be one of {', '.join(NAMES)}. Nothing was run.", file=sys.stderr)
        return 2
    passed = [_passes(name) for name in names or NAMES]
    if not names:
        passed.append(import_module("bench.performance").main())
    return 0 if all(passed) else 1


def _passes(name: str) -> bool:
    """Whether a bench meets what is required; one that ends by an error does not, and the others go on."""
    try:
        return bool(import_module(f"bench.{name}").main())
    except Exception:
        traceback.print_exc()
        print(f"bench: {name} failed; the others go on.", file=sys.stderr)
        # What it found in an earlier run would pass for this one's.
        (common.RESULTS / f"{name}.json").unlink(missing_ok=True)
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
