"""Formulas as MathML, made while the site is built: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def setup(app: Any) -> None:
    """Register the renderer; ``html_math_renderer = "mathml"`` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    identifiers = "".join(f'<span id="{each}"></span>' for each in node.get("ids", ()))
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="math">{identifiers}{formula}</div>\n')
    raise nodes.SkipNode
