"""``fedrec doctor``: whether this machine can do the work."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version

import typer

from fedrec.extras import how_to_install

PACKAGES = (
    "torch", "numba", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "pydantic", "safetensors", "dp-accounting",
)  # fmt: skip
OPTIONAL = ("flwr", "matplotlib", "optuna", "fastapi")


def doctor() -> None:
    """Check packages, cores, the fast kernel, CUDA and the data folder, and say what to do about a fault."""
    faults = 0
    typer.echo(f"python        {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")
    for name in PACKAGES + OPTIONAL:
        try:
            typer.echo(f"{name:<13} {version(name)}")
        except PackageNotFoundError:
            faults += name in PACKAGES
            lack = "MISSING" if name in PACKAGES else "not installed; where it is wanted"
            typer.echo(f"{name:<13} {lack}: {how_to_install(name)}")
    faults += _kernel()
    import torch  # not before: where packages are missing, the lines above have said so

    from fedrec.data.describe import listing
    from fedrec.data.load import default_data_dir

    name = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none (the CPU does)"
    typer.echo(f"cuda          {name}")
    here = [row.name for row in listing(None) if row.present and row.folder is not None]  # others are made by code
    folder = default_data_dir()
    if folder.exists() and not folder.is_dir():
        faults += 1
        typer.echo(f"data folder   {folder}: IS NOT A FOLDER; set FEDREC_DATA to one")
    else:
        typer.echo(f"data folder   {folder}: {', '.join(here) or 'empty (fedrec data get ml-100k)'}")
    if faults:
        raise typer.Exit(1)
    typer.echo("all is well")


def _kernel() -> int:
    import fedrec

    began = time.perf_counter()
    try:
        fedrec.run("fedavg", data="demo", rounds=1, settings={"engine": "kernel"})
    except Exception as problem:
        typer.echo(f"fast kernel   BROKEN: {problem}")
        return 1
    from fedrec.compiled import kept_in

    typer.echo(f"fast kernel   works ({time.perf_counter() - began:.1f} s for a first round on the demo world)")
    if kept_in() is None:  # no fault: it costs every process the seconds above
        typer.echo(
            "              compiled anew by every process: no cache folder can be written to; set NUMBA_CACHE_DIR to a "
            "folder that only you can write to"
        )
    return 0
