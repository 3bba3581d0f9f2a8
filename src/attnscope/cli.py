"""The command line: ``list``, ``run``, ``claims``, ``audit``, …; each is one Python call.

Each verb imports what it needs when it is called, so that ``--help`` and ``list`` start fast.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from attnscope import __version__
from attnscope.clean import CleanStream
from attnscope.cli_audit import audit, export
from attnscope.cli_data import data_app, use_data
from attnscope.cli_demo import demo
from attnscope.cli_explain import explain
from attnscope.cli_options import Import, Json, read_settings_of
from attnscope.cli_report import report
from attnscope.cli_show import RecipeHelp, show
from attnscope.cli_status import status
from attnscope.cli_units import units
from attnscope.cli_work import work
from attnscope.errors import AttnscopeError, WorkspaceError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How attention was learned, and whether it can be trusted as an explanation.",
)
app.command()(audit)
app.command()(demo)
app.command()(export)
app.command()(report)
app.command()(work)
app.command()(status)
app.command()(show)
app.command()(units)
app.command()(explain)
app.add_typer(data_app, name="data")
_debug = False


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"attnscope {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option(help="Show full tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    global _debug
    _debug = debug


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the recipes: what each reproduces, needs, and takes on CPU and on GPU."""
    from attnscope.recipes.registry import entries

    if as_json:
        from dataclasses import asdict

        print(json.dumps([asdict(entry) for entry in entries()], indent=1))
        return
    from attnscope.terminal import CleanConsole, recipe_table

    CleanConsole().print(recipe_table(entries()))


