"""Encoders of a classifier: from the words of a text to the states that are attended to.

sunlu's models have the words themselves, an affine map of them or an LSTM (§3, §5);
snell's and tutek's have LSTMs, and tutek's concat and residual models give the words back to the
states (tutek Eq. 2, 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, SerializeAsAny, model_validator
from torch import Tensor, nn

from attnscope.errors import UsageError
from attnscope.models.dropout import Randomness
from attnscope.models.recurrence import Cell, Recurrence
from attnscope.runs.spec import Spec

Words = Float[Tensor, "batch inp embedding"]
States = Float[Tensor, "batch inp state"]
Lengths = Int[Tensor, " batch"]
Choice = Literal["on", "off"]


class EncoderSpec(Spec):
    """Root of the encoders that a classifier can have."""

    @abstractmethod
    def build(self, width: int) -> Encoder:
        """Return the encoder of embeddings of a width."""

    @property
    def vectorised(self) -> bool:
        """Whether models with it may run under vmap; see `ModelSpec`."""
        return False

    @property
    def recurrent(self) -> bool:
        """Whether it has a `Recurrence`."""
        return False


class Encoder(nn.Module, ABC):
    """An encoder of a text's words; ``width`` is that of a state."""

    width: int

    @abstractmethod
    def read(self, words: Words, lengths: Lengths, generator: Randomness | None = None) -> States:
        """Return a state for each word; what stands at padding means nothing."""

    def pulled_back(
        self, directions: Float[Tensor, "*any state"]
    ) -> Float[Tensor, "*any direction"]:
        """Return directions of the states as directions of what they are a linear map of.

        v·h = (Mᵀv)·e where h = M e. An encoder that is not linear leaves directions as they are.
        """
        return directions


class WordStates(EncoderSpec):
    """h = e: the states are the embeddings (sunlu's DP and AD)."""

    vectorised: ClassVar[bool] = True
    kind: Literal["words"] = "words"

    def build(self, width: int) -> Encoder:
        """Return the encoder, which has no parameters."""
        return WordsEncoder(width)


class WordsEncoder(Encoder):
    """h = e."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def read(self, words: Words, lengths: Lengths, generator: Randomness | None = None) -> States:
        """Return the words."""
        return words


class Affine(EncoderSpec):
    """h = M e + b (sunlu's DP-A); the code has the bias, the analysis has none."""

    vectorised: ClassVar[bool] = True
    kind: Literal["affine"] = "affine"
    hidden: int = Field(100, ge=1)
    bias: Choice = "on"

    def build(self, width: int) -> Encoder:
        """Return the map, as PyTorch initialises it."""
        return AffineEncoder(width, self.hidden, self.bias == "on")


class AffineEncoder(Encoder):
    """h = M e + b, ``map`` being M and b."""

    def __init__(self, inputs: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.width = hidden
        self.map = nn.Linear(inputs, hidden, bias)

    def read(self, words: Words, lengths: Lengths, generator: Randomness | None = None) -> States:
        """Return M e + b."""
        return self.map(words)

    def pulled_back(
        self, directions: Float[Tensor, "*any state"]
    ) -> Float[Tensor, "*any direction"]:
        """Return Mᵀv."""
        return directions @ self.map.weight


class Recurrent(EncoderSpec):
    """Layers of LSTM or GRU; by default snell's (§2.4), whose 256 units are per direction.

    ``dropout`` acts between layers, in training. tutek has 150 units a direction and one to three
    layers; sunlu's DP-L starts from orthogonal matrices.
    """

    vectorised: ClassVar[bool] = True
    recurrent: ClassVar[bool] = True
    kind: Literal["recurrent"] = "recurrent"
    hidden: int = Field(256, ge=1)
    cell: Cell = "lstm"
    directions: Literal[1, 2] = 2
    layers: int = Field(1, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1, description="between layers, in training")
    initial: Literal["default", "orthogonal"] = "default"

    @model_validator(mode="after")
    def _dropout_has_a_place(self) -> Recurrent:
        if self.dropout and self.layers == 1:
            raise ValueError("dropout acts between layers and there is one; set layers=2 or more")
        return self

    def build(self, width: int) -> Encoder:
        """Return the layers."""
        layers = _Layers(self.cell, width, self.hidden, self.directions, self.layers, self.dropout)
        if self.initial == "orthogonal":
            for parameter in layers.parameters():
                if parameter.ndim == 2:
                    nn.init.orthogonal_(parameter)
        return layers


class _Layers(Recurrence, Encoder):
    def read(self, words: Words, lengths: Lengths, generator: Randomness | None = None) -> States:
        """Return the top layer's states, 0 at padding."""
        return self(words, lengths, None, generator)[0]


class Concat(EncoderSpec):
    """h = [encoder(e); e] (tutek Eq. 2)."""

    kind: Literal["concat"] = "concat"
    encoder: SerializeAsAny[EncoderSpec] = Recurrent(hidden=150)

    def build(self, width: int) -> Encoder:
        """Return the encoder with the words appended to its states."""
        return _Concat(self.encoder.build(width), width)

    @property
    def vectorised(self) -> bool:
        """Whether the encoder inside may run under vmap."""
        return self.encoder.vectorised

    @property
    def recurrent(self) -> bool:
        """Whether the encoder inside has a `Recurrence`."""
        return self.encoder.recurrent


class _Concat(Encoder):
    def __init__(self, encoder: Encoder, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.width = encoder.width + width

    def read(self, words: Words, lengths: Lengths, generator: Randomness | None = None) -> States:
        """Return states and words side by side."""
        return torch.cat([self.encoder.read(words, lengths, generator), words], -1)


class Residual(EncoderSpec):
    """h = e + encoder(e) (tutek Eq. 3)."""

    kind: Literal["residual"] = "residual"
    encoder: SerializeAsAny[EncoderSpec] = Recurrent(hidden=150)

    def build(self, width: int) -> Encoder:
        """Return the encoder with the words added to its states, which must be as wide."""
        encoder = self.encoder.build(width)
        if encoder.width != width:
            raise UsageError(
                f"A residual encoder adds words of width {width} to states of width "
                f"{encoder.width}: make embedding and the encoder's states equally wide."
            )
        return _Residual(encoder)

    @property
    def vectorised(self) -> bool:
        """Whether the encoder inside may run under vmap."""
        return self.encoder.vectorised

    @property
    def recurrent(self) -> bool:
        """Whether the encoder inside has a `Recurrence`."""
        return self.encoder.recurrent


class _Residual(Encoder):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.width = encoder.width

    def read(self, words: Words, lengths: Lengths, generator: Randomness | None = None) -> States:
        """Return the sum."""
        return words + self.encoder.read(words, lengths, generator)
