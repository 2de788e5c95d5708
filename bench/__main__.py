"""`python -m bench [NAME]…`, names as in NAMES: all of them if none is given. Exits 1 if a requirement fails.

`python -m bench scale --users N…` and `runners --users N` run a part of them, and
`python -m bench people [--people PYTHON NODE PAGE WRONG]` takes fewer people of each client;
`python -m bench proof --repeats N` another number of rehearsals; `python -m bench collector --quiet` asks for its rate
by the wall clock too.
Three stand apart, because they take as long as they are told to:
`python -m bench coverage [--quick] [--seconds N] [--fresh] [--write] [--only PART…]` looks at intervals,
`python -m bench poisoning [--write]` at what fake people do to a release,
`python -m bench fuzz [--cases N] [--seed N]` for crashes.
`performance`, alone or after other names, writes docs/performance.md from the last results. A run of all does so at its
end, also where it is interrupted: those that the document shows come first.
"""

from __future__ import annotations

import sys
import time
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
    "groupby",
    "aggregates",
    "items_release",
    "number_scale",
    "rest",
    "optimiser",
    "clients",
    "collector",
    "items",
    "numbers",
    "census",
    "people",
    "proof",
)
DOCUMENT = "performance"


def main(names: list[str]) -> int:
    if names[:1] in (["fuzz"], ["coverage"], ["people"], ["poisoning"]) or names[:2] == ["proof", "--repeats"]:
        return 0 if import_module(f"bench.{names[0]}").main(names[1:]) else 1
    if names[:2] == ["collector", "--quiet"]:
        return 0 if import_module("bench.collector").main(names[1:]) else 1
    if names[:1] in (["scale"], ["runners"]) and names[1:2] == ["--users"]:
        return 0 if import_module(f"bench.{names[0]}").main(names[1:]) else 1
    known = (*NAMES, DOCUMENT)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"bench: {', '.join(unknown)} must be one of {', '.join(known)}. Nothing was run.", file=sys.stderr)
        return 2
    passed = []
    try:
        for name in names or NAMES:
            if name != DOCUMENT:
                passed.append(_passes(name))
    finally:
        if not names or DOCUMENT in names:
            passed.append(import_module(f"bench.{DOCUMENT}").main())
    return 0 if all(passed) else 1


def _passes(name: str) -> bool:
    """Whether a bench meets what is required; one that ends by an error does not, and the others go on."""
    began = time.monotonic()
    try:
        return bool(import_module(f"bench.{name}").main())
    except Exception:
        traceback.print_exc()
        print(f"bench: {name} failed; the others go on.", file=sys.stderr)
        # What it found in an earlier run would pass for this one's.
        (common.RESULTS / f"{name}.json").unlink(missing_ok=True)
        return False
    finally:
        print(f"bench: {name} took {time.monotonic() - began:.0f} s.", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
