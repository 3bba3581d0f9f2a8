"""Running a recipe: from its name and some settings to a result, its figures and its verdicts."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from attnscope.errors import NotDrawn, UsageError, WorkspaceError
from attnscope.figures.save import figures_available, save
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.recipe import Charts, module_of
from attnscope.recipes.registry import Entry, find, find_known, measures_of
from attnscope.running.cost.budget import fit_budget
from attnscope.running.cost.measuring import measuring_cost
from attnscope.running.naming import demand_free, naming_of
from attnscope.running.placing import Placement
from attnscope.runs.environment import environment
from attnscope.runs.files import refuse_links
from attnscope.runs.measures import check_declared
from attnscope.runs.result import Measurement, Result, place_of, read_result
from attnscope.runs.spec import Settings, read_settings, usage_errors
from attnscope.runs.unit import UnitFolder
from attnscope.runs.workspace import workspace_of
from attnscope.training.accelerator import accelerator
from attnscope.training.memory import memory_errors
from attnscope.training.progress import Progress, Silent
from attnscope.training.registry import read_unit
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Precision

# One small LSTM leaves a GPU idle. Measured on an H200 with the copying model: 53, 157, 178 and 182
# steps a second with 1, 4, 8 and 16 processes; under NVIDIA's MPS 59, 216, 423 and 623.
_GPU_JOBS = 8


@dataclass(frozen=True)
class Run:
    """A finished run: its result, where it lies, its figures, and what is to be said about it."""

    entry: Entry
    result: Result
    folder: Path
    figures: tuple[Path, ...]
    notice: str | None = None

    @property
    def units(self) -> list[TrainedUnit]:
        """The trained units behind the result, in the order in which they were used."""
        workspace = workspace_of(self.folder, self.result)
        return [TrainedUnit.read(workspace / "units" / name) for name in self.result.units]


def run(
    recipe: str,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | None = None,
    quick: bool = False,
    name: str | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Precision = "float32",
    jobs: int | None = None,
    out: str | Path = "runs",
    progress: Progress | None = None,
    on: str = "here",
    workers: int | None = None,
    mixed: bool = False,
    slurm: Mapping[str, Any] | None = None,
    imports: Sequence[str] = (),
    budget: str | None = None,
) -> Run:
    """Run or resume a recipe; finished units are reused.

    Parameters
    ----------
    recipe
        A name such as ``"snell/fig3"`` (`attnscope.recipes.entries` lists them), or the path of a
        Python file of your own, ``"my_recipe.py"``.
    settings
        Values for the recipe's ``Config``, by name.
    seeds
        Short for the setting of that name.
    quick
        A smaller problem on the same code path; its verdicts never count.
    name
        Names the folder of the result where settings are not the defaults; by default a short hash
        of them does.
    device
        ``auto`` takes a GPU if there is one.
    precision
        Of a GPU's matrix products in training: ``tf32`` is faster and less exact. Units that differ
        in it are different units.
    jobs
        Number of worker processes; by default one per CPU core, at most eight on a GPU.
    out
        The workspace.
    on
        Where units are trained: ``here``; by ``workers`` (`attnscope.work`) that share the
        workspace, and by ``jobs`` processes here if given; on ``slurm``; on ``ray`` or
        ``ray:ADDRESS``. The bytes of a unit are the same.
    workers
        Number of Slurm jobs.
    mixed
        Whether hosts of different versions or GPUs may take part in one sweep.
    slurm
        Further parameters of Slurm jobs, as `submitit` names them.
    imports
        Modules or files of your own that define kinds, for other processes to import.
    budget
        Time to take, as in ``"10m"``: sizes that are not given are made smaller until the run fits
        (`attnscope.running.cost.budget`); ``progress`` notes which.

    Returns
    -------
    Run
        ``result`` holds the measurements, ``figures`` the files drawn.
    """
    entry = find(recipe)
    module = module_of(entry)
    progress = progress or Silent()
    config = read_config(entry, settings, seeds=seeds, quick=quick)
    workspace = Path(out)
    _check_writable(workspace)
    placement = Placement(on, workers, jobs, mixed, slurm or {}, imports)
    place = choose_device(device, elsewhere=placement.place != "here")
    here = choose_device("auto") if place == "cuda" else place
    _check_precision(precision, place)
    count = job_count(place, jobs)
    if budget is not None:
        given = dict(settings or {}) | ({} if seeds is None else {"seeds": seeds})
        cost = measuring_cost(entry.name)
        chosen = fit_budget(module, config, given, budget, here, count, progress, cost)
        progress.note(chosen.sentence)
        config = chosen.config
    named = naming_of(config, module.QUICK if quick else None, name)
    where = workspace / place_of(entry.name, named.part, named.variant)
    refuse_links(where, workspace)
    if name is not None:
        demand_free(where, config.model_dump(mode="json"))
    started = time.monotonic()
    with (
        usage_errors(entry.name),
        memory_errors(entry.name),
        placement.trainer(workspace, count) as trainer,
    ):
        lab = Lab(trainer, here, progress, trains_on=place, precision=precision)
        records = module.measure(config, lab)
    result = Result(
        recipe=entry.name,
        **named._asdict(),
        config=config.model_dump(mode="json"),
        environment=environment(here, accelerator(here))
        | ({} if precision == "float32" else {"precision": precision}),
        seconds=round(time.monotonic() - started, 1),
        measurements=tuple(record for record in records if isinstance(record, Measurement)),
        pictures=tuple(record for record in records if not isinstance(record, Measurement)),
        units=tuple(lab.used),
        groups=lab.groups,
    )
    measures = measures_of(entry.name, module)
    if measures is not None:
        check_declared(measures, records, entry.name)
    folder = workspace / result.place
    refuse_links(folder, workspace)
    result.write(folder)
    figures, notice = draw(folder)
    return Run(entry, result, folder, figures, notice)


def read_config(
    entry: Entry,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | None = None,
    quick: bool = False,
) -> Settings:
    """Return the settings of a run, as `run` takes them."""
    module = module_of(entry)
    given = dict(settings or {}) | ({} if seeds is None else {"seeds": seeds})
    config = read_settings(module.Config, (dict(module.QUICK) if quick else {}) | given, entry.name)
    _check_counts(config, entry.name)
    return config


def job_count(device: str, jobs: int | None = None) -> int:
    """Return the number of worker processes: the one asked for, or the default of a device."""
    cores = os.cpu_count() or 1
    count = (cores if device == "cpu" else min(cores, _GPU_JOBS)) if jobs is None else jobs
    if count < 1:
        raise UsageError(f"--jobs={count}: at least one process is needed.")
    return count


def read_logged(workspace: Path, result: Result) -> list[Logged]:
    """Read configuration and log of a result's units."""
    folders = [UnitFolder(workspace / "units" / name, workspace) for name in result.units]
    return [
        Logged(folder.config, read_unit(folder.config).source.dataset, folder.log)
        for folder in folders
    ]


