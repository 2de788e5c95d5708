"""A level that one entry hides is no public choice of another: who chose one level for all would send its name."""

from __future__ import annotations

from typing import Any

import pytest

from pldp.questions.collection import _require_apart


def asked(name: str, choices: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "choices": [{"name": one} for one in choices.split()], **more}


def test_a_hidden_level_is_no_public_choice_of_another_entry() -> None:
    with pytest.raises(ValueError, match="'high' is hidden in one entry of questions and a public choice in another"):
        _require_apart([asked("pet", "high low", hidden={}), asked("items", "high low")])


@pytest.mark.parametrize("choices", ["strict lax", "high"])
def test_other_names_or_no_choice_at_all_tell_nothing(choices: str) -> None:
    _require_apart([asked("pet", "high low", hidden={}), asked("items", choices), asked("town", "low high", hidden={})])
