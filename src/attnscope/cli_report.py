"""The verb ``report``: one self-contained HTML file, or the same page served during a run.

It is `attnscope.write_report` in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli_options import Import
from attnscope.errors import UsageError

if TYPE_CHECKING:
    from attnscope.report.payload import Request


def report(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Workspaces (runs), or folders of single results or units."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("report.html"),
    examples: Annotated[
        str,
        typer.Option(
            help="Ids of stored examples to show, as in 3,17; or the first ones: first:8."
        ),
    ] = "",
    sentence: Annotated[
        list[str] | None,
        typer.Option(help="A sentence of your own, read by the trained models; may be repeated."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page on loopback and follow running units.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="With --serve: another interface, which others can reach.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --serve: 0 takes a free one.")] = 8000,
    imports: Import = None,
) -> None:
    """Turn finished or running experiments into one HTML page that needs no network."""
    from attnscope.report.page import request_of, write_report
    from attnscope.terminal import shown_progress

    chosen, count = read_examples(examples)
    given = folders or [Path("runs")]
    if serve:
        _serve(request_of(given, chosen, count, sentence or ()), host, port)
        return
    path = write_report(
        given,
        out,
        examples=chosen,
        count=count,
        sentences=sentence or (),
        progress=shown_progress(),
    )
    print(f"Report: {path} ({path.stat().st_size / 1e6:.1f} MB)")


def read_examples(text: str) -> tuple[list[int], int | None]:
    """Return the ids of examples, or how many of the first ones; neither: the recipe chooses."""
    first, sign, number = text.partition(":")
    try:
        if not text:
            return [], None
        if sign and first == "first" and int(number) > 0:
            return [], int(number)
        return [int(part) for part in text.split(",")], None
    except ValueError:
        pass
    raise UsageError(
        f"--examples {text!r}: give ids, as in 3,17, or a number of them, as in first:8."
    )


def _serve(request: Request, host: str, port: int) -> None:
    from attnscope.report.serve import serve as make_server

    server = make_server(request, host, port)
    # Read now, so that the page opens at once and errors are raised here.
    server.report.current()
    print(f"Report: {server.address} (Ctrl-C stops it)", flush=True)
    if host not in ("127.0.0.1", "localhost", "::1"):
        print(f"Everyone who can reach {host} can read it.", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nStopped.")
    finally:
        server.server_close()
