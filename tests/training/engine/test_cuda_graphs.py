"""Gradients that are recorded once and done again are those that are worked out each time."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.randomness import generator
from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.architectures import AED, AO, LearnedAttention
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine import cuda_graphs, groups
from attnscope.training.engine.cuda_graphs import CudaGraphs, RecordedGradients
from attnscope.training.engine.dropout_masks import DropoutMasks
from attnscope.training.engine.groups import train_group
from attnscope.training.engine.vmapped import Gradients, stack, stack_batches
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import AitkenAdam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.repeatable import repeatable

SEEDS = (4, 0, 9)
TERMS = (Likelihood(), SquaredNorm(weight=1e-3))
MASKED = (Likelihood(), MaskedWords(weight=0.3))
TEXT, LABELLED = GrammarTranslation(), GrammarSentiment()
SPECS = {
    "aed": EncoderDecoderSpec(hidden=5),
    "aed-lstm-learned": EncoderDecoderSpec(
        architecture=AED(attention=LearnedAttention(key=3)), cell="lstm", hidden=5
    ),
    "ao": EncoderDecoderSpec(architecture=AO(), hidden=5, input_dimension=200),
    "rows": EncoderDecoderSpec(hidden=5, words="rows"),
}
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class PretendedGraphs(CudaGraphs):
    """Records on a CPU: what was recorded is done anew, into the numbers it first gave."""

    def __init__(self):
        self.recorded, self.replayed, self.models = 0, 0, None

    def send(self, numbers, place):
        place.copy_(numbers)

    def run_on_stream(self, work):
        return work()

    def record(self, work):
        self.recorded += 1
        parameters = [p for p in self.models.parameters.values() if p.requires_grad]
        losses = work().clone()
        kept = [parameter.grad for parameter in parameters]
        # A recording is not yet done, and whatever it left there has no meaning.
        for tensor in (losses, *kept):
            tensor.fill_(torch.nan)

        def replay():
            self.replayed += 1
            before = [parameter.grad for parameter in parameters]
            losses.copy_(work())
            # A replay writes numbers and knows nothing of who holds them.
            for parameter, place, held in zip(parameters, kept, before, strict=True):
                place.copy_(parameter.grad)
                parameter.grad = held

        return losses, replay


def batches(step, source=TEXT, size=6, seeds=SEEDS):
    return [source.training_batch(seed, step, size) for seed in seeds]


def updates(gradients, models, steps, source):
    """Train, and return the losses of all steps and the parameters after them."""
    optimizer = AitkenAdam(clip=0.5).build_stacked(models)
    masks = DropoutMasks(models, gradients.terms)
    losses, seeds = [], SEEDS[: models.reads.unique().numel()]
    for step in range(steps):
        given = batches(step, source, seeds=seeds)
        streams = [generator("training", seed, step) for seed in seeds]
        columns = stack_batches(given, gradients.width)
        losses.append(gradients(columns | masks(given, streams, columns)))
        optimizer.step()
    return torch.stack(losses), models.parameters


def both(spec, graphs, steps, device="cpu", source=TEXT, terms=TERMS):
    """Train without and with recordings from the same start; of several specs two seeds each."""
    several = isinstance(spec, list)
    cells = list(product(spec, SEEDS[:2]) if several else product([spec], SEEDS))
    reads = [SEEDS.index(seed) for _, seed in cells]
    plain, other = (
        stack([spec.build(source, seed).double().to(device) for spec, seed in cells], reads)
        for _ in range(2)
    )
    if isinstance(graphs, PretendedGraphs):
        graphs.models = other
    return (
        updates(Gradients(plain, terms), plain, steps, source),
        updates(RecordedGradients(other, terms, graphs=graphs), other, steps, source),
    )


def assert_alike(graphs, plain, other):
    """Assert that most steps were recorded ones, and gave the numbers of those that were not."""
    (losses, parameters), (found, others) = plain, other
    assert graphs.recorded > 1
    assert graphs.replayed > graphs.recorded
    assert found.equal(losses)
    for name, parameter in parameters.items():
        assert others[name].equal(parameter), name


def test_recorded_steps_are_the_plain_ones_whatever_the_width_of_a_batch(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_WARM", 1)
    graphs = PretendedGraphs()
    shapes = {stack_batches(batches(step))["inputs"].shape for step in range(12)}
    assert len(shapes) > 1
    assert_alike(graphs, *both(SPECS["aed"], graphs, 12))


def test_recorded_steps_take_their_own_masks(monkeypatch, dropping):
    monkeypatch.setattr(cuda_graphs, "_WARM", 1)
    graphs = PretendedGraphs()
    assert_alike(graphs, *both(dropping, graphs, 12, source=LABELLED))


def test_recorded_steps_choose_their_own_words_to_mask(monkeypatch, dropping):
    monkeypatch.setattr(cuda_graphs, "_WARM", 1)
    graphs, spec = PretendedGraphs(), dropping.model_copy(update={"embedding": 4})
    assert_alike(graphs, *both(spec, graphs, 12, source=LABELLED, terms=MASKED))


def test_recorded_steps_of_several_lambda_read_the_batches_of_their_seed(monkeypatch, scales):
    monkeypatch.setattr(cuda_graphs, "_WARM", 1)
    graphs = PretendedGraphs()
    assert_alike(graphs, *both(scales, graphs, 12, source=LABELLED))


def test_all_graphs_leave_the_gradients_in_one_place(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_WARM", 1)
    models, graphs = stack([SPECS["ao"].build(TEXT, seed) for seed in SEEDS]), PretendedGraphs()
    graphs.models = models
    gradients, places = RecordedGradients(models, TERMS, graphs=graphs), set()
    for step in range(12):
        gradients(stack_batches(batches(step)))
        places.add(tuple(p.grad.data_ptr() for p in gradients.trained if p.grad is not None))
    assert graphs.recorded > 1
    assert len(places) == 1


def test_a_query_that_uniform_attention_does_not_ask_has_no_gradient(scales):
    models = stack([model.build(LABELLED, 0) for model in scales], [0, 0, 0])
    uniform = {"cross": Uniform()}
    gradients = RecordedGradients(models, TERMS[:1], uniform, graphs=PretendedGraphs())
    for step in range(2):
        gradients(stack_batches(batches(step, LABELLED, seeds=[0])))
    assert models.parameters["attention.query.weight"].grad is None
    assert models.parameters["output.weight"].grad is not None


def test_long_texts_have_few_widths_and_sentences_their_own():
    widths = [RecordedGradients.width(widest) for widest in range(1, 1001)]
    assert widths[:32] == list(range(1, 33))
    assert all(0 <= wide - widest < max(16, widest / 8) for widest, wide in enumerate(widths, 1))
    assert widths[255:257] == [256, 288]
    assert len(set(widths[100:])) < cuda_graphs._MOST / 2


def test_recorded_steps_on_widened_texts_are_the_plain_ones(monkeypatch, scales):
    monkeypatch.setattr(cuda_graphs, "_NARROW", 1)
    graphs = PretendedGraphs()
    (losses, parameters), (found, others) = both(scales, graphs, 12, source=LABELLED)
    assert graphs.recorded == 1
    torch.testing.assert_close(found, losses, rtol=0, atol=1e-12)
    for name, parameter in parameters.items():
        torch.testing.assert_close(others[name], parameter, rtol=0, atol=1e-12)


def test_the_widest_batch_is_recorded_first_and_moves_no_number(monkeypatch, scales):
    widths, record = [], PretendedGraphs.record

    def noted(self, work):
        shape = next(s for s in gradients.shapes.values() if s.left == 0 and s.replay is None)
        widths.append(shape.columns["inputs"].shape[-1])
        return record(self, work)

    monkeypatch.setattr(PretendedGraphs, "record", noted)
    models = stack([scales[0].build(LABELLED, seed) for seed in SEEDS])
    graphs = PretendedGraphs()
    graphs.models = models
    gradients = RecordedGradients(models, TERMS, graphs=graphs)
    before = {name: p.clone() for name, p in models.parameters.items()}
    gradients.make_room(lambda: stack_batches(batches(0, LABELLED), lambda _: 31))
    assert widths == [31]
    assert all(before[name].equal(p) for name, p in models.parameters.items())
    for step in range(20):
        gradients(stack_batches(batches(step, LABELLED), gradients.width))
    assert widths[0] == max(widths)
    assert len(widths) > 1


def test_masks_are_sent_as_bytes_and_all_numbers_of_a_batch_in_one_piece(monkeypatch, dropping):
    models, sent = stack([dropping.build(LABELLED, seed) for seed in SEEDS]), []
    graphs, send = PretendedGraphs(), PretendedGraphs.send
    graphs.models = models
    monkeypatch.setattr(
        PretendedGraphs, "send", lambda self, *both: (sent.append(both[0]), send(self, *both))
    )
    given = batches(0, LABELLED)
    columns = stack_batches(given)
    masks = DropoutMasks(models)(given, [generator("x")] * 3, columns)
    RecordedGradients(models, TERMS, graphs=graphs)(columns | masks)
    numbers, kept = (sum(column.numel() for column in part.values()) for part in (columns, masks))
    assert [row.nbytes for row in sent] == [8 * numbers, kept]


def test_no_room_is_kept_for_shapes_that_are_never_recorded(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_MOST", 1)
    models, graphs = stack([SPECS["aed"].build(TEXT, seed) for seed in SEEDS]), PretendedGraphs()
    gradients = RecordedGradients(models, TERMS, graphs=graphs)
    columns = [stack_batches(batches(step)) for step in range(4)]
    for each in columns:
        gradients(each)
    assert len({each["inputs"].shape for each in columns}) > 1
    assert len(gradients.shapes) == 1


def test_shapes_beyond_the_most_are_never_recorded(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_WARM", 0)
    monkeypatch.setattr(cuda_graphs, "_MOST", 0)
    graphs = PretendedGraphs()
    (losses, _), (found, _) = both(SPECS["aed"], graphs, 3)
    assert graphs.recorded == 0
    assert found.equal(losses)


def test_losses_of_a_step_outlive_the_next(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "_WARM", 0)
    models = stack([SPECS["aed"].build(TEXT, seed) for seed in SEEDS])
    graphs = PretendedGraphs()
    graphs.models = models
    gradients = RecordedGradients(models, TERMS, graphs=graphs)
    sentences = [
        collate([Example(0, [word, 1], [1, word], [word, 2])] * 2) for word in (3, 4, 5, 6)
    ]
    first, second = (gradients(stack_batches([one] * 3)) for one in sentences[:2])
    assert graphs.recorded == 1
    assert not first.equal(second)
    assert first.equal(gradients(stack_batches([sentences[0]] * 3)))


@on_a_gpu
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_cuda_graph_makes_the_steps_that_are_made_without_it(spec):
    with repeatable("cuda"):
        (losses, parameters), (found, others) = both(spec, None, 12, "cuda")
    torch.testing.assert_close(found, losses, rtol=0, atol=1e-12)
    for name, parameter in parameters.items():
        torch.testing.assert_close(others[name], parameter, rtol=0, atol=1e-12)


@on_a_gpu
def test_a_cuda_graph_takes_the_masks_of_each_step(dropping):
    have_the_steps_of_the_cpu(dropping)


@on_a_gpu
def test_a_cuda_graph_of_several_lambda_reads_the_batches_of_their_seed(scales):
    have_the_steps_of_the_cpu(scales)


@on_a_gpu
def test_a_cuda_graph_chooses_the_words_to_mask_of_each_step(dropping):
    have_the_steps_of_the_cpu(dropping.model_copy(update={"embedding": 4}), MASKED)


def have_the_steps_of_the_cpu(spec, terms=TERMS):
    with repeatable("cuda"):
        (losses, parameters), (found, others) = both(spec, None, 20, "cuda", LABELLED, terms)
        (expected, _), _ = both(spec, PretendedGraphs(), 20, "cpu", LABELLED, terms)
    torch.testing.assert_close(found, losses, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-9)
    for name, parameter in parameters.items():
        torch.testing.assert_close(others[name], parameter, rtol=0, atol=1e-12)


@on_a_gpu
def test_units_in_a_cuda_graph_have_the_numbers_of_the_cpu(tiny, tmp_path):
    have_the_numbers_of_the_cpu(
        tiny, tmp_path, OneToOne(shortest=2, longest=4), EncoderDecoderSpec(hidden=5)
    )


@on_a_gpu
def test_units_with_dropout_in_a_cuda_graph_have_the_numbers_of_the_cpu(tiny, tmp_path, dropping):
    have_the_numbers_of_the_cpu(tiny, tmp_path, LABELLED, dropping)


@on_a_gpu
@pytest.mark.parametrize(
    "model",
    [
        Seq2SeqSpec(embedding=5, hidden=4, embeddings="separate", layers=2, dropout=0.4),
        Seq2SeqSpec(embedding=5, hidden=4, embeddings="separate", cell="gru", directions=2),
        Seq2SeqSpec(embedding=5, hidden=4, embeddings="separate", heads=3, join="averaged"),
    ],
    ids=["lstm-dropout", "gru", "heads"],
)
def test_encoder_decoders_in_a_cuda_graph_have_the_numbers_of_the_cpu(tiny, tmp_path, model):
    have_the_numbers_of_the_cpu(tiny, tmp_path, TEXT, model)


def have_the_numbers_of_the_cpu(tiny, tmp_path, source, model):
    units = {
        device: [
            tiny(
                source,
                model,
                seed,
                steps=20,
                optimizer=AitkenAdam(clip=0.5),
                dtype="float64",
            ).model_copy(update={"device": device})
            for seed in SEEDS
        ]
        for device in ("cpu", "cuda")
    }
    for group in units.values():
        assert train_group(group, tmp_path) == [None] * 3
    for here, there in zip(*units.values(), strict=True):
        expected, found = (unit.folder(tmp_path).load_weights("last")[1] for unit in (here, there))
        for name, weights in expected.items():
            assert abs(found[name] - weights).max() < 1e-9, name


def test_targets_of_several_widths_share_few_and_those_of_one_keep_theirs(tiny, tmp_path):
    assert [RecordedGradients.target_width(w) for w in (1, 4, 5, 13)] == [4, 4, 8, 16]
    given = batches(0)
    columns = stack_batches(given, target_width=RecordedGradients.target_width)
    plain = stack_batches(given)
    for name in ("decoder_inputs", "targets", "gold"):
        width = plain[name].shape[-1]
        assert columns[name].shape[-1] == -(-width // 4) * 4
        assert columns[name][..., :width].equal(plain[name])
    models = stack([Seq2SeqSpec(hidden=4, embeddings="separate").build(TEXT, 0).double()] * 3)
    found, expected = (Gradients(models, TERMS)(each) for each in (columns, plain))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    texts = tiny(TEXT, Seq2SeqSpec(hidden=4, embeddings="separate"))
    assert groups._has_targets_of_several_widths(texts)
    assert not groups._has_targets_of_several_widths(tiny())
