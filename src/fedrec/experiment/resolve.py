"""Run settings: what the user gave, over the paper's recipe, over the method's defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.errors import BadInput, quoted
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import federated, name_of
from fedrec.methods.registry import find as find_method
from fedrec.privacy.accountant import local_noise
from fedrec.runs.plan import defence_of, participation_of, usual_defence
from fedrec.runs.recipes import recipe
from fedrec.runs.settings import RunSettings

TAKERS = {"robust_factor": {"bound", "rows"}, "robust_share": {"krum", "trimmed"}}
"""Which pieces of a defence look at which option."""
CLIP = 1.0
"""The clip bound under a privacy budget, where none is given."""


def resolve(method: str, given: Mapping[str, Any], recipes: Sequence[Mapping[str, Any]] = ()) -> RunSettings:
    """Run settings: what the user gave, over recipes of their own, over the paper's, over the method's defaults."""
    method = name_of(method)
    kind = find_method(method)
    said = {} if given.get("settings") is None else given["settings"]
    if not isinstance(said, Mapping):
        raise BadInput(
            f"settings={quoted(said, 60)} is not a mapping; give names and values, such as settings={{'dim': 16}}"
        )
    protocol = find_protocol(given.get("protocol", "strict"))
    chosen = recipe(method, given.get("data", "demo"), protocol.name, said, recipes)
    own = {**chosen.settings, **said}
    base: dict[str, Any] = {**chosen.run, **given}
    if base.get("epsilon") is None and "delta" in given and "delta" not in chosen.run:
        advice = "leave it out" if issubclass(kind, Reference) else f"give --set delta={given['delta']}"
        raise BadInput(f"--delta works only with --epsilon; {advice}")
    if base.get("epsilon") is not None:
        own = within_budget(kind, own, base, said)
    checked = build(kind.Settings, own, method).model_dump(mode="json")
    base.setdefault("robust", usual_defence(kind.card, protocol, bool(base.get("secure") or base.get("node_sums"))))
    if issubclass(kind, Reference):
        base["rounds"] = base.get("rounds", kind.rounds)
    option = "--secure" if base.get("secure") else "--node-sums" if base.get("node_sums") else None
    if option is not None:
        refuse_unsummed(kind, own, option)
        if base.get("secure") and base.get("node_sums"):
            raise BadInput("with --secure-by nodes, --secure already hides the nodes' sums; leave --node-sums out")
        if base["robust"] != "none":
            raise BadInput(
                f"with {option} the server sees no single upload, so --robust {base['robust']} has nothing to work on; "
                "leave one of them out (--set clip=... bounds what each client may send)"
            )
    settings = build(RunSettings, {**base, "method": method, "settings": checked}, "run")
    participation_of(settings)  # impossible shares and unknown pieces are found before any work
    defence_of(settings)
    if not issubclass(kind, Reference):
        refuse_unused(given)
    elif kind.one_shot and "rounds" in given and settings.rounds > 1:
        raise BadInput(f"{method} is fitted in one step; leave --rounds out, or give 1")
    return settings


def refuse_federation(method: str, given: Mapping[str, Any]) -> None:
    """What says who takes part, or how uploads are looked at, would not change a single centralised run."""
    if issubclass(find_method(name_of(method)), Reference):
        for name in ("participation", "rest", "robust", "robust_factor", "robust_share"):
            if name in given:
                option = "--" + name.replace("_", "-")
                raise BadInput(f"{name_of(method)} is centralised: no clients take part; leave {option} out")


def refuse_unused(given: Mapping[str, Any]) -> None:
    """A factor or a share beside a defence that looks at neither is bad input.

    Where no defence is named, each method has its own, and an audit tries more.
    """
    robust = given.get("robust")
    for name, takers in TAKERS.items():
        if robust is not None and name in given and takers.isdisjoint(robust.split("+")):
            option, able = "--" + name.replace("_", "-"), " or ".join(sorted(takers))
            raise BadInput(f"{option} is for --robust {able}, and this run has {robust}; leave {option} out")


def within_budget(
    kind: Any, own: Mapping[str, Any], base: Mapping[str, Any], said: Mapping[str, Any]
) -> dict[str, Any]:
    """The method's settings under a privacy budget: its private form, a clip bound, and noise on each upload where the
    server sees single uploads. The noise of secure sums depends on who takes part; the runtime chooses it."""
    if issubclass(kind, Reference):
        raise BadInput(f"{kind.name} is centralised: all histories are collected; leave --epsilon out")
    for name in ("noise", "noise_kind", "compress"):
        if said.get(name):
            raise BadInput(f"--epsilon chooses the noise of the run; leave --set {name} out")
    if "delta" in said:
        raise BadInput("--epsilon uses --delta; give --delta in place of --set delta")
    if base.get("secure") and base.get("settle"):
        raise BadInput("--settle goes by losses, and with --epsilon and --secure none are sent; leave --settle out")
    settings = build(RunSettings, {**base, "method": kind.name, "settings": {}}, "run")
    made = {**kind.private_form, **own, "noise": 0.0, "noise_kind": "gaussian", "compress": "none"}
    made["delta"] = settings.delta
    method = kind(build(kind.Settings, made, kind.name))
    if method.contribution() is None and not method.settings.clip:
        made["clip"] = CLIP
    if settings.secure:
        return made
    releases = 1 if kind.contributes_once else participation_of(settings).most(settings.rounds)
    method = kind(build(kind.Settings, made, kind.name))
    made["noise"] = local_noise(
        settings.epsilon or 0.0,
        settings.delta,
        releases=releases,
        clip=method.settings.clip,
        contribution=method.contribution(),
    )
    return made


def refuse_unsummed(kind: Any, own: Mapping[str, Any], option: str) -> None:
    """Sums are for methods whose server needs sums only."""
    if issubclass(kind, Reference):
        raise BadInput(f"{kind.name} is centralised: there are no uploads to hide; leave {option} out")
    why = kind(build(kind.Settings, dict(own), kind.name)).not_summed()
    if why is not None:
        able = [name for name in federated() if find_method(name).card.sum_suffices]
        raise BadInput(f"{kind.name} cannot run with {option}: {why}; these can: {', '.join(able)}")
