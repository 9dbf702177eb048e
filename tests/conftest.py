"""Settings of every test: a machine under load must not fail one, so properties have no deadline.

A shell that starts tests in the background has them ignore SIGINT, and the programs that they start would ignore it
too: tests that interrupt a program need the usual handling, however they were started.
"""

import signal

from hypothesis import settings

settings.register_profile("fedrec", deadline=None)
settings.load_profile("fedrec")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
