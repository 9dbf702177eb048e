"""How a model is evaluated: splits, negatives pools, candidates, metrics, protocols, leak canary, statistics."""