@app.command(cls=RecipeHelp)
def run(
    recipe: Annotated[str, typer.Argument(help="As in snell/fig3; or a Python file of your own.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings of the recipe, as key=value.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller problem; its verdicts never count.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Names the result's folder; by default its settings do.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="Of a GPU's matrix products: float32, or tf32, which is faster.")
    ] = "float32",
    jobs: Annotated[int | None, typer.Option(help="Number of worker processes.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of corpora.")] = None,
    out: Annotated[Path, typer.Option(help="The workspace.")] = Path("runs"),
    budget: Annotated[
        str | None, typer.Option(help="Time to train, as in 10m: smaller sizes if needed.")
    ] = None,
    imports: Import = None,
    on: Annotated[
        str, typer.Option(help="Where to train: here, workers, slurm, ray or ray:ADDRESS.")
    ] = "here",
    workers: Annotated[int | None, typer.Option(help="Number of Slurm jobs.")] = None,
    partition: Annotated[str | None, typer.Option(help="Slurm partition.")] = None,
    minutes: Annotated[int | None, typer.Option("--time", help="Minutes of a Slurm job.")] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(help="Further submitit parameter, as key=value; repeatable."),
    ] = None,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Accept hosts of different versions or GPUs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run or resume a recipe; print measurements, verdicts and figures."""
    from attnscope.recipes.registry import find

    entry = find(recipe)
    use_data(data)
    given = read_settings_of(settings)
    from attnscope.own_text.corpora import about_corpora, only_own
    from attnscope.running.run import run as run_recipe
    from attnscope.running.verdicts import judge
    from attnscope.terminal import Bars, CleanConsole, Lines

    console = CleanConsole()
    bars = console.is_terminal and not as_json
    try:
        done = run_recipe(
            recipe,
            given,
            seeds=seeds,
            quick=quick,
            name=name,
            device=device,  # type: ignore[arg-type]
            precision=precision,  # type: ignore[arg-type]
            jobs=jobs,
            out=out,
            budget=budget,
            progress=Bars(console) if bars else Lines(sys.stderr),
            on=on,
            workers=workers,
            mixed=mixed,
            slurm=_slurm_settings(partition, minutes, slurm),
            imports=imports or (),
        )
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to resume.", file=sys.stderr)
        raise typer.Exit(130) from None
    judged = [claim for claim in judge([done.result]) if entry.name in claim.recipes]
    if as_json:
        printed = {
            "result": done.result.model_dump(mode="json", by_alias=True),
            "about": [about.as_json() for about in about_corpora(done.result)],
            "claims": [claim.as_json() for claim in judged],
            "figures": [str(path) for path in done.figures],
            "notice": done.notice,
        }
        print(json.dumps(printed, indent=1))
        return
    from attnscope.recipes.recipe import module_of
    from attnscope.recipes.registry import measures_of
    from attnscope.runs.result import headline
    from attnscope.terminal import (
        headline_table,
        papers_claims,
        print_about,
        print_verdicts,
        scale_line,
    )

    module = module_of(entry)
    shown = getattr(module, "SHOWN", {})
    names = module.HEADLINE or list(dict.fromkeys(row.name for row in done.result.numbers))
    rows = headline(done.result.numbers, names, shown)
    measures = measures_of(entry.name, module)
    console.print(headline_table(rows, f"{entry.name}: {entry.title}", shown, measures))
    about = about_corpora(done.result)
    print_about(console, about)
    if only_own(done.result):
        if judged:
            console.print(papers_claims(judged), style="dim")
    else:
        print_verdicts(console, judged)
    console.print(scale_line(done.result), style="dim", soft_wrap=True)
    console.print(f"Result: {done.folder / 'result.json'}", markup=False, soft_wrap=True)
    for path in done.figures:
        console.print(f"Figure: {path}", markup=False, soft_wrap=True)
    if done.notice:
        console.print(done.notice, style="yellow", markup=False)


@app.command()
def claims(
    folders: Annotated[list[Path] | None, typer.Argument(help="Workspaces (runs).")] = None,
    imports: Import = None,
    as_json: Json = False,
) -> None:
    """Decide the papers' claims on finished runs."""
    from attnscope.recipes.registry import notes_on_missing
    from attnscope.running.verdicts import judge
    from attnscope.runs.workspace import read_results

    results = [result for folder in folders or [Path("runs")] for result in read_results(folder)]
    if not results:
        names = ", ".join(map(str, folders or [Path("runs")]))
        raise WorkspaceError(
            f"There is no result in {names}; run a recipe first, or name the workspace that was "
            "given to --out."
        )
    judged = judge(results)
    for note in notes_on_missing(result.recipe for result in results):
        print(note, file=sys.stderr)
    if as_json:
        print(json.dumps([claim.as_json() for claim in judged], indent=1))
        return
    from attnscope.terminal import CleanConsole, print_verdicts

    console = CleanConsole()
    measured = [claim for claim in judged if claim.setting]
    print_verdicts(console, measured)
    counts = {word: sum(c.verdict == word for c in judged) for word in ("holds", "fails")}
    console.print(
        f"{counts['holds']} hold, {counts['fails']} fail, {len(judged) - sum(counts.values())} are "
        f"undecided ({len(judged) - len(measured)} of them without a run)."
    )
    from attnscope.claims.fidelity import compare, sentence

    cells = compare(results)
    if any(cell.measured for cell in cells):
        console.print(sentence(cells), markup=False, highlight=False, soft_wrap=True)


def _slurm_settings(
    partition: str | None, minutes: int | None, further: list[str] | None
) -> dict[str, Any]:
    given = {"slurm_partition": partition, "timeout_min": minutes}
    named = {key: value for key, value in given.items() if value is not None}
    return named | read_settings_of(further)


def main() -> None:
    """Run the command line; an error is one sentence on standard error and exit code 1."""
    sys.stdout, sys.stderr = _stream(sys.stdout), _stream(sys.stderr)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (AttnscopeError, OSError, MemoryError) as error:
        if _debug:
            raise
        print(f"attnscope: {_sentence(error)}", file=sys.stderr)
        _leave_quietly()


def _stream(given: Any) -> Any:
    """Return a stream of clean text; one that the shell has closed takes everything."""
    return CleanStream(open(os.devnull, "w") if given is None else given)


def _sentence(error: Exception) -> str:
    if isinstance(error, AttnscopeError):
        return " ".join(str(error).splitlines())
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{where}."
    return "There is not enough memory; choose smaller settings."


def _leave_quietly() -> NoReturn:
    """End with exit code 1, also where standard output takes no more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
