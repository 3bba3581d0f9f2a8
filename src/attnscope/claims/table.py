"""Claims as a table: what is measured, on which cells, by which rule, and what that needs.

A claim of any paper, or of a user, is one `Claim` next to the recipe that measures it::

    CLAIMS = {
        "aitken.temporal-attention": Claim(
            Cells("word_accuracy", by=("model",), given=ONE_TO_ONE | {"model": ("aed", "ao")}),
            (
                Part("argmax agreement", "temporal_agreement", above, 0.95),
                Part("mass near the diagonal", "gold_mass", above, 0.5, {"within": 1}),
                Part("attention on the diagonal", "gold_mass", given={"within": 0}),
            ),
            Needs(seeds=5, each={"model": ("aed", "ao")}),
        ),
    }

`Cells` are the cases that a claim is about: data sets, or models on them. On each cell every check
is made. A `Part` is a check in one line: a label for the evidence, the name of a measurement (or
several), a rule of `attnscope.claims.decide` and its bound; without a rule the number is shown and
decides nothing. A check that is more than that is a function ``(Cell) -> Finding``, and a claim
that is not about cells at all is a function ``(Pool) -> Decision``: `CLAIMS` takes either. Seeds,
sizes, data sets that do not count, evidence, deviations and "not held on" are written here, once.

Evidence holds the measurements themselves. A missing one is "not measured" and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from attnscope.claims.decide import Verdict, all_of
from attnscope.claims.pool import Decision, Pool, Sizes, interval_of, undecided
from attnscope.data.known import GENERATED, definitions
from attnscope.runs.result import Measurement

Given = Mapping[str, Any]
"""Values of axes, ``name``, ``dataset`` and ``split``: one, a tuple of choices, or a predicate."""

Rule = Callable[..., Verdict]
Bound = float | Callable[[Measurement], float]


class NotMeasured(LookupError):
    """A check needs a measurement that no result has."""


class Finding(NamedTuple):
    """The outcome of a check on one cell; without a verdict its evidence is shown only."""

    verdict: Verdict | None
    evidence: Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One case that a claim is about: all measurements whose axes are as given."""

    pool: Pool
    given: Given = field(default_factory=dict)
    label: str = ""

    def select(self, name: str, /, **given: Any) -> list[Measurement]:
        """Return the cell's measurements of a name; ``axis=None`` lifts the cell's own choice."""
        wanted = {**self.given, **given}
        return [row for row in self.pool.named(name) if fits(row, wanted)]

    def one(self, name: str, /, **given: Any) -> Measurement:
        """Return the latest measurement of a name, or raise `NotMeasured`."""
        rows = self.select(name, **given)
        if not rows or rows[-1].value is None:
            raise NotMeasured(name)
        return rows[-1]

    def value(self, name: str, /, **given: Any) -> float:
        """Return the value of `one`."""
        found = self.one(name, **given).value
        assert found is not None  # `one` has looked
        return found

    def agrees(self, given: Given) -> bool:
        """Say whether the axes by which the cell was found are as given."""
        return all(_agrees(self.given.get(axis), value) for axis, value in given.items())

    @property
    def dataset(self) -> str:
        """The cell's data set."""
        return str(self.given["dataset"])


Check = Callable[[Cell], Finding]
Predicate = Callable[[Pool], Decision]


@dataclass(frozen=True)
class Cells:
    """Which cases a claim is about.

    Attributes
    ----------
    measured
        The measurement that every case has (or one of several); its seeds are the case's. Without
        one the whole pool is the only cell.
    by
        The axes that distinguish cells.
    given
        What all of their measurements have in common.
    decide
        The data sets that decide, where only some do; the others are shown.
    aside
        Data sets that are shown and decide nothing.
    """

    measured: str | tuple[str, ...] = ()
    by: tuple[str, ...] = ("dataset",)
    given: Given = field(default_factory=dict)
    decide: Collection[str] = ()
    aside: Collection[str] = ()

    def find(self, pool: Pool) -> list[Cell]:
        """Return the cells of a pool, in the order of its measurements."""
        if not self.measured:
            return [Cell(pool, self.given)]
        rows = [row for name in self._names for row in pool.named(name) if fits(row, self.given)]
        keys = dict.fromkeys(tuple(_known(row).get(axis) for axis in self.by) for row in rows)
        return [
            Cell(pool, {**self.given, **dict(zip(self.by, key, strict=True))}, _label(key))
            for key in keys
        ]

    def decides(self, cell: Cell, seeds: int = 1) -> bool:
        """Say whether a cell counts: its seeds, and its data set; in quick runs whichever it is."""
        if seeds > 1 and self._seeds(cell) < seeds:
            return False
        dataset = cell.given.get("dataset")
        if dataset in self.aside or (dataset in GENERATED and not cell.pool.quick):
            return False
        return self.concerns(cell)

    def concerns(self, cell: Cell) -> bool:
        """Say whether the claim is about a cell's data set; in quick runs whichever it is."""
        return cell.pool.quick or not self.decide or cell.given.get("dataset") in self.decide

    def _seeds(self, cell: Cell) -> int:
        found: set[int] = set()
        for name in self._names:
            for row in cell.select(name):
                found.update(row.seeds)
        return len(found)

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.measured,) if isinstance(self.measured, str) else self.measured


