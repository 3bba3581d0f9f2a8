"""Units trained as one program are those trained one by one."""

from __future__ import annotations

import pytest

from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.tasks import PermutationCopy
from attnscope.models.architectures import AO, VED
from attnscope.models.attentions import DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import Concat, Recurrent, Residual
from attnscope.models.intervention import Permuted
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine import grouping, groups
from attnscope.training.engine.backend import CpuBackend
from attnscope.training.engine.groups import train_group
from attnscope.training.engine.vmapped import Gradients
from attnscope.training.engine.workers import Workers, train_units
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adam, Sgd
from attnscope.training.penalties import DirectionProduct, SquaredNorm
from attnscope.training.tying import Tying
from counted import Counted
from group_runs import by_seed, compare_with_one_by_one, dropping, stop_at


def weighted(seeds, model, term, **more):
    """Make units with a term of three weights, each with two seeds."""
    settings = {"source": GrammarSentiment(), "dtype": "float64"} | more
    return [
        unit
        for weight in (0.1, 1.0, 7.0)
        for unit in seeds((4, 0), model, objective=(Likelihood(), term(weight=weight)), **settings)
    ]


@dropping("DP-A", "AD")
def test_a_program_of_one_unit_is_that_unit(droppers, tmp_path):
    compare_with_one_by_one(droppers[:1], tmp_path, atol=1e-12)


@dropping("DP", "DP-L")
def test_room_is_made_for_the_longest_text_and_moves_no_number(droppers, tmp_path, monkeypatch):
    made = []

    class Roomy(Gradients):
        def make_room(self, widest):
            columns = widest()
            made.append(columns["inputs"].shape)
            self(columns)

    monkeypatch.setattr(CpuBackend, "gradients", lambda self, *parts: Roomy(*parts))
    compare_with_one_by_one(droppers, tmp_path)
    longest = max(len(example.inputs) for example in GrammarSentiment().training_examples)
    assert made == [(len(droppers), droppers[0].training.batch_size, longest)]


@dropping("DP-L", "AD")
def test_units_of_several_weights_are_those_trained_one_by_one(seeds, dropping, tmp_path):
    # As wide as the states of all of them. By plain steps: Adagrad's make something of a gradient
    # that is 0 up to rounding, as that of a bias under a softmax.
    model = dropping.model_copy(update={"embedding": 4})
    units = by_seed(weighted(seeds, model, MaskedWords, optimizer=Sgd(lr=0.01)))
    compare_with_one_by_one(units, tmp_path, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimizer": Adam(lr=0.05)},
        {"frozen": ("encoder",)},
        {"attention": {"cross": Permuted()}},
        {
            "model": EncoderDecoderSpec(architecture=VED(), hidden=5),
            "final_scores": (),
            "scores": (),
        },
        {"model": EncoderDecoderSpec(architecture=AO(), hidden=5, input_dimension=8)},
    ],
    ids=["aed", "adam", "frozen", "intervention", "ved", "ao"],
)
def test_a_group_has_the_numbers_of_its_units_one_by_one(seeds, tmp_path, settings):
    compare_with_one_by_one(seeds(dtype="float64", **settings), tmp_path)


def test_a_group_with_dropout_has_the_numbers_of_its_units_one_by_one(droppers, tmp_path):
    compare_with_one_by_one(droppers, tmp_path, atol=1e-12)


@dropping("DP-A", "DP-L")
def test_a_group_of_several_lambda_has_the_numbers_of_its_units_one_by_one(scaled, tmp_path):
    compare_with_one_by_one(scaled, tmp_path, atol=1e-12)
    ends = [unit.folder(tmp_path / "together").log[-1]["training_loss"] for unit in scaled]
    assert len(set(ends)) == 6


# tutek's models and terms, and a stack of layers; an LSTM of 2 units and 2 directions is as wide as
# words of 4.
RECURRENT = {
    "residual": (Residual(encoder=Recurrent(hidden=2)), (Tying(weight=0.1),)),
    "concat": (Concat(encoder=Recurrent(hidden=3)), (SquaredNorm(weight=0.1, parts=("encoder",)),)),
    "layers": (Recurrent(hidden=3, directions=1, layers=2), (DirectionProduct(weight=0.1),)),
    "gru": (Recurrent(hidden=3, cell="gru", layers=2, dropout=0.4), (SquaredNorm(weight=0.1),)),
}


