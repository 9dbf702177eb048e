"""The server's side of a deployment: who takes part, the rounds, the fold, the run's folder."""
