"""Notebooks, carried out and written as pages with their outputs. The notebooks themselves are kept without outputs."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 300
STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""What a terminal is told of colours and the like: a cell's command has one."""


def opened(path: Path) -> Any:
    """A notebook as it stands."""
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def carried_out(path: Path) -> Any:
    """The notebook with the outputs of its cells, run in an empty folder; an error in a cell ends it."""
    notebook = opened(path)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute(env={**os.environ, "COLUMNS": "100"})
    return notebook


def as_page(notebook: Any, name: str) -> dict[str, str | bytes]:
    """The page and its pictures, by their places in the site."""
    files: dict[str, str | bytes] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            for kind, content in shown(output):
                if kind == "png":
                    picture = f"{name}-{len(files) + 1}.png"
                    files[f"notebooks/{picture}"] = base64.b64decode(content)
                    parts.append(f"![]({picture})")
                else:
                    parts.append(content if kind == "html" else f"```text\n{content}\n```")
    origin = f'<a href="{name}.ipynb" download>This page as a notebook</a>'
    return {**files, f"notebooks/{name}.md": "\n\n".join([*parts, origin]) + "\n"}


def shown(output: Any) -> Iterator[tuple[str, str]]:
    """What a reader sees of an output: the richest form that a page can show."""
    if output.output_type == "stream":
        if output.name == "stdout":
            yield "text", STYLE.sub("", output.text).rstrip()
        return
    data = output.get("data", {})
    if "image/png" in data:
        yield "png", data["image/png"]
    elif "text/html" in data:
        yield "html", f'<div class="output">\n{data["text/html"]}\n</div>'
    elif "text/plain" in data:
        yield "text", data["text/plain"]


def notebook_pages(folder: Path) -> dict[str, str | bytes]:
    """All notebooks of a folder as pages, each beside the notebook itself."""
    pages: dict[str, str | bytes] = {}
    for path in sorted(folder.glob("*.ipynb")):
        pages |= as_page(carried_out(path), path.stem)
        pages[f"notebooks/{path.name}"] = path.read_bytes()
    return pages
