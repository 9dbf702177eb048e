"""Attacks against real messages of a run, and the table of what they get."""
