"""Names that stored state had in earlier versions, and the state names they have now.

0.1.0 wrote ``module:class``. Modules move and classes are renamed; this table does not follow them by import, it only
says which state name an old file means. Rename a class by giving it ``state_name = "its name here"``.
"""

from __future__ import annotations

_METHODS_0_1_0 = (
    "central_mf:Factors", "central_vae:VaeState", "cofedrec:CoServer", "consensus:TwoViewPrivate", "ease:ItemWeights",
    "embedding:ItemServer", "embedding:UserVectors", "fedca:FedCaPrivate", "fedca:FedCaServer",
    "fedca_neighbours:FewPrivate", "fedca_neighbours:FewServer", "fedcia:CiaServer", "feddae:PrivateEncoder",
    "fedease:EaseServer", "fediar:IarPrivate", "fediar:IarServer", "fedmf:GradientServer", "fedspectral:SpectralServer",
    "gfcf:GraphFilter", "gpfedrec:GraphServer", "gpfedrec:OwnScorer", "lightgcn:Embeddings", "local:NoServer",
    "neumf:NeuralFactors", "perfedrec:ClusterServer", "personal:PersonalServer", "pfedrec:ScoreFunction",
    "popularity:Counts", "random_scores:RandomState", "sasrec:Attention", "vae_family:VaeServer",
)  # fmt: skip
"""Classes of methods whose state names are what they were called."""

OLD_NAMES: dict[str, str] = {
    **{f"fedrec.methods.{old}": old.partition(":")[2] for old in _METHODS_0_1_0},
    "fedrec.methods.fedcia_models:OwnModel": "fedcia.OwnModel",
    "fedrec.methods.fedease:NothingPrivate": "fedease.NothingPrivate",
    "fedrec.methods.fedvae:NothingPrivate": "fedvae.NothingPrivate",
    "fedrec.methods.local:OwnModel": "local.OwnModel",
    "fedrec.core.block:Block": "Block",
    "fedrec.core.messages:Rows": "Rows",
    "fedrec.data.ragged:Ragged": "Ragged",
    "fedrec.deploy.share:Share": "Share",
    "fedrec.evaluation.judging:Held": "Held",
}
