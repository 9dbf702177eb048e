"""Protocols: split, training negatives, candidates, model selection and metrics under one name.

``strict`` is the default and has no known flaw of its own making. The others repeat what the papers did,
flaws included, so that a paper's table can be reproduced and the difference shown; each says what is wrong
with it, and every table made under one carries that text.
"""

from __future__ import annotations

from dataclasses import replace

from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput, unknown
from fedrec.evaluation.metrics import MetricSet
from fedrec.evaluation.rules import Rules, Selection
from fedrec.evaluation.splits import Given, LeaveOneOut, RandomShare, Split, WholeUsers
from fedrec.evaluation.task import Task, assemble, thinned


class Protocol(Rules):
    """Rules that can be put to data."""

    def prepare(self, data: Interactions, seed: int, train_share: float = 1.0) -> Task:
        """The data under this protocol; ready-split data keeps its own parts.

        With ``train_share`` users learn from a random share of what they would learn from; all else stays.
        """
        if self.whole_users and data.part is not None:
            raise BadInput(f"{data.name} is ready split; {self.name} holds out whole users and makes its own split")
        split: Split = self.split if data.part is None else Given()
        return thinned(assemble(self, data, seed, split(data, seed)), train_share)


LEAK = (
    "Training negatives are drawn from the items outside ALL of a user's interactions, so the held-out "
    "items are the only unseen items that are never pushed down; a client with its own item table finds "
    "them by elimination, even without any federation."
)
CHOSEN_ON_TEST = (
    "The reported round is the one that does best on the test set, so the figure is the best of many tries."
)
SAMPLED = (
    "The papers' figures rank the held-out item among 99 sampled items only, which is far easier than "
    "ranking the catalogue and can order methods differently; the full ranking is given beside it."
)
LOCAL = "The model evaluated is the one right after local training; a deployed client uses what it downloads next."

STRICT = Protocol(
    name="strict",
    source="this project's own protocol; the sampled candidates as in He et al. 2017 (NCF)",
    description=(
        "Leave-one-out: each user's last item is the test and the one before it the validation (two "
        "items drawn by the seed where the data has no time). Training negatives come from everything "
        "outside the user's training items. The held-out item is ranked against all items that the user "
        "has not trained on (for the test item the validation item is left out too) and, beside that, "
        "against 99 sampled items the user never touched. The round is chosen by full-ranking NDCG@10 on "
        "validation: this is what a user sees, it takes the rank into account, and it does not depend on which "
        "candidates were drawn. The model evaluated is the one a deployed client uses: its private state and the "
        "fresh download. Items with equal scores count by their expected rank. Time order is each user's own: other "
        "users' later interactions are trained on, as in all leave-one-out studies."
    ),
    flaws=(),
    split=LeaveOneOut(),
    negatives="train",
    candidates=99,
    selection=Selection("valid", "NDCG@10"),
    evaluated="download",
    metrics=MetricSet.standard(candidates=99),
)

NEW_USERS = replace(
    STRICT,
    name="strict-new-users",
    source="this project's own protocol; users held out whole as in Liang et al. 2018 (Mult-VAE)",
    description=(
        "How well a finished model serves somebody new. A tenth of the users are held out whole for validation and "
        "a tenth for the test, drawn by the seed; training uses all interactions of all other users. A held-out "
        "user's history but for the last item (one drawn by the seed where the data has no time) is given when the "
        "user is served. Filters and autoencoders read it; methods with user vectors fit one in ten rounds of local "
        "work, of which only the private parts are kept; a client that would receive something personal receives "
        "the mean over clients. The last item is ranked against all items that the user does not have and, beside "
        "that, against 99 sampled ones. The round is chosen by full-ranking NDCG@10 on the validation users."
    ),
    split=WholeUsers(),
    whole_users=True,
)

FEDCA = replace(
    STRICT,
    name="paper-fedca",
    source="FedCA, section 6.1 (split, filter, metrics); its code for the negatives, chosen round, evaluated model",
    description=(
        "Users with 10 or more interactions. Leave-one-out by time (random where there is none), the "
        "held-out item ranked among 99 sampled unobserved items, HR@10/99 and NDCG@10/99 reported."
    ),
    flaws=(LEAK, CHOSEN_ON_TEST, SAMPLED, LOCAL),
    negatives="all",
    selection=Selection("test", "HR@10/99"),
    evaluated="local",
    paper="fedca",
)

