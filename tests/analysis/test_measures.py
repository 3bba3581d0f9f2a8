"""Measures of a network: numbers of ones that are built to have them, and identities of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.analysis.alignment_terms import MU_MU, TERM_NAMES
from attnscope.analysis.headed_network import HeadedNetwork
from attnscope.analysis.measures import attention, components, pictures, terms
from attnscope.analysis.measures.numbers import number as key
from attnscope.analysis.measures.terms import THREE
from attnscope.analysis.network import Network
from attnscope.data.corpus_writer import write_corpus
from attnscope.data.escan import ExtendedScan
from attnscope.data.parallel_words import open_words
from attnscope.data.source import Source
from attnscope.models.architectures import AED, AO, VED, AOWithRoom, Architecture
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.transformer import TransformerSpec

TASK = ExtendedScan(
    shortest_output=5, longest_output=8, longest_input=12, separator="none", drawing="phrase"
)
ARCHITECTURES: dict[str, tuple[Architecture, int | None]] = {
    "ved": (VED(), None),
    "aed": (AED(), None),
    "ao": (AO(period=100.0), 100),
}


def untrained(model: str, kind: type[Network] = Network, task: Source = TASK) -> Network:
    """Return a network as it is initialised, that reads the right words."""
    architecture, width = ARCHITECTURES[model]
    spec = EncoderDecoderSpec(architecture=architecture, hidden=8, input_dimension=width)
    made = spec.build(task, 0).requires_grad_(False).with_teacher_forcing("on")  # type: ignore[attr-defined]
    return kind(made, task, task.evaluation_batch(40))


@pytest.fixture(params=["aed", "ao"])
def network(request: pytest.FixtureRequest) -> Network:
    return untrained(request.param)


def test_nine_shares_sum_to_one_and_leads_are_taken_of_them(network: Network) -> None:
    shares = terms.shares_of(network)
    found = terms.nine(network, shares)
    three, first = terms.three(network, shares), terms.temporal_lead(network, shares)
    own, most = terms.lead(network, shares, "deltahD.chiE"), terms.largest(network, shares)
    assert len(found) == 18
    for form in ("raw", "centred"):
        nine = {term: found[key("term_share", form=form, term=term)] for term in TERM_NAMES}
        assert sum(nine.values()) == pytest.approx(1)
        together = nine[MU_MU] + nine["muD.chiE"] + nine["muD.deltahE"]
        assert three[key("term_share", form=form, term=THREE)] == pytest.approx(together)
        assert most[key("largest_share", form=form)] == max(nine.values())
        for term, gap in (
            (MU_MU, first[key("largest_gap", form=form)]),
            ("deltahD.chiE", own[key("term_gap", form=form, term="deltahD.chiE")]),
        ):
            others = [value for name, value in nine.items() if name != term]
            assert gap == pytest.approx(nine[term] - max(others))


def test_shares_by_step_sum_to_one_and_are_those_of_early_and_late_steps(network: Network) -> None:
    shares = terms.shares_of(network)
    lines = terms.by_step(shares)
    at = torch.stack([lines[key("term_share_at", term=term)].y for term in TERM_NAMES])
    assert torch.allclose(at.sum(0), torch.ones(at.shape[1]).double())
    found = terms.early_and_late(network, shares, early=2, late=4)
    for step in (1, 2):
        gap = found[key("early_gap", form="raw", step=step)]
        assert gap == pytest.approx(float(at[0, step - 1] - at[1:, step - 1].max()))
    assert key("early_gap", form="raw", step=3) not in found
    expected = float(at[0, 3:].mean() - at[0, :2].mean())
    assert found[key("late_difference", form="raw")] == pytest.approx(expected)


def test_a_network_with_several_heads_has_the_numbers_of_each() -> None:
    spec = TransformerSpec(width=12, heads=3, feed_forward=16)
    one = HeadedNetwork(spec.build(TASK, 1).double(), TASK, TASK.evaluation_batch(30))
    for found in (attention.agreement(one), attention.similarity(one)):
        heads = [dict(name.axes)["head"] for name in found]
        assert sorted(set(heads)) == [1, 2, 3]
        assert all(0 <= value <= 1 for value in found.values())


def test_a_maximum_that_follows_a_line_has_rank_correlation_one_and_no_error() -> None:
    line = torch.tensor([0.0, 0.0, 1.0, 1.0, 2.0, 2.0], dtype=torch.float64)

    class Following(Network):
        def temporal_logits(self, head: int = 0, common: float = 0.0) -> Tensor:
            """A maximum at s + line."""
            places = torch.arange(6) + line.long()
            return 5.0 * torch.nn.functional.one_hot(places, 12).double()

    network = untrained("ao", Following)
    (peaks,) = attention.maxima(network).values()
    assert peaks.y.tolist() == line.tolist()
    assert list(peaks.x) == [1, 2, 3, 4, 5, 6]
    lines = {"made": line.expand(3, -1), "flat": (line * 0).expand(3, -1)}
    numbers = attention.followed(network, lines)
    assert numbers[key("offset_spearman", line="made")] == pytest.approx(1)
    assert numbers[key("offset_error", line="made")] == 0
    assert numbers[key("offset_spearman", line="flat")] == 0
    profile = attention.profile(network, range(-5, 6))
    # Row by row the maximum is 1 and all else 0; offsets outside the sequence are NaN.
    expected = torch.nn.functional.one_hot(line.long() + 5, 11).double()
    expected[torch.arange(6)[:, None] + torch.arange(-5, 6) < 0] = torch.nan
    assert torch.equal(profile.nan_to_num(-1), expected.nan_to_num(-1))


def test_offsets_of_a_known_attention() -> None:
    """Six steps: on the diagonal at first, two behind and spread over three places at last."""
    weights = torch.eye(6, dtype=torch.float64)
    weights[4:] = 0
    weights[4, 1:4] = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    weights[5, 2:5] = weights[4, 1:4]
    # A step past the last input position cannot be on the diagonal.
    beyond = torch.eye(6, dtype=torch.float64)[[0]]

    class Known(Network):
        def temporal_attention(self, head: int = 0) -> Tensor:
            """Return the attention above."""
            return torch.cat([weights, beyond])

    lines = attention.by_step(untrained("aed", Known))
    assert lines[key("peak_offset")].y.tolist() == [0, 0, 0, 0, -2, -2]
    found = attention.changes(lines)
    assert found[key("offset_change", of="maximum")] == -2
    assert found[key("offset_change", of="mean")] == pytest.approx(-2)
    assert found[key("width_change")] == pytest.approx(0.5**0.5)
    assert found[key("diagonal_change")] == pytest.approx(1)


def test_a_network_without_recurrence_has_the_same_state_for_a_word_at_a_step() -> None:
    """Its Δh is the part that word and step do not determine by a sum; shares are in [0, 1]."""
    shares = components.of_states(untrained("ao"), "delta_share")
    assert set(shares) == {key("delta_share", side=side) for side in ("encoder", "decoder")}
    assert all(0 <= share <= 1 for share in shares.values())


def test_the_whole_path_of_a_network_without_attention_is_the_encoders_then_the_decoders() -> None:
    network = untrained("ved")
    encoder, decoder = (path.numpy() for path in network.paths.values())
    path = [*encoder, *decoder]
    adjacent = 0
    for here, point in enumerate(path):
        others = [there for there in range(len(path)) if there != here]
        nearest = min(others, key=lambda there: float(((path[there] - point) ** 2).sum()))
        adjacent += abs(nearest - here) == 1
    found = components.whole_path(network)
    assert found[key("adjacent_steps")] == pytest.approx(adjacent / len(path))
    to_first = [float(((point - decoder[0]) ** 2).sum()) for point in encoder]
    assert found[key("steps_from_last")] == len(encoder) - 1 - to_first.index(min(to_first))


def test_a_word_that_always_stands_in_one_place_has_no_say_in_the_variance(tmp_path: Path) -> None:
    rows = [
        (f"first {'pad ' * (n % 3)}walk {'pad ' * (n % 4)}n{n}", f"one {'x ' * (n % 3)}two")
        for n in range(240)
    ]
    folder = write_corpus(tmp_path / "mine", rows, languages=("a", "b"), validation=0.5)
    source = open_words(folder, types=4)
    words = max(len(source.input_words), len(source.output_words))
    spec = EncoderDecoderSpec(
        architecture=AOWithRoom(period=100.0, room=6),
        hidden=24,
        input_dimension=words + 6,
        words="rows",
    )
    model = spec.build(source, 0).eval().requires_grad_(False)
    still = Network(model, source, source.evaluation_batch(120), trimmed=True)
    found = components.variance_drop(still) | components.variance_words(still)
    # "pad" and "walk"; "first" does not move, and the rest is rare.
    assert found[key("variance_words")] == 2
    # Without recurrence a word's state is a function of its place: only μ varies within a place.
    assert 0 < found[key("variance_drop")] <= 1


def test_the_longest_readout_is_as_long_as_the_longest_input_component(network: Network) -> None:
    """In all dimensions: the plane is the whole space of two words' components and their mean."""
    words = torch.arange(2)
    outputs = TASK.output_words.words[:2]
    plane = pictures.input_plane(network, {}, words, outputs, [], from_mean=True)
    kinds = ("component", "readout")
    places = {kind: [(p.x, p.y) for p in plane.points if p.group == kind] for kind in kinds}
    longest = {kind: max(np.hypot(*place) for place in places[kind]) for kind in kinds}
    assert longest["readout"] == pytest.approx(longest["component"], abs=1e-3)
    # Readouts are without their mean: those of two words point in opposite directions.
    assert np.allclose(np.sum(places["readout"], 0), 0, atol=1e-3)


def test_a_picture_says_which_network_it_is_of(network: Network) -> None:
    path = pictures.path(network, {"model": "mine"}, network.paths)
    weights = pictures.matrix("weights", network, {}, network.temporal_attention())
    assert (path.dataset, path.seeds, path.n) == (TASK.dataset, (0,), 40)
    assert path.axes == {"model": "mine"}
    assert weights.rows[0] == weights.columns[0] == 1
    steps = [point for point in path.points if point.group == "encoder"]
    assert [point.label for point in steps] == [str(place + 1) for place in range(len(steps))]
