"""The verb ``demo``: a report of the translator that comes with the package; nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SENTENCES = ("der Mann hat den Hund gesehen .", "das Kind hat heute ein Buch gelesen .")


def demo(
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("attnscope-demo.html"),
    sentence: Annotated[
        list[str] | None,
        typer.Option(help="A German sentence for the translator to read; may be repeated."),
    ] = None,
) -> None:
    """Write a report of a small German-English translator; needs no network and trains nothing."""
    from attnscope.report.page import write_report
    from attnscope.training.trained_unit import demo_folder

    path = write_report([demo_folder()], out, sentences=sentence or SENTENCES)
    print(f"Report: {path} ({path.stat().st_size / 1e6:.1f} MB)")
    print("Open it in a browser; move the slider to see attention being learned.")
    print("Next: attnscope list, or attnscope run snell/fig3 --quick")
