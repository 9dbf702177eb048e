"""What somebody could learn from a run's messages, or do to it: one file per attack, with a card like methods have."""
