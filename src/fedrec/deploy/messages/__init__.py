"""What crosses the wire: the letters, how they become bytes, and whether they are what they must be."""
