"""The verbs ``audit`` and ``export``: a user's own model, one verdict; its scores as a table.

They are `attnscope.audit` and `attnscope.export` in Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli_data import use_data
from attnscope.cli_options import Json

if TYPE_CHECKING:
    from attnscope.audits.verdict import Audit


def audit(
    model: Annotated[str, typer.Argument(help="Folder of a Hugging Face model, or org/name.")],
    data: Annotated[
        str,
        typer.Argument(help="A known corpus, a corpus or datasets folder, a .tsv or .jsonl file."),
    ],
    split: Annotated[str | None, typer.Option(help="Of a corpus; by default held out.")] = None,
    examples: Annotated[int, typer.Option(help="How many texts, drawn evenly.")] = 200,
    budget: Annotated[
        str | None, typer.Option(help="Time to take, as in 90s or 5m: fewer texts if needed.")
    ] = None,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Folder of checkpoint-N folders: how it was learned.")
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="A model from another seed; may be repeated.")
    ] = None,
    only: Annotated[
        str, typer.Option(help="Questions to ask, as in idle,finds; by default all.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the sample and of permutations.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    corpora: Annotated[Path | None, typer.Option("--data", help="Folder of corpora.")] = None,
    out: Annotated[Path, typer.Option(help="The workspace.")] = Path("runs"),
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask whether a model's attention can be trusted as an explanation."""
    use_data(corpora)
    from attnscope.audits.running import audit as run_audit

    try:
        done = run_audit(
            model,
            data,
            split=split,
            examples=examples,
            budget=budget,
            checkpoints=checkpoints,
            against=against or (),
            only=[name.strip() for name in only.split(",") if name.strip()],
            seed=seed,
            device=device,
            out=out,
            trust_remote_code=trust_remote_code,
            progress=_progress,
        )
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to resume.", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(done.as_json(), indent=1, ensure_ascii=False))
        return
    _print(done)


def export(
    folder: Annotated[Path, typer.Argument(help="The folder of an audit, in runs/audits.")],
    file: Annotated[Path, typer.Argument(help="A .csv, .npz or .parquet file to write.")],
    format: Annotated[
        str | None, typer.Option(help="parquet, csv or npz; by default the file's ending.")
    ] = None,
) -> None:
    """Write the stored scores of an audit as one table, with words."""
    from attnscope.audits.stored import export as write

    print(f"Scores: {write(folder, file, format)}")


def _progress(question: str) -> None:
    print(f"{question} …", file=sys.stderr, flush=True)


def _print(done: Audit) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(done.sentence, style="bold", markup=False, soft_wrap=True)
    table = Table("question", "verdict", "figure")
    for name, decision in done.verdicts.items():
        table.add_row(name.removeprefix("audit."), decision.verdict.value, done.figure(name))
    console.print(table)
    for notice in done.notices:
        console.print(notice, style="yellow", markup=False, soft_wrap=True)
    console.print(f"Result: {done.folder / 'result.json'}", markup=False, soft_wrap=True)
