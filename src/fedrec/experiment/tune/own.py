"""What a search decides by itself; nothing is imported here, since the command line reads it."""

OWN = (
    "rounds", "evaluate_every", "test", "keep_selected", "checkpoint_seconds", "settle", "runtime", "nodes",
    "node_sums",
)  # fmt: skip
"""Options of a run that `fedrec tune` does not take, or has as its own."""
