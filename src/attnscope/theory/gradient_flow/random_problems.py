"""Random problems for sunlu's gradient-flow terms: exact rates by autograd, and the misprints.

A problem is a classifier without context with random parameters and a few random texts, in which
words repeat and lengths differ. The exact rate of a score is its directional derivative along the
loss's negative gradient; nothing here uses the closed forms that it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.randomness import generator
from attnscope.theory.gradient_flow.parts import AdditiveFlow, AffineFlow, DotFlow, WordFlow
from attnscope.theory.gradient_flow.pulls import corpus_pulls
from attnscope.theory.gradient_flow.terms import Parameters, embedding_rate, flow_terms

TYPES, WIDTH, STATE, HIDDEN, TEXTS, LONGEST = 9, 5, 4, 6, 12, 7
Tensors = Mapping[str, Tensor]


class Form(NamedTuple):
    """A form of the classifier: which encoder and attention, and how many classes."""

    encoder: str
    attention: str
    classes: int

    @property
    def name(self) -> str:
        """The form in words, an axis of its measurements."""
        return f"{self.encoder}, {self.attention}, {self.classes} classes"


FORMS = (
    Form("words", "dot", 2),
    Form("affine", "dot", 2),
    Form("words", "additive", 2),
    Form("affine", "additive", 2),
    Form("words", "dot", 3),
    Form("affine", "dot", 3),
    Form("words", "additive", 3),
    Form("affine", "additive", 3),
)


@dataclass(frozen=True)
class Problem:
    """A classifier's tensors, λ, and the texts."""

    form: Form
    tensors: Tensors
    scale: float
    batch: Batch

    def parameters(self, tensors: Tensors | None = None) -> Parameters:
        """Return the classifier, of other tensors if given."""
        p = tensors or self.tensors
        encoder = AffineFlow(p["M"]) if self.form.encoder == "affine" else WordFlow()
        attention = (
            DotFlow(p["V"], self.scale)
            if self.form.attention == "dot"
            else AdditiveFlow(p["M_a"], p["V"], None, self.scale)
        )
        return Parameters(p["E"], p["W"], attention, encoder)


def draw_problem(form: Form, seed: int) -> Problem:
    """Draw a problem; λ is log-uniform between .1 and 100."""
    stream = generator("gradient flow", form.name, seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=stream)

    width = STATE if form.encoder == "affine" else WIDTH
    rows = 1 if form.classes == 2 else form.classes
    tensors = {"E": normal(TYPES, WIDTH), "W": normal(rows, width)}
    tensors["V"] = normal(HIDDEN if form.attention == "additive" else width)
    if form.encoder == "affine":
        tensors["M"] = normal(STATE, WIDTH)
    if form.attention == "additive":
        tensors["M_a"] = normal(HIDDEN, width)
    scale = float(10 ** (3 * torch.rand((), dtype=torch.float64, generator=stream) - 1))
    examples = []
    for number in range(TEXTS):
        length = int(torch.randint(2, LONGEST + 1, (), generator=stream))
        # Few types and many places, so that words repeat inside a text.
        words = torch.randint(TYPES, (length,), generator=stream).tolist()
        label = int(torch.randint(form.classes, (), generator=stream))
        examples.append(Example(number, [*words, words[0]], [0], [label]))
    return Problem(form, tensors, scale, collate(examples))


def loss(problem: Problem, tensors: Tensors) -> Float[Tensor, ""]:
    """Return the mean negative log-likelihood, computed text by word as the model does."""
    parameters, batch = problem.parameters(tensors), problem.batch
    logits = parameters.attention_scores[batch.inputs].masked_fill(~batch.input_mask, -torch.inf)
    output = (logits.softmax(-1)[..., None] * parameters.polarity[batch.inputs]).sum(1)
    if output.shape[1] == 1:
        output = torch.cat([torch.zeros_like(output), output], 1)
    return torch.nn.functional.cross_entropy(output, batch.targets[:, 0])


class Rates(NamedTuple):
    """How s, a and all products eᵀe' change under gradient flow."""

    polarity: Float[Tensor, "type logit"]
    attention: Float[Tensor, " type"]
    products: Float[Tensor, "type type2"]


def exact(problem: Problem) -> Rates:
    """Return the rates by automatic differentiation, forward along the negative gradient."""
    tensors = dict(problem.tensors)
    gradient = torch.func.grad(lambda p: loss(problem, p))(tensors)
    along = {name: -part for name, part in gradient.items()}

    def scores(p: Tensors) -> tuple[Tensor, ...]:
        parameters = problem.parameters(p)
        products = p["E"] @ p["E"].T
        return parameters.polarity, parameters.attention_scores, products

    return Rates(*torch.func.jvp(scores, (tensors,), (along,))[1])


def predicted(problem: Problem) -> Rates:
    """Return the rates as the sum of the terms (sunlu Eq. 19, 27, 44)."""
    parameters = problem.parameters()
    pulls = corpus_pulls(parameters.polarity, parameters.attention_scores, [problem.batch])
    terms = flow_terms(parameters, pulls)
    moved = embedding_rate(parameters, pulls) @ parameters.embeddings.T
    return Rates(terms.polarity_rate, terms.attention_rate, moved + moved.T)


def relative_error(found: Tensor, right: Tensor) -> float:
    """Return the largest difference over the largest right value."""
    size = float(right.abs().max())
    return float((found - right).abs().max()) / size if size else math.nan


