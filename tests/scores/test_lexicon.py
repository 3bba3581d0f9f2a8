"""Lexicons are looked up type by type."""

from __future__ import annotations

import torch
from hypothesis import given, strategies as st

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import SampledCopy
from attnscope.models.proxy import ProxySpec
from attnscope.scores.lexicon import Lexicon, proxy_lexicon

TABLE = torch.arange(12.0).reshape(4, 3) + 1  # 4 input types, 3 output types, no 0
sentences = st.tuples(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
)


@given(st.lists(sentences, min_size=1, max_size=4))
def test_a_score_is_the_entry_of_the_input_and_the_output_word(pairs):
    batch = collate([Example(n, inp, [0] * len(out), out) for n, (inp, out) in enumerate(pairs)])
    score = Lexicon("counts", TABLE).score(batch)
    assert score.name == "counts"
    assert score.values.shape == (*batch.targets.shape, batch.inputs.shape[1])
    for row, (inputs, targets) in enumerate(pairs):
        for t, word in enumerate(targets):
            looked_up = [TABLE[i, word].item() for i in inputs]
            assert score.values[row, t, : len(inputs)].tolist() == looked_up
        assert score.mask[row].sum() == len(inputs) * len(targets)
    assert not score.values[~score.mask].any()


def test_a_proxys_lexicon_is_a_table_apart_from_its_graph():
    lexicon = proxy_lexicon(ProxySpec(embedding=5).build(SampledCopy(length=2, vocabulary=3), 0))
    assert lexicon.name == "proxy"
    assert lexicon.table.shape == (5, 5)
    assert not lexicon.table.requires_grad
