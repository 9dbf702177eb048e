"""The name tag that a run carries through Flower: an application without code.

Flower wants an application with every run. Server and nodes do their own work, whatever is shipped; they compare the
hash of what was shipped with that of this bundle, and refuse anything else.
"""

from __future__ import annotations

from pathlib import Path

PYPROJECT = """\
[project]
name = "fedrec-run"
version = "2.0.0"
description = "A fedrec run"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "fedrec"

[tool.flwr.app.components]
serverapp = "fedrec_run.nothing:app"
clientapp = "fedrec_run.nothing:app"

[tool.flwr.app.config]
folder = ""
"""


def write_bundle(folder: Path) -> Path:
    """Write the bundle into ``folder`` and return its path."""
    package = folder / "fedrec_run"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "nothing.py").write_text("app = None\n", encoding="utf-8")
    return folder
