"""Settings of every test: a machine under load must not fail one, so properties have no deadline."""

from hypothesis import settings

settings.register_profile("fedrec", deadline=None)
settings.load_profile("fedrec")
