"""What somebody could learn from a run's messages, or do to it: each attack with a card like a method's."""
