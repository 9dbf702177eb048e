"""The key under which a run's histories are hashed: it lies with its owner, never in a run's folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fedrec.errors import BadInput
from fedrec.runs.atomic import private_folder, write_text

VARIABLE = "FEDREC_HISTORY_KEY"
"""Environment variable: the file with the key."""
BYTES = 32


def key_file() -> Path:
    """Where the key lies: as the variable says, else in the user's configuration."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_config_dir("fedrec", appauthor=False)) / "history.key"


def read_key() -> bytes:
    """The key; bad input where it is missing."""
    path = key_file()
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        raise BadInput(
            f"the histories of this run are hashed, and their key is not at {path}; put it there, or say where it is "
            f"with {VARIABLE}=FILE"
        ) from None
    except (OSError, ValueError):
        key = b""
    if len(key) != BYTES:
        raise BadInput(f"{path} is not a key of histories ({2 * BYTES} hexadecimal digits); restore it from a copy")
    return key


def made_key() -> bytes:
    """The key, made where there is none yet; its file can be read by its user alone."""
    path = key_file()
    if not path.exists():
        private_folder(path.parent)
        write_text(path, secrets.token_hex(BYTES) + "\n", private=True)
    return read_key()
