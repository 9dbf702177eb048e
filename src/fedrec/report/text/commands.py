"""The exact command that repeats a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from fedrec.core.reference import Reference
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import find as find_method
from fedrec.runs.plan import usual_defence
from fedrec.runs.recipes import recipe
from fedrec.runs.settings import RunSettings, said

NOT_SAID = ("method", "data_dir", "memory_mb", "checkpoint_seconds", "keep_selected", "settings")
"""Where data lies and how much memory there is are the reader's own affair."""

BUDGETED = ("noise", "noise_kind", "compress", "delta")
"""What ``--epsilon`` chooses of a method's settings, and refuses beside itself."""


def run_command(settings: Mapping[str, Any]) -> str:
    """``fedrec run`` with all that differs from what it would choose by itself."""
    method, data = str(settings["method"]), str(settings.get("data", "demo"))
    protocol = str(settings.get("protocol", "strict"))
    words = ["fedrec", "run", method, "--data", data, "--protocol", protocol]
    usual: dict[str, Any] = {name: field.default for name, field in RunSettings.model_fields.items()}
    own: dict[str, Any] = {}
    try:
        kind = find_method(method)
        chosen = recipe(method, data, protocol, settings.get("settings"))
        usual["robust"] = usual_defence(kind.card, find_protocol(protocol), bool(settings.get("secure")))
        usual |= chosen.run
        own = kind.Settings(**chosen.settings).model_dump(mode="json")
        if issubclass(kind, Reference):
            usual["rounds"] = kind.rounds
    except Exception:  # a method that is no longer installed: say everything
        own = {}
    budget = settings.get("epsilon") is not None
    for key, value in {"robust": "none", **settings}.items():  # runs of 0.1.0 had no defence and no such setting
        if key in NOT_SAID or key in ("data", "protocol", "seed") or value == usual.get(key) or value is None:
            continue
        if key != "delta" or budget:
            words += said(key, value)
    words += ["--seed", str(settings.get("seed", 0))]
    for key, value in sorted(dict(settings.get("settings", {})).items()):
        if (own.get(key) != value or key not in own) and not (budget and key in BUDGETED):
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)
