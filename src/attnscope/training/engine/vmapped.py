"""Several models of one shape trained as one: `torch.func.vmap` over stacked parameters.

Each model has its own gradient and its own clipping, and its own batch or one that it shares with
others. Models do not affect each other, so the numbers are those of training them one after the
other, up to the rounding of matrix products. A model must be plain tensor operations, with no
randomness but the masks of `dropped`, which come with the batches
(`attnscope.training.engine.dropout_masks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import pad

from attnscope.data.batch import Batch
from attnscope.errors import UsageError
from attnscope.models.base import AttentionModule
from attnscope.models.dropout import masks_given, no_masks
from attnscope.models.intervention import AttentionRule
from attnscope.training.engine.recurrent_cells import ELEMENTWISE, RecurrentCells
from attnscope.training.engine.vmappable import vmappable
from attnscope.training.objective import Term, total

Stack = dict[str, Tensor]

_BATCH = [field.name for field in fields(Batch)]
MASKS = "masks"  # the column of dropout masks, where there are any
# Padding of a shorter batch; targets there are not counted.
_FILL = {"gold": -1}
_TARGETS = ("decoder_inputs", "targets", "gold")


@dataclass(frozen=True)
class StackedModels:
    """The parameters and buffers of several models, with a leading axis over models.

    ``model`` is the code that is run; its own numbers are not used. ``reads`` is the index of the
    batch, and of the masks, that each model reads.
    """

    model: AttentionModule
    parameters: Stack
    buffers: Stack
    reads: Int[Tensor, " model"]

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def write_back(self, models: Sequence[nn.Module]) -> None:
        """Copy the parameters into modules of one model each, in the order of the stack."""
        with torch.no_grad():
            for number, model in enumerate(models):
                for name, parameter in model.named_parameters():
                    parameter.copy_(self.parameters[name][number])


def stack(
    models: Sequence[AttentionModule],
    reads: Sequence[int] | None = None,
    cells: RecurrentCells = ELEMENTWISE,
) -> StackedModels:
    """Stack copies of the parameters and buffers of models of one shape.

    Give ``parameters.values()`` to an optimiser: one that treats every number by itself, such as
    Adam, then treats every model by itself.

    Parameters
    ----------
    reads
        The index of each model's batch among those given at a step; by default each has its own.
    cells
        How the cells of recurrences are computed.
    """
    shapes = [{name: p.shape for name, p in model.named_parameters()} for model in models]
    if not shapes or any(shape != shapes[0] for shape in shapes):
        raise UsageError("Only models of one shape can be stacked: give at least one, all alike.")
    parameters, buffers = stack_module_state(list(models))
    device = next(iter(parameters.values())).device
    numbers = torch.tensor(range(len(models)) if reads is None else reads, device=device)
    return StackedModels(vmappable(models[0], cells), parameters, buffers, numbers)


def as_wide(widest: int) -> int:
    """Return the width of the widest batch, as the one to pad to."""
    return widest


def stack_batches(
    batches: Sequence[Batch],
    width: Callable[[int], int] = as_wide,
    target_width: Callable[[int], int] = as_wide,
) -> Stack:
    """Return batches of equal size as columns with a leading axis, padded to the widest.

    ``width`` and ``target_width`` may pad inputs and targets further; they never cut them.
    """
    if len({len(batch) for batch in batches}) != 1:
        raise UsageError("Only batches of one size can be stacked: give at least one, all alike.")
    columns = {name: [getattr(batch, name) for batch in batches] for name in _BATCH}
    widths = {name: max(part.shape[-1] for part in parts) for name, parts in columns.items()}
    widths["inputs"] = max(widths["inputs"], width(widths["inputs"]))
    for name in _TARGETS:
        widths[name] = max(widths[name], target_width(widths[name]))
    device = batches[0].inputs.device
    # Lengths too: nothing waits for the CPU under vmap.
    return {
        name: torch.stack(_alike(parts, widths[name], _FILL.get(name, 0))).to(device)
        for name, parts in columns.items()
    }


def _alike(parts: Sequence[Tensor], width: int, fill: int) -> list[Tensor]:
    return [pad(part, (0, width - part.shape[-1]), value=fill) for part in parts]


def first_batch(columns: Stack) -> Batch:
    """Return the first of stacked batches, with the padding that they share."""
    return Batch(**{name: columns[name][0] for name in _BATCH})


class _Loss(nn.Module):
    """A model's objective as a module, as `functional_call` needs it."""

    def __init__(
        self, model: AttentionModule, terms: Sequence[Term], attention: Mapping[str, AttentionRule]
    ) -> None:
        super().__init__()
        self.model, self.terms, self.attention = model, terms, attention

    def forward(self, columns: Stack, numbers: Float[Tensor, " number"]) -> Float[Tensor, ""]:
        batch = Batch(**{name: columns[name] for name in _BATCH})
        masks = masks_given(columns[MASKS]) if MASKS in columns else None
        trace = self.model.trace(batch, self.attention, masks)
        left = iter(numbers.unbind())
        terms = [
            term.model_copy(update={name: next(left) for name in term.varying})
            for term in self.terms
        ]
        return total(terms, self.model, trace, masks or no_masks)


