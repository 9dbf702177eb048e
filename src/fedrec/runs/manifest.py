"""``manifest.json``: size and checksum of every file of a finished run, sealed itself.

While a run goes on, each file carries its own checksum, because a file and a list of checksums beside it cannot be
replaced at once. The manifest is written when all other files are final, just before ``result.json``, whose presence
says that the run is finished; it lists what ``result.json`` is going to be. So a kill leaves either an unfinished run,
whose manifest nobody reads, or a finished one with a manifest that fits. The checksums are those of ``b2sum -l 256``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedrec.core.kinds import fits
from fedrec.runs.atomic import keep_text
from fedrec.runs.sealed import KEY, damaged, digest, digest_of, read_sealed_json, sealed_json

MANIFEST = "manifest.json"
SCHEMA = "fedrec.manifest/1"


def write_manifest(folder: Path, names: list[str], texts: dict[str, str]) -> None:
    """List the files of a folder, and ``texts`` that are going to be written."""
    files = {name: {"size": (folder / name).stat().st_size, KEY: digest_of(folder / name)} for name in names}
    for name, text in texts.items():
        files[name] = {"size": len(text.encode()), KEY: digest(text.encode())}
    keep_text(folder / MANIFEST, sealed_json({"schema": SCHEMA, "files": files}, indent=2))


class Manifest:
    """What a finished run's files must be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / MANIFEST
        plain = read_sealed_json(path, must=True)
        files: Any = plain.get("files")
        if plain.get("schema") != SCHEMA or not fits(files, dict[str, dict[str, int | str]]):
            raise damaged(path, "it is not a manifest of this version")
        self.files: dict[str, dict[str, Any]] = files

    def check(self, name: str, data: bytes | None = None, advice: str = "") -> None:
        """Refuse a file that is not the one that was written; ``data`` where it has been read already."""
        path, entry = self.folder / name, self.files.get(name)
        if entry is None:
            raise damaged(path, f"{MANIFEST} does not list it", advice)
        size = path.stat().st_size if data is None else len(data)
        if size != entry.get("size"):
            raise damaged(path, f"it has {size} bytes, {MANIFEST} says {entry.get('size')}", advice)
        if (digest_of(path) if data is None else digest(data)) != entry.get(KEY):
            raise damaged(path, f"its checksum is not the one in {MANIFEST}", advice)