@dataclass(frozen=True)
class Part:
    """A check in one line: a measurement, and the rule and bound that decide on it.

    Attributes
    ----------
    says
        The label in the evidence; without one the number is that of the cell itself.
    measured
        The measurement's name; several are the arguments of one rule.
    rule
        A function of their intervals, and of the bound where there is one; without a rule the
        numbers are shown and decide nothing.
    bound
        A number, or a function of the measurement.
    given
        Axes, next to the cell's own.
    each
        An axis; the part is about every value of it that was measured.
    only
        The cells that the part is about, where not all of them.
    decides_on
        The cells on which the rule decides, where not all of them; on others the number is shown.
    shown
        Whether the measurements are part of the evidence.
    """

    says: str
    measured: str | tuple[str, ...]
    rule: Rule | None = None
    bound: Bound | None = None
    given: Given = field(default_factory=dict)
    each: str = ""
    only: Given = field(default_factory=dict)
    decides_on: Given = field(default_factory=dict)
    shown: bool = True

    def __call__(self, cell: Cell) -> Finding:
        """Apply the rule to a cell."""
        if not cell.agrees(self.only):
            return Finding(None, {})
        if not cell.agrees(self.decides_on):
            return replace(self, rule=None, decides_on={})(cell)
        if not self.each:
            return self._decided(cell, self.says, self.given)
        rows = [row for name in self._names for row in cell.select(name, **self.given)]
        known = [_known(row) for row in rows]
        values = dict.fromkeys(axes[self.each] for axes in known if self.each in axes)
        if not values and self.rule is not None:
            raise NotMeasured(self._names[0])
        labels = {value: f"{self.says} {value}".strip() for value in values}
        return together(
            [self._decided(cell, labels[x], {**self.given, self.each: x}) for x in values]
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.measured,) if isinstance(self.measured, str) else self.measured

    def _decided(self, cell: Cell, says: str, given: Given) -> Finding:
        if self.rule is None and not cell.select(self._names[0], **given):
            return Finding(None, {})
        rows = [cell.one(name, **given) for name in self._names]
        evidence: Any = rows[0] if len(rows) == 1 else dict(zip(self._names, rows, strict=True))
        shown = {says: evidence} if self.shown else {}
        if self.rule is None:
            return Finding(None, shown)
        bound = self.bound(rows[0]) if callable(self.bound) else self.bound
        bounds = () if bound is None else (bound,)
        return Finding(self.rule(*map(interval_of, rows), *bounds), shown)


def together(findings: Sequence[Finding]) -> Finding:
    """Return several findings on one cell as one: all that have a verdict must hold."""
    verdicts = [found.verdict for found in findings if found.verdict is not None]
    evidence: dict[str, Any] = {}
    for found in findings:
        evidence |= found.evidence
    return Finding(all_of(verdicts) if verdicts else None, evidence)


@dataclass(frozen=True)
class Needs:
    """The runs that a claim needs before it is decided; a quick run shows what it has.

    Attributes
    ----------
    seeds
        How many a cell must have to count.
    sizes
        The least value of settings, or of those of each recipe; smaller runs do not count.
    datasets
        How many data sets must count.
    each
        Axes, and the values of them that must be among the cells that count.
    also
        A function of the cells that count, for anything else: what is lacking, or nothing.
    """

    seeds: int = 1
    sizes: Sizes = field(default_factory=dict)
    datasets: int = 1
    each: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    also: Callable[[Pool, Sequence[Cell]], str] | None = None

    def lacking(self, pool: Pool, cells: Sequence[Cell]) -> str:
        """Return what is missing, or an empty text."""
        also = "" if self.also is None else self.also(pool, cells)
        if also:
            return also
        if not cells:
            return f"needs {self._wanted()}; there is none"
        for axis, values in self.each.items():
            have = {cell.given[axis] for cell in cells}
            if not pool.quick and not have.issuperset(values):
                missing = ", ".join(str(value) for value in values if value not in have)
                return f"needs {self._wanted()}; {missing} is missing"
        count = len({cell.given.get("dataset") for cell in cells})
        if count < pool.needed(self.datasets):
            return f"needs {self._wanted()}; there are {count}"
        return ""

    def _wanted(self) -> str:
        named = [", ".join(map(str, values)) for values in self.each.values()]
        number = f"{self.datasets} data sets" if self.datasets > 1 else "a data set"
        seeds = f" with {self.seeds} seeds" if self.seeds > 1 else ""
        sizes = " at full size" if self.sizes else ""
        return (" and ".join(named) or number) + seeds + sizes