FED3CR = replace(
    FEDCA,
    name="paper-fed3cr",
    source=(
        "Fed3CR, section V-A, which follows FedRAP's set-up (split, negatives, rounds); it has no public code, "
        "so what the text leaves open is taken from FedRAP's code, which evaluates clients with the "
        "aggregated table beside their private ones"
    ),
    description=(
        "Users with 10 or more interactions (5 on Douban-Book). Leave-one-out by time (random where "
        "there is none), the held-out item ranked among 99 sampled unobserved items, HR@10/99 and "
        "NDCG@10/99 reported."
    ),
    flaws=(LEAK, CHOSEN_ON_TEST, SAMPLED),
    evaluated="download",
    paper="fed3cr",
)

FEDIAR = replace(
    FEDCA,
    name="paper-fediar",
    source=(
        "FedIAR, implementation details (split, 99 candidates, round chosen on validation); it has no public "
        "code, so the pool of negatives and the evaluated model are those of PFedRec's code, whose set-up it "
        "follows"
    ),
    description=(
        "Leave-one-out by time (random where there is none), the held-out item ranked among 99 sampled "
        "unobserved items. The round with the best validation HR@10/99 is chosen; HR and NDCG at 5 and 10 are reported."
    ),
    flaws=(LEAK, SAMPLED, LOCAL),
    selection=Selection("valid", "HR@10/99"),
    paper="fediar",
)

FEDDAE = replace(
    STRICT,
    name="paper-feddae",
    source="FedDAE, Experiments (leave-one-out, K=20); its code for the ranking, chosen round and dropped users",
    description=(
        "Leave-one-out by time (random where there is none). HR@20 (Recall@20) and NDCG@20 over all items "
        "outside the user's training set; the round is the one with the best validation NDCG@20. Neither the paper "
        "nor its code settles which model is evaluated; here it is the one that would be deployed."
    ),
    flaws=(
        "Users whose test item nobody trained on are dropped; they would count as misses, so the mean rises.",
        "The validation item stays in the ranking when the test item is evaluated, which lowers figures a little.",
    ),
    candidates=0,
    selection=Selection("valid", "NDCG@20"),
    metrics=MetricSet.standard(),
    paper="feddae",
    drop_unseen_targets=True,
    mask_valid=False,
)

FEDCIA = replace(
    STRICT,
    name="paper-fedcia",
    source=(
        "FedCIA, section 6.1 (8:2 split, 10 % of training for validation, K=10); its code for early stopping and "
        "metrics; its own partitions are ready-split data (fedcia/...)"
    ),
    description=(
        "A random 20 % of each user's items for the test and 10 % of the rest for validation; full ranking; "
        "training stops after 10 rounds without a better validation F1@10!. F1@10!, MRR@10! and NDCG@10! are "
        "computed as in the public code and are what the paper's tables show; the right F1@10, MRR@10 and "
        "NDCG@10 stand beside them. The paper's own ML-100K partition is not a random split of this kind: only "
        "about half of its users have test items."
    ),
    flaws=(
        "MRR@10! and NDCG@10! (published) lose the order of the list: it becomes a Python set, which is walked "
        "in an order that depends on item numbers, not on scores.",
        "NDCG@10! (published) divides by the DCG of the hits found instead of that of the ideal list, so missing "
        "everything but one item can still give 1.0.",
        "F1@10! (published) is computed from mean precision and mean recall, not as the mean of users' F1: "
        "users with many test items weigh more, and the figure is higher.",
        "The split ignores time: later interactions are trained on to predict earlier ones.",
    ),
    split=RandomShare(test=0.2, valid=0.1),
    candidates=0,
    selection=Selection("valid", "F1@10!", patience=10),
    metrics=MetricSet.standard(extra=("F1@10!", "MRR@10!", "NDCG@10!")),
    paper="fedcia",
)

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol for protocol in (STRICT, NEW_USERS, FEDCA, FEDCIA, FED3CR, FEDIAR, FEDDAE)
}


def find(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise unknown("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
