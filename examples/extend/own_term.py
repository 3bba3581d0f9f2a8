"""Your own loss term: attention is to be sharp, so its entropy is added to the loss."""

from pathlib import Path
from typing import Literal

from attnscope.data import KeywordTask
from attnscope.models import ClassifierSpec
from attnscope.training import Likelihood, Term, Training, Unit, train_units


class AttentionEntropy(Term):
    """Mean entropy of attention at a site, in nats; ``weight`` is a field of every term."""

    kind: Literal["my-attention-entropy"] = "my-attention-entropy"
    site: str = "cross"

    def __call__(self, model, batch, trace, randomness):
        weights = trace.sites[self.site].weights  # batch, heads, out, inp
        entropy = -(weights * weights.clamp_min(1e-9).log()).sum(-1).mean(1)  # batch, out
        return entropy[batch.target_mask].mean()  # any torch code will do


def training(weight):
    objective = (Likelihood(), AttentionEntropy(weight=weight))
    return Training(steps=30, batch_size=16, evaluate_at=(), objective=objective)


if __name__ == "__main__":
    task = KeywordTask(length=8)
    units = [
        Unit(source=task, model=ClassifierSpec(), training=training(weight), seed=seed)
        for weight in (0.0, 1.0)
        for seed in range(2)
    ]
    for unit in train_units(units, Path("runs")):
        weight = unit.unit.training.objective[1].weight
        largest = unit.stored("attention").values.amax(-1).mean()
        print(f"weight {weight}, seed {unit.unit.seed}: largest attention {largest:.2f}")