@dataclass(frozen=True)
class Claim:
    """A claim that is decided cell by cell; call it with pooled measurements.

    Attributes
    ----------
    cells
        The cases that it is about.
    checks
        Made on every cell; all that decide must hold there.
    needs
        What must be there before anything is decided.
    over
        How the cells' verdicts make the claim's.
    deviation
        How the setting differs from the paper's, as text or as a function of the pool and of the
        data sets that the claim is about.
    note
        Anything else that a reader should know.
    statement, where
        What is claimed, and where, of a claim that is not in the catalogue.
    """

    cells: Cells
    checks: Sequence[Check]
    needs: Needs = field(default_factory=Needs)
    over: Callable[[Sequence[Verdict]], Verdict] = all_of
    deviation: str | Callable[[Pool, Sequence[str]], str] = ""
    note: str = ""
    statement: str = ""
    where: str = ""

    def __call__(self, pool: Pool) -> Decision:
        """Decide the claim."""
        pool = pool.full_size(self.needs.sizes)
        evidence: dict[str, Any] = {}
        parts: list[tuple[Cell, Verdict]] = []
        cells = self.cells.find(pool)
        for cell in cells:
            found = together([_checked(check, cell) for check in self.checks])
            _add(evidence, cell.label, found.evidence)
            counts = self.cells.decides(cell, pool.needed(self.needs.seeds))
            if found.verdict is not None and counts:
                parts.append((cell, found.verdict))
        lacking = self.needs.lacking(pool, [cell for cell, _ in parts])
        if lacking:
            return undecided(lacking, evidence)
        against = [cell.label for cell, part in parts if part is not Verdict.HOLDS]
        notes = [f"not held on {', '.join(against)}" if any(against) else "", self.note]
        return Decision(
            self.over([part for _, part in parts]),
            evidence,
            self._deviation(pool, cells),
            "; ".join(filter(None, notes)),
        )

    def _deviation(self, pool: Pool, cells: Sequence[Cell]) -> str:
        if isinstance(self.deviation, str):
            return self.deviation
        own = [cell for cell in cells if self.cells.concerns(cell)]
        datasets = dict.fromkeys(str(cell.given.get("dataset", "")) for cell in own)
        return self.deviation(pool, list(datasets))


def several(claims: Mapping[str, Predicate]) -> Predicate:
    """Return the claim that several claims make together, each about cells of its own.

    All of them must hold. One that lacks what it needs leaves the whole undecided, unless another
    fails; evidence and notes are kept under the names given here.
    """

    def decide(pool: Pool) -> Decision:
        parts = {name: claim(pool) for name, claim in claims.items()}
        notes = [f"{name}: {part.note}" for name, part in parts.items() if part.note]
        return Decision(
            all_of([part.verdict for part in parts.values()]),
            {name: dict(part.evidence) for name, part in parts.items() if part.evidence},
            "; ".join(dict.fromkeys(part.deviation for part in parts.values() if part.deviation)),
            "; ".join(notes),
        )

    return decide


def corpus_deviations(datasets: Collection[str], *others: str) -> str:
    """Return how known corpora differ from the paper's, and other deviations after them."""
    known = definitions()
    texts = {name: known[name].deviation for name in datasets if name in known}
    parts = [f"{name}: {text.removesuffix('.')}" for name, text in texts.items() if text]
    return "; ".join([*parts, *filter(None, others)])


def least(settings: type[BaseModel], *names: str) -> dict[str, float]:
    """Return the defaults of some settings, as the `Needs.sizes` of a full-size run."""
    return {name: settings.model_fields[name].default for name in names}


def fits(row: Measurement, given: Given) -> bool:
    """Say whether a measurement's axes, data set and split are as given."""
    known = _known(row)
    return all(_agrees(known.get(axis), value) for axis, value in given.items())


def _known(row: Measurement) -> dict[str, Any]:
    return {"name": row.name, "dataset": row.dataset, "split": row.split, **row.axes}


def _agrees(found: Any, wanted: Any) -> bool:
    """Say whether an axis is as given; None is anything."""
    if callable(wanted):
        return found is not None and bool(wanted(found))
    return wanted is None or found in (wanted if isinstance(wanted, tuple) else (wanted,))


def _label(key: Sequence[Any]) -> str:
    return " ".join(str(part) for part in key)


def _checked(check: Check, cell: Cell) -> Finding:
    try:
        return check(cell)
    except NotMeasured as missing:
        return Finding(Verdict.UNDECIDED, {str(missing): "not measured"})


def _add(evidence: dict[str, Any], label: str, found: Mapping[str, Any]) -> None:
    """Add a cell's evidence under its label; a number without a label is the cell's own."""
    if not label:
        evidence |= found
    elif list(found) == [""]:
        evidence[label] = found[""]
    elif found:
        evidence[label] = dict(found)
