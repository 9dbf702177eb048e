"""What a node takes of the settings that a server sends: no path, and no more of its machine than it was started with.

Settings that are about the machine a run is carried out on are marked (:data:`fedrec.core.settings.FOLDER`,
:data:`~fedrec.core.settings.MEMORY`); on a node they are the node's own, whatever the server says.
"""

from __future__ import annotations

from typing import Any

from fedrec.core.block import World
from fedrec.core.method import Method
from fedrec.core.settings import FOLDER, MEMORY, build
from fedrec.deploy.node.share import NodeOptions
from fedrec.errors import BadInput
from fedrec.memory import MIB
from fedrec.methods.registry import find as find_method
from fedrec.runs.settings import RunSettings


def accepted(options: NodeOptions, given: Any, *, taking_part: bool = True) -> RunSettings:
    """The run's settings as this node carries them out; ``taking_part`` asks whether it may."""
    if not isinstance(given, dict):
        raise BadInput("the run's settings are not a table of names and values")
    settings = build(RunSettings, given, "the run")
    kind: Any = find_method(settings.method, settings.settings)
    if not issubclass(kind, Method):
        raise BadInput(f"{settings.method} is not a federated method; a node has nothing to do for it")
    if taking_part and settings.secure and (options.members is None or options.sums_key is None):
        raise BadInput("the run makes secure sums, and this node was started without --members")
    if taking_part and options.members is not None and not settings.secure:
        raise BadInput("this node was started with --members and takes part in secure sums only")
    own = dict(settings.settings)
    for name, field in kind.Settings.model_fields.items():
        if field.json_schema_extra == FOLDER:
            own[name] = str(options.folder / "spill")
        elif field.json_schema_extra == MEMORY:
            wanted = getattr(build(kind.Settings, {k: v for k, v in own.items() if k == name}, settings.method), name)
            own[name] = min(wanted, options.private_mb)
    build(kind.Settings, own, settings.method)  # what is out of range is known before anything is prepared
    return settings.model_copy(
        update={
            "data_dir": options.data_dir,
            "device": settings.device if options.device == "cuda" else "cpu",
            "memory_mb": min(settings.memory_mb, options.memory_mb),
            "settings": own,
        }
    )


def refuse_too_large(options: NodeOptions, method: Method[Any, Any, Any, Any], world: World) -> None:
    """Refuse a run of which one client alone would need more memory than the node gives."""
    needed = method.client_bytes(world) // MIB
    if needed > options.most_mb:
        raise BadInput(f"a client of this run needs {needed} MiB, this node gives at most {options.most_mb} MiB")
