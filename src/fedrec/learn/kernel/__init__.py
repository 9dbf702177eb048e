"""What numba compiles: training a client in one go, drawing its samples. Nothing else of learn/ needs numba."""
