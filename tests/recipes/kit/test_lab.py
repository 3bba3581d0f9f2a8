"""Plans of units keep their shape through training."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from attnscope.data.tasks import SampledCopy
from attnscope.models.proxy import ProxySpec
from attnscope.recipes.kit.lab import Lab, leaves
from attnscope.training.engine.workers import Workers
from attnscope.training.registry import read_unit
from attnscope.training.unit import Training, Unit


class Echo(Workers):
    """Workers that train nothing and record what they were given."""

    def __init__(self) -> None:
        self.given: list[Unit] = []

    def train(self, units: Sequence[Unit], *_: Any) -> list[Any]:
        self.given = list(units)
        return [
            SimpleNamespace(unit=unit, folder=SimpleNamespace(name=f"unit-{unit.seed}"))
            for unit in units
        ]


def unit(seed: int) -> Unit:
    return Unit(
        source=SampledCopy(length=3, vocabulary=5),
        model=ProxySpec(embedding=2),
        training=Training(steps=1, batch_size=2, evaluate_at=(), examples=2),
        seed=seed,
    )


def seeds(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: seeds(part) for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(seeds(part) for part in tree)
    return tree.unit.seed


def test_trained_units_come_back_in_the_shape_of_the_plan():
    lab = Lab(Echo())
    plan = [{"b": [unit(3), unit(1)], "a": []}, ((unit(2),), {0.5: unit(4)}), ()]
    trained = lab.train(plan, "units")
    assert seeds(trained) == [{"b": [3, 1], "a": []}, ((2,), {0.5: 4}), ()]
    # Mappings keep their order: "b" was given first.
    assert list(trained[0]) == ["b", "a"]


def test_a_single_unit_and_an_empty_plan_are_plans():
    lab = Lab(Echo())
    assert lab.train(unit(7), "one").unit.seed == 7
    assert lab.train([], "none") == []


def test_all_units_of_a_plan_are_trained_in_one_call_on_the_labs_device():
    workers = Echo()
    lab = Lab(workers, device="cuda")
    lab.train({"x": [unit(0), unit(1)], "y": [unit(2)]}, "units")
    assert [one.seed for one in workers.given] == [0, 1, 2]
    assert {one.device for one in workers.given} == {"cuda"}
    assert list(lab.used) == ["unit-0", "unit-1", "unit-2"]


def test_units_train_in_the_labs_precision_but_those_in_double_numbers():
    workers = Echo()
    double, own = [
        unit(seed).training.model_copy(update={name: value})
        for seed, name, value in ((1, "dtype", "float64"), (2, "precision", "tf32"))
    ]
    trainings = enumerate([unit(0).training, double, own])
    plan = [unit(seed).model_copy(update={"training": each}) for seed, each in trainings]
    Lab(workers, device="cuda", precision="tf32").train(plan, "units")
    assert [one.training.precision for one in workers.given] == ["tf32", "float32", "tf32"]
    assert [read_unit(one.config()) for one in workers.given] == workers.given
    Lab(workers, device="cuda").train(plan, "units")
    assert [one.training.precision for one in workers.given] == ["float32", "float32", "tf32"]


def test_leaves_are_the_units_from_left_to_right():
    plan = {"x": [unit(2)], "y": (unit(0), [unit(1)])}
    assert [one.seed for one in leaves(plan)] == [2, 0, 1]
