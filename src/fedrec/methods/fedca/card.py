"""What a user must know of FedCA before choosing it."""

from __future__ import annotations

from fedrec.core.method import Card

CARD = Card(
    title="FedCA: personal mixtures of item tables by model similarity and data complementarity",
    paper="Zhang et al., ACM TOIS 44(2), 2026",
    private="user vectors, interactions, the client's own last table",
    upload="the whole item table (and network), k left singular vectors of the interacted items' embeddings, "
    "the number of training interactions",
    sum_suffices=False,
    robust="rows",
    departures=(
        "Eq. (8) is solved exactly by projection onto the simplex instead of by a QP solver; Eq. (8) drops the "
        "factor 1 + alpha of Eq. (5), which normalise=eq5 keeps",
        "the paper leaves the signs of singular vectors open; here they are chosen so that no column has a negative "
        "sum",
        "rho blends the mixture with the client's own last trained table, as the text of section 5.1.3 says; its "
        "formula has the last mixture there. The blend is applied before local training too, unless blend=inference, "
        "and to the network as well; the proximal term (Table 9) pulls towards the table that training starts from",
        "raw in Table 11 is read as the interacted items' embeddings themselves, with columns scaled to length one",
        "public code: alpha and beta swapped and doubled (weights=code), one-component PCA similarity "
        "(variant_similarity=code), matched principal components (variant_complementarity=code; matching without "
        "regard to sign is our reading), and everybody trains while a share r (0.1) is mixed; here, as in Algorithm "
        "1, only the clients that take part train (--participation), all of them are mixed (r = 1), and absent "
        "clients keep their last mixture",
        "Eq. (7) compares row l of X_u with row l of X_v, which stand for different items of the two clients: c "
        "measures how alike two sequences of numbers are, above all in length",
        "proxy (section 5.2), blend=inference and variant_similarity=changes ('any similarity function') stay inside "
        "the paper's wording; train_from=average, averaged=rows, own_term=false and standardised=true go beyond it. "
        "Rows count as trained where they differ from what was sent; with noise, all of them do",
        "alpha=auto, beta=auto (not in the paper): a client reports how much better its mixture ranks its own "
        "validation items than the average does: one number per round, without noise",
        "where a client holds several users, an item counts once for each of them in I_u",
        "for very many clients there is fedca-approx (not in the paper)",
        "|D_u| and a random ticket (8 bytes together) also leave the client; Table 7 does not count them",
    ),
)