def _occurring(problem: Problem, parameters: Parameters) -> tuple[Tensor, Tensor, Tensor]:
    """Return α, p̂ = p − onehot and the output of every text, for K classes."""
    batch = problem.batch
    logits = parameters.attention_scores[batch.inputs].masked_fill(~batch.input_mask, -torch.inf)
    weights = logits.softmax(-1)
    output = (weights[..., None] * parameters.polarity[batch.inputs]).sum(1)
    wrong = output.softmax(-1)
    wrong[torch.arange(len(batch)), batch.targets[:, 0]] -= 1
    return weights, wrong, output


def multiclass_polarity(problem: Problem, *, printed: bool) -> Float[Tensor, "type logit"]:
    """Return ds/dτ for K classes by sunlu's Eq. 82; as printed it lacks α_j."""
    parameters, batch = problem.parameters(), problem.batch
    weights, wrong, output = _occurring(problem, parameters)
    share = batch.input_mask.to(weights) if printed else weights
    V, W, E = problem.tensors["V"], problem.tensors["W"], problem.tensors["E"]
    s = parameters.polarity[batch.inputs]
    through_attention = ((s - output[:, None]) * wrong[:, None]).sum(-1) * share
    through_output = share[..., None] * wrong[:, None]
    context = (weights[..., None] * E[batch.inputs]).sum(1)
    # The contribution of every occurrence is added to its type.
    at = torch.nn.functional.one_hot(batch.inputs, TYPES).to(weights)
    first = torch.einsum("bl,ble->e", through_attention, at)[:, None] * (W @ V) / problem.scale
    second = torch.einsum("blk,ble->ek", through_output, at) @ (W @ W.T)
    third = E @ torch.einsum("bk,bd->dk", wrong, context)
    return -(first + second + third) / len(batch)


def multiclass_attention(problem: Problem, *, printed: bool) -> Float[Tensor, " type"]:
    """Return da/dτ for K classes by sunlu's Eq. 83; printed with 1/λ in its first term."""
    parameters, batch = problem.parameters(), problem.batch
    weights, wrong, output = _occurring(problem, parameters)
    V, W, E = problem.tensors["V"], problem.tensors["W"], problem.tensors["E"]
    s = parameters.polarity[batch.inputs]
    pull = weights * ((s - output[:, None]) * wrong[:, None]).sum(-1)
    at = torch.nn.functional.one_hot(batch.inputs, TYPES).to(weights)
    first = E @ torch.einsum("bl,bld->d", pull, E[batch.inputs])
    second = torch.einsum("bl,ble->e", pull, at) * V.square().sum()
    third = torch.einsum("bl,bk,ble->ek", weights, wrong, at) @ (W @ V)
    scale = problem.scale
    return -(first / (scale if printed else scale**2) + second / scale**2 + third / scale) / len(
        batch
    )


def products(problem: Problem, *, printed: bool) -> Float[Tensor, "type type2"]:
    """Return d(e_iᵀe_k)/dτ for two classes by sunlu's Eq. 44; printed with 1/λ twice."""
    parameters = problem.parameters()
    pulls = corpus_pulls(parameters.polarity, parameters.attention_scores, [problem.batch])
    pull = pulls.mean(torch.float64)
    # a_k = e_kᵀV/λ carries a 1/λ already.
    a = parameters.attention_scores / (problem.scale if printed else 1.0)
    moved = pull.attention[:, None] * a + pull.polarity @ parameters.polarity.T
    return moved + moved.T


ADDITIVE = Form("words", "additive", 2)


def with_small_weights(problem: Problem, size: float) -> Problem:
    """Return a problem of additive attention whose M_a e has so large a root mean square."""
    tensors = dict(problem.tensors)
    inner = tensors["E"] @ tensors["M_a"].T
    tensors["M_a"] = tensors["M_a"] * (size / inner.square().mean().sqrt())
    return replace(problem, tensors=tensors)


def first_order_attention(problem: Problem) -> Float[Tensor, " type"]:
    """Return da/dτ of additive attention to first order in its weights (sunlu, supplement Eq. 71).

    Where M_a e is small, tanh is its own argument, and V, M_a and e move as in
    a = (M_a e)ᵀV/λ: the error of what follows falls with the square of M_a e.
    """
    parameters, p, scale = problem.parameters(), problem.tensors, problem.scale
    pulls = corpus_pulls(parameters.polarity, parameters.attention_scores, [problem.batch])
    pull = pulls.mean(torch.float64)
    E, V, W, M = p["E"], p["V"], p["W"][0], p["M_a"]
    direction = M.T @ V
    moved = E.T @ pull.attention  # Σ_j ρ_j e_j, which moves V and M_a
    of_query = E @ (M.T @ (M @ moved)) + V.square().sum() * (E @ moved)
    of_words = direction.square().sum() * pull.attention
    return (of_query + of_words) / scale**2 + (direction @ W) * pull.polarity[:, 0] / scale


class Misprint(NamedTuple):
    """An equation with a misprint: as printed and corrected, and the exact rate it is to have."""

    equation: str
    form: Form
    rate: Callable[..., Tensor]
    of: str


MISPRINTS = (
    Misprint("supplement, Eq. 44", Form("words", "dot", 2), products, "products"),
    Misprint("supplement, Eq. 82", Form("words", "dot", 3), multiclass_polarity, "polarity"),
    Misprint("supplement, Eq. 83", Form("words", "dot", 3), multiclass_attention, "attention"),
)
