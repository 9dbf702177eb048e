"""What is done to an upload on its way out, and what that is worth."""

from fedrec.privacy.accountant import Account, Guarantee, account
from fedrec.privacy.chain import Chain, describe, outgoing

__all__ = ["Account", "Chain", "Guarantee", "account", "describe", "outgoing"]
