"""Run settings: what the user gave, over the paper's recipe, over the method's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import find as find_method
from fedrec.runs.plan import defence_of, participation_of
from fedrec.runs.recipes import recipe
from fedrec.runs.settings import RunSettings


def resolve(method: str, given: Mapping[str, Any]) -> RunSettings:
    """Run settings: what the user gave, over the paper's recipe, over the method's defaults."""
    kind = find_method(method)
    protocol = find_protocol(given.get("protocol", "strict"))
    chosen = recipe(method, given.get("data", "demo"), protocol.name, given.get("settings"))
    own = {**chosen.settings, **given.get("settings", {})}
    checked = build(kind.Settings, own, method).model_dump(mode="json")
    usual = {"robust": kind.card.robust} if protocol.paper is None else {}
    base: dict[str, Any] = {**usual, **chosen.run, **given}
    if issubclass(kind, Reference):
        if kind.one_shot and int(given.get("rounds", 1)) > 1:
            raise BadInput(f"{method} is fitted in one step; leave --rounds out, or give 1")
        base["rounds"] = given.get("rounds", kind.rounds)
    settings = build(RunSettings, {**base, "method": method, "settings": checked}, "run")
    participation_of(settings)  # impossible shares and unknown pieces are found before any work
    defence_of(settings)
    return settings
