"""The most memory that a run held: of this process, since the run began."""

from __future__ import annotations

from contextlib import suppress


def forget_peak() -> None:
    """Count from here on; where the system cannot, the peak is that of the process."""
    with suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak_memory_mb() -> float:
    """Largest resident memory since :func:`forget_peak`; 0 where that cannot be seen.

    Not ``ru_maxrss`` where there is better: a process begins with the peak of the one that started it.
    """
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    try:
        import resource
    except ImportError:  # Windows does not count it so
        return 0.0
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
