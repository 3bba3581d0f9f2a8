"""Your own recipe, with a claim: a classifier's attention finds the keyword it has to look for.

Run it with `attnscope run own_recipe.py`; with a setting, `attnscope run own_recipe.py steps=50`.
"""

from pydantic import Field

from attnscope.analysis import mean_interval
from attnscope.claims import Cells, Claim, Needs, Part, above
from attnscope.data import KeywordTask
from attnscope.models import ClassifierSpec
from attnscope.runs import Settings, measured
from attnscope.training import Training, Unit


class Config(Settings):
    """Settings, each with the reason for its default."""

    seeds: int = Field(5, ge=1)  # enough for an interval
    steps: int = Field(300, ge=1)  # the task is learned after about 200
    length: int = Field(10, ge=2)


QUICK = {"seeds": 2, "steps": 60}  # attnscope run own_recipe.py --quick


def measure(config, lab):
    """Train the units and return what is measured on them."""
    task = KeywordTask(length=config.length)
    training = Training(steps=config.steps, batch_size=32, evaluate_at=(), stored=50)
    units = [
        Unit(source=task, model=ClassifierSpec(), training=training, seed=seed)
        for seed in range(config.seeds)
    ]
    shares = [keyword_share(unit.stored("attention")) for unit in lab.train(units, "keyword")]
    interval = mean_interval(shares)
    seeds = range(config.seeds)
    return [measured("keyword_share", task.dataset, interval, seeds=seeds)]


def keyword_share(score):
    """Return the attention on the keyword, averaged over the examples that have one."""
    place = score.batch.gold[:, 0]  # -1 where there is no keyword
    return float(score.values[place >= 0, 0].gather(1, place[place >= 0, None]).mean())


CLAIMS = {
    "own.finds-keyword": Claim(
        Cells("keyword_share"),
        (Part("attention on the keyword", "keyword_share", above, 0.5),),
        Needs(seeds=5),
        statement="most of the attention is on the keyword",
    )
}
