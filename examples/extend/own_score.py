"""Your own score: attention times the length of the value it is paid to (Kobayashi et al. 2020)."""

from pathlib import Path
from typing import Literal

import attnscope
from attnscope.data import KeywordTask
from attnscope.models import ClassifierSpec
from attnscope.scores import Attention, ScoreRule
from attnscope.training import Training, Unit, train_units


class WeightedNorm(ScoreRule):
    """α_l ‖v_l‖ at a site, heads averaged."""

    kind: Literal["my-weighted-norm"] = "my-weighted-norm"  # how stored units name it
    site: str = "cross"  # settings are pydantic fields; they enter a unit's hash

    @property
    def name(self):
        return "weighted_norm"  # how results and stored scores name it

    def values(self, model, trace):
        site = trace.sites[self.site]
        lengths = site.values.norm(dim=-1)  # batch, heads, inp
        return (site.weights * lengths[:, :, None]).mean(1)  # batch, out, inp


if __name__ == "__main__":
    # On a trained model: any sentence, any comparison.
    demo = attnscope.load("demo")
    print(attnscope.compare(demo.score(WeightedNorm()), demo.score("attention")))

    # In training: stored at every evaluation.
    training = Training(
        steps=40, batch_size=16, evaluate_at=(20,), scores=(Attention(), WeightedNorm())
    )
    units = [
        Unit(source=KeywordTask(length=8), model=ClassifierSpec(), training=training, seed=seed)
        for seed in range(2)
    ]
    for unit in train_units(units, Path("runs")):
        print(unit, unit.stored("weighted_norm", step=20))
