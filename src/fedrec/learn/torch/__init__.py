"""Training blocks of clients in batched torch, on any device and without numba."""