def draw(folder: str | Path) -> tuple[tuple[Path, ...], str | None]:
    """Draw the figures of a finished run, from its result and its units' logs.

    Returns
    -------
    paths
        The files drawn, SVG and PNG.
    notice
        Why there are none, or why one is missing, or None.
    """
    folder = Path(folder)
    result = read_result(folder / "result.json")
    notice = figures_available()
    if notice:
        return (), notice
    workspace = workspace_of(folder, result)
    charts, notice = charts_of(result, read_logged(workspace, result))
    refuse_links(folder / "figures", folder)
    paths: list[Path] = []
    for name, chart in charts.items():
        try:
            paths += save(chart, folder / "figures", name)
        except NotDrawn as error:
            notice = f"Figure {name}: {error}"
    return tuple(paths), notice


# What a figure raises over a row, a group or a unit that is not there.
_LACKS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, StopIteration)


def charts_of(result: Result, units: Sequence[Logged]) -> tuple[Charts, str | None]:
    """Return the figures of a result by name; or none, and why, where it lacks what they show."""
    module = module_of(find_known(result.recipe))
    try:
        return module.draw(result, units), None
    except _LACKS as error:
        reason = " ".join(str(error).split())[:120]
        return {}, (
            f"No figure of {result.place} is drawn: its result lacks what they show "
            f"({type(error).__name__}: {reason})."
        )


def choose_device(device: str, *, elsewhere: bool = False) -> Literal["cpu", "cuda"]:
    """Return the device that a word asks for, or say that there is none.

    A GPU that is asked for ``elsewhere``, on other hosts, need not be here.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"No device {device!r}; valid: auto, cpu, cuda.")
    if device == "cuda" and elsewhere:
        return "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "No CUDA device was found; use --device cpu, or auto to take what there is."
        )
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def _check_precision(precision: str, device: str) -> None:
    if precision not in get_args(Precision):
        raise UsageError(f"No precision {precision!r}; valid: {', '.join(get_args(Precision))}.")
    if precision != "float32" and device == "cpu":
        raise UsageError(f"{precision} is a precision of GPUs; on a CPU products are float32.")


# Far above any experiment; more would be planned, or drawn, for hours before the first message.
_MOST = {"seeds": 10**4, "length": 10**4, "longest": 10**4, "shortest": 10**4, "steps": 10**8}
_MOST_OF_OTHERS = 10**7


def _check_counts(config: Settings, where: str) -> None:
    for name, value in config:
        # max_length leaves texts out: the longest text decides.
        last = "" if name == "max_length" else name.rpartition("_")[2]
        most = _MOST.get(last, _MOST_OF_OTHERS)
        if isinstance(value, int) and abs(value) > most:
            raise UsageError(f"{where}: {name}={value} is not valid: at most {most:,} is possible.")


def _check_writable(workspace: Path) -> None:
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"Cannot write in {workspace}: {error.strerror}; choose another folder with --out."
        ) from error
    if not os.access(workspace, os.W_OK):
        raise WorkspaceError(
            f"Cannot write in {workspace}: no permission; choose another folder with --out."
        )
