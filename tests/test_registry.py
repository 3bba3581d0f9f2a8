"""A stored configuration finds the class of every variant of the package (`training.registry`)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from attnscope.data.batch import Batch
from attnscope.data.tasks import MixtureCopy, ReorderedCopy
from attnscope.errors import UsageError
from attnscope.models.intervention import Intervention, Permuted, Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.spec import Spec
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adam
from attnscope.training.registry import import_kinds, read_unit
from attnscope.training.unit import Training, Unit
from cases import for_each

# Prints the variants that the package defines and those that a stored configuration finds.
LOOK = """
import json, pkgutil
from importlib import import_module

from attnscope.training.registry import import_kinds
from attnscope.runs.spec import Spec

import_kinds()

def below(cls):
    return {cls}.union(*map(below, cls.__subclasses__()))

def named(classes):
    return sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in classes)

roots = [root for root in below(Spec) if Spec in root.__bases__]
found = named({cls for root in roots for cls in root.variants.values()})
import attnscope
for module in pkgutil.walk_packages(attnscope.__path__, "attnscope."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
defined = named({cls for cls in below(Spec) if "kind" in cls.model_fields})
print(json.dumps({"found": found, "defined": defined}))
"""


@pytest.fixture(scope="module")
def looked() -> dict[str, list[str]]:
    result = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(result.stdout)


def test_reading_a_unit_knows_every_variant_of_the_package(looked):
    assert looked["defined"]
    assert sorted(set(looked["defined"]) - set(looked["found"])) == []


def test_no_two_variants_share_a_kind(looked):
    # A second class under the same kind would have taken the first one's place.
    assert sorted(set(looked["found"]) ^ set(looked["defined"])) == []


def variants():
    import_kinds()
    roots = [root for root in Spec.__subclasses__() if root.__module__.startswith("attnscope.")]
    return [
        (root, variant)
        for root in roots
        for variant in root.variants.values()
        if variant.__module__.startswith("attnscope.")
    ]


# What has no default: which corpus a text is, which unit is imitated.
NEEDED = {
    "rescaled": {"of": {"kind": "vectors", "path": "glove_100d", "digest": "0" * 64}, "length": 2},
    "carried-text": {
        "name": "own",
        "inputs": ["<unk>", "good", "bad"],
        "outputs": ["no", "yes"],
        "labels": True,
        "tokens": "blanks",
        "edges": "bare",
    },
    "imitation": {
        "base": {
            "source": {"kind": "keyword"},
            "model": {"kind": "classifier"},
            "training": {"steps": 1, "batch_size": 1, "evaluate_at": ()},
        }
    },
    "labelled-text": {"corpus": "sst"},
    "parallel-text": {"corpus": "multi30k-de-en"},
    "parallel-words": {"corpus": "tatoeba-en-fr"},
}


@for_each(("root", "variant"), variants())
def test_a_variant_is_read_back_as_itself(root, variant):
    one = variant(**NEEDED.get(variant.model_fields["kind"].default, {}))
    written = json.loads(json.dumps(one.model_dump(mode="json")))
    read = root.model_validate(written)
    assert type(read) is variant
    assert read == one


def test_a_whole_unit_is_read_back_with_its_variants_settings():
    unit = Unit(
        source=ReorderedCopy(length=3, vocabulary=5, permutation=2),
        model=Seq2SeqSpec(hidden=4, heads=2, head_seeds=(3, 1)),
        training=Training(
            steps=4,
            batch_size=2,
            evaluate_at=(2,),
            optimizer=Adam(lr=0.5),
            objective=(Likelihood(weight=0.25),),
            attention={"cross": Permuted(seed=9)},
            scores=(Attention(heads=1), LexicalProbe(reading="probability")),
        ),
        seed=6,
    )
    read = read_unit(json.loads(json.dumps(unit.config())))
    assert read == unit
    assert read.config() == unit.config()
    assert isinstance(read.training.attention["cross"], Permuted)


def test_another_variant_is_another_configuration():
    training = Training(steps=1, batch_size=1, evaluate_at=())
    plain = Unit(source=MixtureCopy(), model=Seq2SeqSpec(), training=training)
    uniform = training.model_copy(update={"attention": {"cross": Uniform()}})
    assert plain.config() != plain.model_copy(update={"training": uniform}).config()


def test_an_unknown_kind_comes_with_the_nearest_one_and_with_what_to_import():
    with pytest.raises(ValueError, match="unknown kind 'unifrom'") as raised:
        Intervention.model_validate({"kind": "unifrom"})
    assert "did you mean 'uniform'" in str(raised.value)
    assert "import that module first (--import MODULE on the command line)" in str(raised.value)


def test_a_kind_belongs_to_one_class():
    with pytest.raises(UsageError, match=r"Mine needs a kind of its own: 'uniform' is that of"):
        type("Mine", (Uniform,), {"__module__": __name__})
    assert Intervention.variants["uniform"] is Uniform


def test_a_read_back_source_draws_the_same_batches():
    source = ReorderedCopy(length=3, vocabulary=5, permutation=2)
    training = Training(steps=1, batch_size=1, evaluate_at=())
    unit = Unit(source=source, model=Seq2SeqSpec(), training=training)
    read = read_unit(unit.config()).source
    one, other = source.training_batch(1, 2, 8), read.training_batch(1, 2, 8)
    assert all(
        getattr(one, name).equal(getattr(other, name)) for name in Batch.__dataclass_fields__
    )
