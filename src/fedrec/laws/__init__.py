"""The laws that every federated method obeys, as plain functions: the tests run them, and so does ``fedrec check``."""
