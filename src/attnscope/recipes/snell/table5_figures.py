"""Figure 2 for each corpus, the agreement tables as dots, and how agreement is learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

_SYMBOLS = {"alpha": "α", "beta_uf": "β uniform", "beta_px": "β proxy", "delta": "Δ", "beta": "β"}
_PERFORMANCE = {"accuracy": "accuracy (%)", "bleu": "BLEU"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw three figures for each corpus: its table, Figure 2, and its curves through training."""
    from attnscope.figures.charts import beside

    # The figures are about the validation part and the top 5 %; options can leave both out.
    measured = [row.dataset for row in result.select("A_random") if row.split == "val"]
    datasets = dict.fromkeys(measured)
    charts: dict[str, Any] = {}
    for name in datasets:
        rows = [row for row in result.numbers if row.dataset == name and row.split == "val"]
        charts[f"agreement-{name}"] = _agreements(rows, name)
        panels = [
            _figure2(rows, performance)
            for performance in ("accuracy", "bleu")
            if _of(rows, "hat_performance", performance=performance)
        ]
        if panels:
            charts[f"fig2-{name}"] = beside(
                *(part for pair in panels for part in pair), columns=2, title=name
            )
        charts[f"training-{name}"] = beside(*_training(rows), title=name)
    return charts


def _of(rows: Sequence[Measurement], name: str, **axes: Any) -> list[Measurement]:
    axes = {"way": "text"} | axes
    return [
        row
        for row in rows
        if row.name == name and all(row.axes.get(key) == value for key, value in axes.items())
    ]


def _pair(name: str) -> str:
    """Return 𝒜(u, v) in symbols."""
    inside = name[name.index("(") + 1 : -1]
    return f"A({', '.join(_SYMBOLS[part] for part in inside.split(','))})"


def _agreements(rows: Sequence[Measurement], dataset: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis
    from attnscope.figures.palette import NEUTRAL, SCORES
    from attnscope.recipes.kit.plots import dots

    shown = {
        "A(alpha,beta_uf)": SCORES["uniform_probe"],
        "A(beta_uf,beta_px)": SCORES["proxy"],
        "A(delta,beta_uf)": SCORES["saliency"],
        "A(alpha,beta)": SCORES["lexical_probe"],
        "A(alpha,delta)": SCORES["attention"],
    }
    lines: list[Measurement] = []
    for way in ("text", "code"):
        for name in shown:
            lines += _of(rows, name, way=way)
    lines += _of(rows, "A_random")[:1]
    return dots(
        lines,
        Axis("agreement (%)", domain=(0, 100)),
        label=lambda row: (
            f"{_pair(row.name)}, {row.axes['way']}" if row.name in shown else "chance"
        ),
        colour=lambda row: shown.get(row.name, NEUTRAL),
        title=dataset,
    )


def _steps(curve: Sequence[Measurement]) -> Any:
    from attnscope.figures.charts import Axis

    last = max(int(row.axes["step"]) for row in curve)
    ticks = [tick for tick in (0, 10, 100, 1000, 10_000) if tick <= last]
    # Half of what happens happens in the first hundred steps.
    return Axis("training steps", scale="symlog", domain=(0, last), ticks=ticks, format=",d")


def _figure2(rows: Sequence[Measurement], performance: str) -> list[alt.LayerChart]:
    """Draw agreement with another seed and its performance, both marked at τ₀."""
    from attnscope.figures.charts import Axis, Guide, Panel
    from attnscope.figures.palette import ROLES, SCORES
    from attnscope.recipes.kit.plots import band, span

    axes = {"agreement": "top5pct", "performance": performance}
    hat = _of(rows, "hat_agreement", **axes)
    reached = _of(rows, "hat_performance", **axes)
    xi, level = _of(rows, "xi(alpha,beta_uf)", **axes)[0], _of(rows, "A(alpha,beta_uf)")[0]
    x = _steps(hat)
    end = x.domain[1]
    tau = xi.found["tau0"]
    across = Guide([(0, level.number), (end, level.number)], _pair(level.name), at="start")
    up: list[Guide] = []
    title = f"never exceeded: ξ is ξ* = {xi.number:.1f}"
    if not isinstance(tau, str):
        up = [Guide([(tau, 0), (tau, 100)])]
        title = f"τ0 = {tau}, ξ = {xi.number:.1f}"
    left = Panel(
        x,
        Axis("agreement (%)", domain=(0, 100)),
        {"A(α, α̂(τ))": SCORES["attention"]},
        title="Attention of another seed",
        labels="none",
        guides=[across, *up],
    )
    top = 100.0 if performance == "accuracy" else 1.05 * max(span(reached, room=0)[1], 1.0)
    right = Panel(
        x,
        Axis(_PERFORMANCE[performance], domain=(0, top)),
        {"performance": ROLES["control"]},
        title=title,
        labels="none",
        guides=[*up, Guide([(0, xi.number), (end, xi.number)])],
    )
    return [
        band(hat, left, x="step", group=lambda row: "A(α, α̂(τ))"),
        band(reached, right, x="step", group=lambda row: "performance"),
    ]


def _training(rows: Sequence[Measurement]) -> list[alt.LayerChart]:
    """Draw which agreement comes first, and how attention leaves the uniform."""
    from attnscope.figures.charts import Axis, Panel
    from attnscope.figures.palette import SCORES
    from attnscope.recipes.kit.plots import curves

    groups = {
        "curve(alpha,beta)": ("β(τ)", SCORES["lexical_probe"]),
        "curve(alpha,beta_uf)": ("β uniform(τ)", SCORES["uniform_probe"]),
        "curve(alpha,alpha)": ("α(τ)", SCORES["attention"]),
    }
    x = _steps(_of(rows, "curve(alpha,beta)"))
    agreement = Panel(
        x,
        Axis("agreement with the final α (%)", domain=(0, 100)),
        dict(groups.values()),
        title="What the final attention agrees with",
    )
    spread = Panel(
        x,
        Axis("entropy of α / log L", domain=(0, 1)),
        {"entropy": SCORES["attention"]},
        title="How uniform attention still is",
        labels="none",
    )
    lines = [row for name in groups for row in _of(rows, name)]
    return [
        curves(lines, agreement, x="step", group=lambda row: groups[row.name][0]),
        curves(_of(rows, "entropy(alpha)"), spread, x="step", group=lambda row: "entropy"),
    ]
