"""What processes of tests are forked with: modules that take seconds to import, and no garbage to look for in them."""

from __future__ import annotations

import gc
from importlib import import_module

for name in (
    "pldp.expectations.runner",
    "pldp.flows.cli",
    "pldp.flows.collecting",
    "pldp.flows.collector",
    "pldp.flows.pipeline",
    "pldp.flows.release",
    "pldp.flows.render",
    "pldp.tasks.page",
    "tests.faults.dying",
):
    import_module(name)
gc.collect()
gc.freeze()  # a child that goes through these objects copies their memory
