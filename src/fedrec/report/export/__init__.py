"""A run's history for other people's tools, out of its folder: finished runs, and runs that go on."""
