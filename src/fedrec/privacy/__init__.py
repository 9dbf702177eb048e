"""What is done to an upload on its way out, and what that is worth."""

from fedrec.privacy.accountant import Guarantee, local
from fedrec.privacy.card import PrivacyCard
from fedrec.privacy.chain import Chain, describe, outgoing

__all__ = ["Chain", "Guarantee", "PrivacyCard", "describe", "local", "outgoing"]
