"""No channel draws for a value that it is not made for; test_plan.py has that plans with such channels are refused."""

from __future__ import annotations

import pytest

from pldp.client.dice import HALF, Dice
from pldp.client.holdings import Bits, OneValue
from pldp.client.protocols import BRR, KRR, OLH, OUE, Protocol, Subset

PROTOCOLS = (KRR(2, HALF), BRR(2, HALF), OUE(2, HALF), Subset(2, 1, HALF), Subset(1, 1, HALF), OLH(2, 2, HALF))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_a_protocol_draws_for_the_values_of_its_domain_only(protocol: Protocol) -> None:
    for value in range(protocol.domain_size):
        assert protocol.possible(protocol.draw(value, Dice()))
    for beyond in (-1, protocol.domain_size):
        with pytest.raises(ValueError, match="beyond the channel's domain"):
            protocol.draw(beyond, Dice())


@pytest.mark.parametrize("beyond", [-1, 2])
def test_items_beyond_the_channel_are_not_drawn_for(beyond: int) -> None:
    with pytest.raises(ValueError, match="beyond the channel's items"):
        Bits((HALF, HALF), (HALF, HALF)).rows((0, beyond), Dice())
    with pytest.raises(ValueError, match="beyond the channel's domain"):
        OneValue((HALF, HALF), (1, 1)).rows((beyond,), Dice())
