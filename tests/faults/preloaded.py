"""What processes of tests are forked with: modules that take seconds to import, and no garbage to look for in them."""

# ruff: noqa: F401

from __future__ import annotations

import gc

import pldp.expectations.runner
import pldp.flows.cli
import pldp.flows.collecting
import pldp.flows.collector
import pldp.flows.pipeline
import pldp.flows.release
import pldp.flows.render
import pldp.tasks.page
import tests.faults.dying

gc.collect()
gc.freeze()  # a child that goes through these objects copies their memory
