"""How a table of word embeddings starts: at random, or from word vectors in a file (snell A.8).

Snell's paper speaks of GloVe; the released code builds such a table and then overwrites it with a
random one. Both are choices here, and random is the default. Whether the table is trained is the
training's business (``Training.frozen``).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from attnscope.data.randomness import generator
from attnscope.data.vectors import digest_of_vectors, read_vectors
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError
from attnscope.runs.spec import Spec


class Embeddings(Spec):
    """Root of the ways in which an embedding table starts."""

    @abstractmethod
    def table(self, words: Vocabulary, width: int) -> nn.Embedding:
        """Return a table with a row for each word, drawn from the current stream."""


class RandomEmbeddings(Embeddings):
    """PyTorch's N(0, 1), as in the authors' released code."""

    kind: Literal["random"] = "random"

    def table(self, words: Vocabulary, width: int) -> nn.Embedding:
        """Return a random table."""
        return nn.Embedding(len(words), width)


class UniformEmbeddings(Embeddings):
    """Uniform within ± the spread, as in sunlu."""

    kind: Literal["uniform"] = "uniform"
    spread: float = Field(0.1, gt=0)

    def table(self, words: Vocabulary, width: int) -> nn.Embedding:
        """Return a random table."""
        embedding = nn.Embedding(len(words), width)
        nn.init.uniform_(embedding.weight, -self.spread, self.spread)
        return embedding


class VectorEmbeddings(Embeddings):
    """Word vectors from a file; words that it lacks are drawn with the spread of those it has.

    ``path`` is a file, a folder or the name of a folder in ``ATTNSCOPE_DATA``
    (`attnscope.data.vectors`). ``digest`` pins its content, so that a unit's hash follows it:
    `VectorEmbeddings.pinned` fills it in. Vectors narrower than the model pass one fixed random
    orthonormal map, which keeps their lengths and angles.
    """

    kind: Literal["vectors"] = "vectors"
    path: str = "glove_100d"
    digest: str = ""

    @classmethod
    def pinned(cls, path: str = "glove_100d") -> VectorEmbeddings:
        """Return the vectors at a path as they are now."""
        return cls(path=path, digest=digest_of_vectors(path))

    def table(self, words: Vocabulary, width: int) -> nn.Embedding:
        """Return the vectors of the words, found as they are written or in lower case."""
        if self.digest and self.digest != digest_of_vectors(self.path):
            raise UsageError(
                f"The word vectors {self.path} are not those that the digest {self.digest[:12]}… "
                "pins: bring the old file back, or pin the new one with VectorEmbeddings.pinned."
            )
        vectors = read_vectors(self.path)
        if vectors.dimension > width:
            raise UsageError(
                f"The word vectors {self.path} have {vectors.dimension} numbers: set embedding to "
                f"at least as many (it is {width})."
            )
        found = {index: vectors.row(word) for index, word in enumerate(words.words)}
        known = {index: row for index, row in found.items() if row is not None}
        if not known:
            raise UsageError(
                f"The word vectors {self.path} have none of the vocabulary's {len(words)} words."
            )
        copied = torch.from_numpy(vectors.array[list(known.values())])
        if vectors.dimension < width:
            copied = copied @ orthonormal_map(vectors.dimension, width)
        # Drawn whole, so that every other parameter is what it is with random embeddings.
        embedding = nn.Embedding(len(words), width)
        with torch.no_grad():
            embedding.weight.mul_(copied.std(correction=0))
            embedding.weight[list(known)] = copied.to(embedding.weight.dtype)
        return embedding


class Rescaled(Embeddings):
    """Another table, brought to a mean length of its rows: frozen long vectors saturate an LSTM."""

    kind: Literal["rescaled"] = "rescaled"
    of: SerializeAsAny[Embeddings]
    length: float = Field(gt=0)

    def table(self, words: Vocabulary, width: int) -> nn.Embedding:
        """Return the other table, its rows longer or shorter by one factor."""
        embedding = self.of.table(words, width)
        with torch.no_grad():
            embedding.weight.mul_(self.length / embedding.weight.norm(dim=1).mean())
        return embedding


def embeddings_of(path: str, length: float | None = None) -> Embeddings:
    """Return the vectors at a path as they are now, random ones where it is empty.

    Parameters
    ----------
    path
        As in `VectorEmbeddings`.
    length
        The mean length that they are brought to; None leaves them as they are.
    """
    if not path:
        return RandomEmbeddings()
    vectors = VectorEmbeddings.pinned(path)
    return vectors if length is None else Rescaled(of=vectors, length=length)


def orthonormal_map(narrow: int, wide: int) -> Float[Tensor, "narrow wide"]:
    """Return a fixed random map with orthonormal rows, the same for every unit."""
    stream = generator("word vectors", narrow, wide)
    drawn = torch.randn(wide, narrow, dtype=torch.float64, generator=stream)
    q, r = torch.linalg.qr(drawn)
    # Signs are a matter of the library unless they are fixed.
    return (q * r.diagonal().sign()).T.float()
