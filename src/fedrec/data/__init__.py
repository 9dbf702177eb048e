"""Where interactions come from: registry, readers, id maps, clients, synthetic worlds."""
