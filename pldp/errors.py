"""Every error a user can meet, in one tree.

    PldpError                 anything we raise on purpose          exit
    ├── SpecError             the spec breaks a rule                 2
    ├── SourceError           the source file breaks a rule          2
    ├── NotFound              no such release in this home           2
    ├── RequestError          a query, group or export is wrong      2
    ├── GateFailed            a gate failed: nothing was published   1
    └── HomeError             the home cannot be used now            3
        └── StageFailed       a stage broke for another reason       3

A message names file, field (or row and column), rule and remedy, and says what happened to the data.
It may quote the spec; it never quotes a data value.
"""

from __future__ import annotations

from typing import ClassVar


class PldpError(Exception):
    """Raised on purpose, with a message made for the user."""

    exit_code: ClassVar[int] = 3


class SpecError(PldpError):
    exit_code: ClassVar[int] = 2


class SourceError(PldpError):
    exit_code: ClassVar[int] = 2


class NotFound(PldpError):
    exit_code: ClassVar[int] = 2


class RequestError(PldpError):
    exit_code: ClassVar[int] = 2


class GateFailed(PldpError):
    exit_code: ClassVar[int] = 1


class HomeError(PldpError):
    pass


class StageFailed(HomeError):
    pass
