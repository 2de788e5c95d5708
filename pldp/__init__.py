"""Statistics of people who choose how much privacy they want: multi-level differential privacy by local noise.

    import pldp

    pldp.plan("lunch.yaml")                                  predicted errors, from the spec alone
    pldp.release("lunch.yaml", home="home", source=frame)    perturb, estimate, validate, publish
    pldp.evaluate("lunch.yaml", home="home")                 beside the truth; never published
    pldp.open("home").latest("lunch")                        what was published, as Polars frames

The pipeline behind these is loaded when one of them is used first; importing the package loads nothing of it. It comes
with the extra `pipeline`; `pldp.client`, one person's side, needs the standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pldp.flows.door import Published, Results, evaluate, open, plan, release

__version__ = "0.3.0.dev0"
__all__ = ["Published", "Results", "__version__", "evaluate", "open", "plan", "release"]


def without_pipeline(missing: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error for whoever installed the client alone, and asks for more."""
    if missing.name is None or missing.name.partition(".")[0] == "pldp":
        return missing  # a part of ours is not there: no library mends that
    message = f"needs {missing.name}, which comes with the pipeline: pip install 'pldp[pipeline]'. Nothing was run."
    return ModuleNotFoundError(message, name=missing.name)


def __getattr__(name: str) -> Any:
    if name in __all__:
        try:
            from pldp.flows import door
        except ModuleNotFoundError as missing:
            raise without_pipeline(missing) from None
        return getattr(door, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
