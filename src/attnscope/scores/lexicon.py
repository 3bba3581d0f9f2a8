"""A lexicon: a number for each pair of input and output type, looked up as a score.

Count tables, IBM Model 1, the proxy's θ (snell Eq. 13) are lexicons: they do not
depend on positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.models.proxy import Proxy
from attnscope.scores.score import Score


@dataclass(frozen=True)
class Lexicon:
    """A table over word types with the name its scores carry."""

    name: str
    table: Float[Tensor, "input_type output_type"]

    def score(self, batch: Batch) -> Score:
        """Return table[x_l, y_t] for every output and input position."""
        values = self.table[batch.inputs[:, None], batch.targets[:, :, None]]
        mask = batch.target_mask[:, :, None] & batch.input_mask[:, None]
        return Score(self.name, values.masked_fill(~mask, 0.0), batch.input_mask, batch)


def proxy_lexicon(model: Proxy) -> Lexicon:
    """Return β^px as a lexicon: θ_{i,o} = softmax(W e_i)_o (snell Eq. 6, 13)."""
    return Lexicon("proxy", model.lexicon())


def proxy_odds(model: Proxy) -> Lexicon:
    """Return β^px as log-odds: the same order, without ties among words the proxy is sure of."""
    return Lexicon("proxy", model.log_odds())
