"""Names that stored state had in earlier versions, and the state names they have now.

0.1.0 wrote ``module:class``. Modules move and classes are renamed; this table does not follow them by import, it only
says which state name an old file means. Rename a class by giving it ``state_name = "its name here"``.
"""

from __future__ import annotations

_METHODS_0_1_0 = {
    "central_mf:Factors": "Factors",
    "central_vae:VaeState": "VaeState",
    "cofedrec:CoServer": "CoServer",
    "consensus:TwoViewPrivate": "TwoViewPrivate",
    "ease:ItemWeights": "ItemWeights",
    "embedding:ItemServer": "ItemServer",
    "embedding:UserVectors": "UserVectors",
    "fedca:FedCaPrivate": "FedCaPrivate",
    "fedca:FedCaServer": "FedCaServer",
    "fedca_neighbours:FewPrivate": "FewPrivate",
    "fedca_neighbours:FewServer": "FewServer",
    "fedcia:CiaServer": "CiaServer",
    "fedcia_models:OwnModel": "fedcia.OwnModel",
    "feddae:PrivateEncoder": "PrivateEncoder",
    "fedease:EaseServer": "EaseServer",
    "fedease:NothingPrivate": "fedease.NothingPrivate",
    "fediar:IarPrivate": "IarPrivate",
    "fediar:IarServer": "IarServer",
    "fedmf:GradientServer": "GradientServer",
    "fedspectral:SpectralServer": "SpectralServer",
    "fedvae:NothingPrivate": "fedvae.NothingPrivate",
    "gfcf:GraphFilter": "GraphFilter",
    "gpfedrec:GraphServer": "GraphServer",
    "gpfedrec:OwnScorer": "OwnScorer",
    "lightgcn:Embeddings": "Embeddings",
    "local:NoServer": "NoServer",
    "local:OwnModel": "local.OwnModel",
    "neumf:NeuralFactors": "NeuralFactors",
    "perfedrec:ClusterServer": "ClusterServer",
    "personal:PersonalServer": "PersonalServer",
    "pfedrec:ScoreFunction": "ScoreFunction",
    "popularity:Counts": "Counts",
    "random_scores:RandomState": "RandomState",
    "sasrec:Attention": "Attention",
    "vae_family:VaeServer": "VaeServer",
}

OLD_NAMES: dict[str, str] = {
    **{f"fedrec.methods.{old}": name for old, name in _METHODS_0_1_0.items()},
    "fedrec.core.block:Block": "Block",
    "fedrec.core.messages:Rows": "Rows",
    "fedrec.data.ragged:Ragged": "Ragged",
    "fedrec.deploy.share:Share": "Share",
    "fedrec.evaluation.judging:Held": "Held",
}
