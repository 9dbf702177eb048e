"""How a model is judged: splits, negatives pools, candidates, metrics, protocols, leak canary, statistics."""
