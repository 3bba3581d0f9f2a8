"""The report inside a notebook: the same page in a frame of its own, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from attnscope.report.page import html, request_of
from attnscope.report.payload import payload
from attnscope.running.run import Run
from attnscope.runs.atomic import write_bytes
from attnscope.training.trained_unit import TrainedUnit


@dataclass(frozen=True)
class View:
    """A page that a notebook shows by itself; ``save`` writes it to a file."""

    html: str
    height: int = 820

    def _repr_html_(self) -> str:
        # Scripts run in an origin of their own: they reach neither the notebook nor its cookies.
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(self.html)}" '
            f'width="100%" height="{self.height}" title="attnscope report"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write the page."""
        write_bytes(Path(path), self.html.encode())
        return Path(path)


def view(
    what: str | Path | Run | TrainedUnit | Sequence[str | Path],
    *,
    examples: Sequence[int] = (),
    count: int | None = None,
    sentences: Sequence[str] = (),
    height: int = 820,
) -> View:
    """Show runs in a notebook.

    Parameters
    ----------
    what
        A workspace, the folder of a result or of a unit, several of these; or what
        `attnscope.run` or `attnscope.load` returned.
    examples, count, sentences
        As in `attnscope.write_report`.
    height
        Of the frame, in pixels.
    """
    if isinstance(what, Run):
        what = what.folder
    elif isinstance(what, TrainedUnit):
        what = what.folder.path
    return View(html(payload(request_of(what, examples, count, sentences))), height)