@pytest.mark.parametrize("kind", RECURRENT)
def test_a_group_of_recurrent_models_has_the_numbers_of_its_units_one_by_one(seeds, tmp_path, kind):
    encoder, terms = RECURRENT[kind]
    model = ClassifierSpec(embedding=4, encoder=encoder, attention=DotProduct(), dropout=0.3)
    settings = {"source": GrammarSentiment(), "objective": (Likelihood(), *terms)}
    units = seeds((4, 0), model, dtype="float64", final_scores=(), **settings)
    compare_with_one_by_one(units, tmp_path)


# snell's encoder-decoders; the second has texts of several lengths and dropout between layers.
SEQ2SEQ = {
    "copying": (PermutationCopy(length=4), {}),
    "translator": (
        GrammarTranslation(),
        {"layers": 2, "directions": 2, "dropout": 0.5, "readout": "relu"},
    ),
    "gru": (GrammarTranslation(), {"cell": "gru", "directions": 2, "layers": 2, "dropout": 0.3}),
    "averaged": (GrammarTranslation(), {"cell": "gru", "heads": 3, "join": "averaged"}),
    "summed": (PermutationCopy(length=4), {"heads": 2, "readout": "linear"}),
}


@pytest.mark.parametrize("kind", SEQ2SEQ)
def test_a_group_of_encoder_decoders_has_the_numbers_of_its_units_one_by_one(seeds, tmp_path, kind):
    source, settings = SEQ2SEQ[kind]
    words = "shared" if isinstance(source, PermutationCopy) else "separate"
    model = Seq2SeqSpec(embedding=5, hidden=4, embeddings=words, **settings)
    units = seeds((4, 0), model, source, dtype="float64", final_scores=(), optimizer=Sgd(lr=0.5))
    compare_with_one_by_one(units, tmp_path, atol=1e-12)


@dropping("DP")
def test_what_a_step_draws_is_drawn_once_for_each_seed(scaled, tmp_path, monkeypatch):
    batches, streams = [], []
    batch, stream = GrammarSentiment.training_batch, groups._Member.stream
    monkeypatch.setattr(
        GrammarSentiment,
        "training_batch",
        lambda self, seed, step, size: (
            batches.append((step, seed)) or batch(self, seed, step, size)
        ),
    )
    monkeypatch.setattr(
        groups._Member,
        "stream",
        lambda self, step: streams.append((step, self.unit.seed)) or stream(self, step),
    )
    train_group(scaled, tmp_path)
    expected = [(step, seed) for step in range(8) for seed in (4, 0)]
    assert batches == streams == expected


def test_seeds_of_a_group_differ(expected):
    weights = [one["last.safetensors"] for one in expected]
    assert len(set(weights)) == 3


def test_groups_are_the_same_byte_for_byte_in_one_process_or_two(seeds, tmp_path, all_numbers):
    units = seeds(range(7), steps=6)
    progress = Counted()
    trained = train_units(units, tmp_path / "processes", 2, progress)
    assert [one.unit for one in trained] == units
    assert progress.steps == 42
    assert sorted(progress.done) == sorted(one.folder.name for one in trained)
    assert len(grouping.groups(units)) == 2
    train_units(units, tmp_path / "here", 1)
    assert all_numbers(units, tmp_path / "processes") == all_numbers(units, tmp_path / "here")


def test_one_process_makes_one_program_of_all_seeds(units, tmp_path, expected, all_numbers):
    train_units(units, tmp_path)
    assert all_numbers(units, tmp_path) == expected


def test_progress_counts_the_steps_of_all_units(units, tmp_path):
    with Workers(tmp_path) as workers:
        stop_at(units, tmp_path, 5)
        for _ in ("gone on with", "reused"):
            progress = Counted()
            workers.train(units, progress)
            assert progress.steps == 24
            assert len(progress.done) == 3
