"""A pass that starts at a site: modules that finish before it return what they returned once.

Other attention at a site cannot change what was computed before it. In a first pass the outermost
modules that finish before the site are found and their outputs kept: of a Transformer the layers
below and the site's own queries, keys and values, of a recurrent classifier its whole encoder.
Later passes over the same batch then cost what comes after the site.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.models.intervention import AttentionRule, Uniform
from attnscope.models.places import Places
from attnscope.models.watching import Watch

# Largest difference between two ways of the same pass, in parts of the largest logit.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 5e-2}
Rules = Mapping[str, AttentionRule]


@runtime_checkable
class Watched(Protocol):
    """What can be run under watch: `attnscope.models.adapted.Adapted`."""

    module: nn.Module
    places: Places

    def watch(self, batch: Batch, attention: Rules | None) -> Watch:
        """Return a watch over a pass that is still to come."""
        ...

    def run(self, watch: Watch) -> Float[Tensor, "batch out output_type"]:
        """Run the model under a watch."""
        ...


@dataclass
class Resumable:
    """What is known about resuming a model, by site; it does not depend on a batch.

    Attributes
    ----------
    before
        The paths of the outermost modules that finish before the site.
    same
        Whether a resumed pass was the same as a whole one.
    """

    before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    same: dict[str, bool] = field(default_factory=dict)


class Reached(Exception):
    """The pass has come to the site: what comes after it is not needed."""


class CalledAgain(Exception):
    """A module whose one output was kept is called a second time, as in a loop over words."""


class Resumption:
    """Passes over one batch that start at a site.

    Parameters
    ----------
    model, known
        A watched model, and what earlier resumptions of it found.
    batch
        The batch itself: another one, even of equal words, is not resumed.
    site
        A name, an alias or a pattern; of several sites the first one.
    """

    def __init__(self, model: Watched, known: Resumable, batch: Batch, site: str) -> None:
        self.model, self.known, self.batch = model, known, batch
        self.place = _first(model.places, model.places.matching(site))
        self.site = model.places.names[self.place]
        if self.site not in known.same:
            known.same[self.site] = self._is_same(batch.rows(slice(0, 2)))
        self.kept = self._keep(batch) if known.same[self.site] else {}

    def takes(self, batch: Batch, attention: Rules) -> bool:
        """Tell whether a pass over a batch under these rules may start at the site."""
        later = _first(self.model.places, self.model.places.rules(attention)) >= self.place
        return batch is self.batch and later and self.known.same[self.site]

    def outputs(self, attention: Rules) -> Float[Tensor, "batch out output_type"]:
        """Run the model from the site on."""
        try:
            return self._from_site(self.batch, attention, self.kept)
        except CalledAgain:  # the batch that was compared had fewer words
            self.known.same[self.site] = False
            return self.model.run(self.model.watch(self.batch, attention))

    def _from_site(
        self, batch: Batch, attention: Rules, kept: Mapping[str, Any]
    ) -> Float[Tensor, "batch out output_type"]:
        with returning(self.model.module, kept):
            return self.model.run(self.model.watch(batch, attention))

    @torch.no_grad()
    def _keep(self, batch: Batch) -> dict[str, Any]:
        """Run what comes before the site, and no more."""

        def stop(*_: Tensor) -> Tensor:
            raise Reached

        with keeping(self.model.module, self._paths(batch)) as kept, suppress(Reached):
            self.model.run(self.model.watch(batch, {self.site: stop}))
        return kept

    @torch.no_grad()
    def _is_same(self, batch: Batch) -> bool:
        """Compare passes from the site on with a whole one.

        Two of them: a model that changes what was kept in place is right the first time only.
        """
        rules = {self.site: Uniform()}
        whole = self.model.run(self.model.watch(batch, rules))
        try:
            kept = self._keep(batch)
            resumed = [self._from_site(batch, rules, kept) for _ in range(2)]
        except Exception:  # a model may need anything that its modules do besides returning
            return False
        return max(off(one, whole) for one in resumed) <= TOLERANCE.get(whole.dtype, 1e-5)

    def _paths(self, batch: Batch) -> tuple[str, ...]:
        if not self.known.before:
            watch = self.model.watch(batch, None)
            with finishing(self.model.module, lambda: len(watch.seen)) as ends:
                self.model.run(watch)
            for number, seen in reversed(list(enumerate(watch.seen))):
                if seen.place is not None:  # of the steps of a loop the first one stays
                    self.known.before[seen.place.name] = outermost_before(ends, number)
        return self.known.before[self.site]


def off(a: Tensor, b: Tensor) -> float:
    """Return the largest difference of two logits, in parts of the largest of them."""
    scale = b.detach().float().abs().max().clamp(min=1.0)
    return float((a.detach().float() - b.detach().float()).abs().max() / scale)


def _first(places: Places, names: Iterator[str] | Sequence[str] | Rules) -> int:
    return min(places.names.index(name) for name in names)


@dataclass(frozen=True)
class Finished:
    """The end of one call of a module, and how many attentions were seen until then."""

    path: str
    seen: int


@contextmanager
def finishing(module: nn.Module, seen: Callable[[], int]) -> Iterator[list[Finished]]:
    """Note the end of every call of every module, in their order."""
    ends: list[Finished] = []
    with ExitStack() as hooks:
        for path, part in module.named_modules():

            def note(*_: Any, path: str = path) -> None:
                ends.append(Finished(path, seen()))

            hooks.callback(part.register_forward_hook(note).remove)
        yield ends


def outermost_before(ends: Sequence[Finished], first: int) -> tuple[str, ...]:
    """Return the outermost modules that are called once and finish before an attention.

    Parameters
    ----------
    ends
        From `finishing`.
    first
        The attention, as a number in the order of the pass.
    """
    calls = Counter(end.path for end in ends)
    early = [e.path for e in ends if e.path and calls[e.path] == 1 and e.seen <= first]
    found = set(early)
    return tuple(path for path in early if not _inside(path, found))


def _inside(path: str, others: set[str]) -> bool:
    parts = path.split(".")
    return any(".".join(parts[:end]) in others for end in range(1, len(parts)))


@contextmanager
def keeping(module: nn.Module, paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Keep what some modules return, by their paths."""
    outputs: dict[str, Any] = {}
    with ExitStack() as hooks:
        for path in paths:

            def keep(_: nn.Module, inputs: Any, output: Any, path: str = path) -> None:
                outputs[path] = output

            hooks.callback(module.get_submodule(path).register_forward_hook(keep).remove)
        yield outputs


@contextmanager
def returning(module: nn.Module, outputs: Mapping[str, Any]) -> Iterator[None]:
    """Let modules return what is given, once each, and leave them as they were."""
    with ExitStack() as replaced:
        for path, output in outputs.items():
            part = module.get_submodule(path)
            replaced.callback(_restore, part, part.__dict__.get("forward"))
            part.__dict__["forward"] = _once(output)
        yield


def _once(output: Any) -> Callable[..., Any]:
    waiting = [output]

    def forward(*args: Any, **kwargs: Any) -> Any:
        if not waiting:
            raise CalledAgain
        return waiting.pop()

    return forward


def _restore(part: nn.Module, forward: Any) -> None:
    if forward is None:
        part.__dict__.pop("forward", None)
    else:
        part.__dict__["forward"] = forward
