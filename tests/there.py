"""A value that may be missing in general but, as a test knows, is there."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def there(value: T | None) -> T:
    assert value is not None
    return value
