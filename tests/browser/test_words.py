"""The page's own arithmetic against the library's: merging pieces, reading bytes."""

import base64
from importlib.resources import files

import numpy as np
import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.report.scenes import quantise
from attnscope.scores.score import Score
from attnscope.scores.subwords import merge_words


@pytest.fixture
def module(opened):
    """Call a function of one of the page's modules that need no other."""
    page = opened().page
    page.goto("about:blank")

    def call(name, function, *arguments):
        text = files("attnscope.report").joinpath("static", name).read_text()
        address = f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
        return page.evaluate(
            """async ([address, name, given]) => {
              const revive = (value) => (value === null ? NaN : value);
              const plain = (value) => JSON.parse(JSON.stringify(value, (key, each) =>
                ArrayBuffer.isView(each) ? Array.from(each) : each));
              const found = await import(address);
              const ready = given.map((each) =>
                Array.isArray(each?.values) ? { ...each, values: each.values.map(revive) } : each);
              return plain(found[name](...ready));
            }""",
            [address, function, list(arguments)],
        )

    return call


def matrix_of(values):
    flat = [None if np.isnan(value) else float(value) for value in values.ravel()]
    return {"rows": values.shape[0], "columns": values.shape[1], "values": flat}


@pytest.mark.parametrize("rule", ["sum", "max"])
def test_pieces_are_merged_as_the_library_merges_them(module, rule):
    generator = torch.Generator().manual_seed(3)
    values = torch.rand(1, 4, 6, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False, True, True]])
    inputs, outputs = [-1, 0, 0, 1, 1, 2], [0, 0, 1, -1]
    batch = collate([Example(0, range(6), range(4), range(4))])
    score = Score("x", values.masked_fill(~mask[:, None], 0.0), mask, batch)
    merged = merge_words(score, torch.tensor([inputs]), torch.tensor([outputs]), rule)
    expected = merged.array()[0]
    pieces = np.where(mask.numpy(), values[0].numpy(), np.nan)
    found = module("words.js", "merged", matrix_of(pieces), inputs, outputs, rule)
    assert (found["rows"], found["columns"]) == expected.shape
    np.testing.assert_allclose(np.array(found["values"]).reshape(expected.shape), expected)


def test_bytes_come_back_as_values(module):
    values = np.array([[0.0, -1.5, np.nan], [2.0, 0.25, 0.5]])
    levels, low, high = quantise(values)
    content = [9, *levels.ravel().tolist()]
    found = module("words.js", "matrixOf", content, 1, 2, 3, [low, high])
    back = np.array([np.nan if each is None else each for each in found["values"]])
    np.testing.assert_allclose(back.reshape(2, 3), values, atol=3.5 / 254)


def test_pieces_spell_their_words(module):
    pieces = ["<bos>", "▁the", "▁do", "g", "s", "<eos>"]
    assert module("words.js", "mergedWords", pieces, [-1, 0, 1, 1, 1, -1]) == ["the", "dogs"]
