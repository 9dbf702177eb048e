"""How a block of clients trains: keyed samples, one fused CPU kernel, one batched torch engine."""
