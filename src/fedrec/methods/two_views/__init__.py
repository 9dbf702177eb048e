"""Two views of every item, a shared and a private one: FedRAP, Fed3CR, FedIAR."""
