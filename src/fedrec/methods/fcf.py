"""FCF: federated collaborative filtering, the plain mean of item tables.

Ammad-ud-din et al., "Federated collaborative filtering for privacy-preserving personalized
recommendation", 2019; here with the local training of FedCA section 6.1, where it is the baseline
"averaged aggregation by allocating equal weights to each client".
"""

from __future__ import annotations

from fedrec.methods._shared.embedding import SharedTable, vectors_stay
from fedrec.methods._shared.server_steps import MeanOfChanges


class Fcf(MeanOfChanges, SharedTable):
    """Every client counts the same: Q = (1/n) sum_u Q_u."""

    name = "fcf"
    card = vectors_stay(
        title="FCF: the mean of the clients' item tables, with equal weights",
        paper="Ammad-ud-din et al., 2019; as the baseline FCF of FedCA (section 6.1)",
        upload="change of the item table (and of the network's weights where the backbone has layers)",
        sum_suffices=True,
        robust="rows",
        departures=(
            "local epochs with Adam and BCE, as in FedCA's comparison, instead of the closed-form user update "
            "and gradient upload of the original",
        ),
    )
