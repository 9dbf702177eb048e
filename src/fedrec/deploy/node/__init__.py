"""The node's side of a deployment: its data, its files, its answer to a message; nothing of it leaves but answers."""