def stacked_losses(
    models: StackedModels,
    columns: Stack,
    terms: Sequence[Term],
    attention: Mapping[str, AttentionRule] | None = None,
    numbers: Float[Tensor, "model number"] | None = None,
) -> Float[Tensor, " model"]:
    """Return every model's objective on the batch that it reads (`stack_batches`).

    Dropout masks are a further column; without it nothing is dropped. ``numbers`` are the varying
    numbers of each model's terms (`term_numbers`).
    """
    loss = _Loss(models.model, terms, attention or {})

    def one(parameters: Stack, buffers: Stack, batch: Stack, own: Tensor) -> Tensor:
        state = {f"model.{name}": value for name, value in (parameters | buffers).items()}
        return functional_call(loss, state, (batch, own))

    read = {name: column.index_select(0, models.reads) for name, column in columns.items()}
    numbers = term_numbers(models, [terms] * len(models)) if numbers is None else numbers
    return vmap(one)(models.parameters, models.buffers, read, numbers)


def term_numbers(
    models: StackedModels, objectives: Sequence[Sequence[Term]]
) -> Float[Tensor, "model number"]:
    """Return the varying numbers of each model's terms, term by term, on the models' device."""
    like = next(iter(models.parameters.values()))
    rows = [_varying_numbers(terms) for terms in objectives]
    return torch.tensor(rows, dtype=like.dtype, device=like.device)


def _varying_numbers(terms: Sequence[Term]) -> list[float]:
    return [getattr(term, name) for term in terms for name in term.varying]


class Gradients:
    """Every model's gradient on the batch that it reads, step after step.

    Parameters
    ----------
    models, terms, attention, numbers
        As in `stacked_losses`.
    """

    def __init__(
        self,
        models: StackedModels,
        terms: Sequence[Term],
        attention: Mapping[str, AttentionRule] | None = None,
        numbers: Float[Tensor, "model number"] | None = None,
    ) -> None:
        self.models, self.terms, self.attention = models, terms, attention
        # Made once: a CUDA graph cannot copy numbers from the CPU.
        alike = [terms] * len(models)
        self.numbers = term_numbers(models, alike) if numbers is None else numbers
        self.trained = [p for p in models.parameters.values() if p.requires_grad]
        self.device = next(iter(models.parameters.values())).device

    # To pad inputs, and targets of several widths, to: no further than the widest.
    width: Callable[[int], int] = staticmethod(as_wide)
    target_width: Callable[[int], int] = staticmethod(as_wide)

    def make_room(self, widest: Callable[[], Stack]) -> None:
        """Allocate memory for batches of any width, given how to make the widest."""

    def __call__(self, columns: Stack) -> Float[Tensor, " model"]:
        """Store the gradients in the stacked parameters, and return the losses."""
        return self.compute({name: column.to(self.device) for name, column in columns.items()})

    @torch.no_grad()
    def losses(self, columns: Stack) -> Float[Tensor, " model"]:
        """Return the losses alone."""
        placed = {name: column.to(self.device) for name, column in columns.items()}
        return stacked_losses(self.models, placed, self.terms, self.attention, self.numbers)

    def compute(self, columns: Stack) -> Float[Tensor, " model"]:
        """Do the same for columns that are on the models' device."""
        losses = stacked_losses(self.models, columns, self.terms, self.attention, self.numbers)
        # Models do not affect each other: the gradient of their sum is that of each.
        found = torch.autograd.grad(losses.sum(), self.trained, allow_unused=True)
        self.store(_unshared(found))
        return losses.detach()

    def store(self, found: Sequence[Tensor | None]) -> None:
        """Store gradients in the parameters."""
        for parameter, gradient in zip(self.trained, found, strict=True):
            parameter.grad = gradient


def _unshared(gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return gradients in memory of their own each, laid out as their parameters are.

    Autograd returns one tensor for parameters that are added up, as an LSTM's biases are, and
    clipping is to scale each once. It also returns transposed ones, whose numbers a fused Adam
    takes for those of other weights.
    """
    taken: set[int] = set()
    found: list[Tensor | None] = []
    for gradient in gradients:
        if gradient is not None:
            gradient = gradient.contiguous()
            if gradient.untyped_storage().data_ptr() in taken:
                gradient = gradient.clone()
            taken.add(gradient.untyped_storage().data_ptr())
        found.append(gradient)
    return found


def clip_each(models: StackedModels, limit: float) -> Float[Tensor, " model"]:
    """Scale down every model's gradient whose norm is above a limit; return the norms before."""
    gradients = [p.grad for p in models.parameters.values() if p.grad is not None]
    norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
    # The same factor as `torch.nn.utils.clip_grad_norm_`, its 1e-6 included.
    factors = (limit / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.ndim - 1)))
    return norms
