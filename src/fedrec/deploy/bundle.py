"""The app folder that Flower ships to server and nodes: two lines that name our entry points.

fedrec itself is not shipped: it is installed where a node runs.
"""

from __future__ import annotations

from pathlib import Path

SERVER, CLIENT = "fedrec.deploy.server_app:app", "fedrec.deploy.client_app:app"

PYPROJECT = """\
[project]
name = "fedrec-run"
version = "1.0.0"
description = "A fedrec run"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "fedrec"

[tool.flwr.app.components]
serverapp = "fedrec_run.server:app"
clientapp = "fedrec_run.client:app"

[tool.flwr.app.config]
folder = ""
"""


def write_bundle(folder: Path, server: str = SERVER, client: str = CLIENT) -> Path:
    """Write the app into ``folder`` and return its path."""
    package = folder / "fedrec_run"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (package / "__init__.py").write_text("", encoding="utf-8")
    for name, target in (("server", server), ("client", client)):
        module, _, attribute = target.partition(":")
        (package / f"{name}.py").write_text(
            f'from {module} import {attribute} as app\n\n__all__ = ["app"]\n', encoding="utf-8"
        )
    return folder
