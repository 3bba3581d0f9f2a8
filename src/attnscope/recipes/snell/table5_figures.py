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
    from attnscope.figures.charts import Axis, dots_with_intervals
    from attnscope.figures.palette import SCORES

    lines, colours = [], {}
    shown = {
        "A(alpha,beta_uf)": "uniform_probe",
        "A(beta_uf,beta_px)": "proxy",
        "A(delta,beta_uf)": "saliency",
        "A(alpha,beta)": "lexical_probe",
        "A(alpha,delta)": "attention",
    }
    for way in ("text", "code"):
        for name, score in shown.items():
            for row in _of(rows, name, way=way):
                label = f"{_pair(name)}, {way}"
                colours[label] = SCORES[score]
                lines.append({"label": label, **row.model_dump(include=_ENDS)})
    chance = _of(rows, "A_random")[0]
    lines.append({"label": "chance", **chance.model_dump(include=_ENDS)})
    axis = Axis("agreement (%)", domain=(0, 100))
    return dots_with_intervals(lines, axis, label="label", colours=colours, title=dataset)


_ENDS = {"value", "low", "high", "published"}


def _steps(curve: Sequence[Measurement]) -> Any:
    from attnscope.figures.charts import Axis

    last = max(int(row.axes["step"]) for row in curve)
    ticks = [tick for tick in (0, 10, 100, 1000, 10_000) if tick <= last]
    # Half of what happens happens in the first hundred steps.
    return Axis("training steps", scale="symlog", domain=(0, last), ticks=ticks, format=",d")


def _figure2(rows: Sequence[Measurement], performance: str) -> list[alt.LayerChart]:
    """Draw agreement with another seed and its performance, both marked at τ₀."""
    from attnscope.figures.charts import Axis, Guide, Panel, band
    from attnscope.figures.palette import ROLES, SCORES

    axes = {"agreement": "top5pct", "performance": performance}
    hat = _of(rows, "hat_agreement", **axes)
    reached = _of(rows, "hat_performance", **axes)
    xi, level = _of(rows, "xi(alpha,beta_uf)", **axes)[0], _of(rows, "A(alpha,beta_uf)")[0]
    x = _steps(hat)
    end = x.domain[1]
    agreement, gained = level.value or 0.0, xi.value or 0.0
    tau = xi.found["tau0"]
    across = Guide([(0, agreement), (end, agreement)], _pair("A(alpha,beta_uf)"), at="start")
    up: list[Guide] = []
    found = f"never exceeded: ξ is ξ* = {gained:.1f}"
    if not isinstance(tau, str):
        up = [Guide([(tau, 0), (tau, 100)])]
        found = f"τ0 = {tau}, ξ = {gained:.1f}"
    label = {"attention": "A(α, α̂(τ))", "performance": "performance"}

    def line(curve: Sequence[Measurement], name: str) -> list[dict[str, Any]]:
        return [
            {"step": row.axes["step"], "group": name, **row.model_dump(include=_ENDS)}
            for row in curve
        ]

    left = Panel(
        x,
        Axis("agreement (%)", domain=(0, 100)),
        {label["attention"]: SCORES["attention"]},
        title="Attention of another seed",
        labels="none",
        guides=[across, *up],
    )
    top = 100.0 if performance == "accuracy" else None
    high = max(row.high or row.value or 0.0 for row in reached)
    right = Panel(
        x,
        Axis(_PERFORMANCE[performance], domain=(0, top or 1.05 * max(high, 1.0))),
        {label["performance"]: ROLES["control"]},
        title=found,
        labels="none",
        guides=[*up, Guide([(0, gained), (end, gained)])],
    )
    return [
        band(line(hat, label["attention"]), left, x="step", group="group"),
        band(line(reached, label["performance"]), right, x="step", group="group"),
    ]


def _training(rows: Sequence[Measurement]) -> list[alt.LayerChart]:
    """Draw which agreement comes first, and how attention leaves the uniform."""
    from attnscope.figures.charts import Axis, Panel, curves
    from attnscope.figures.palette import SCORES

    groups = {
        "curve(alpha,beta)": ("β(τ)", SCORES["lexical_probe"]),
        "curve(alpha,beta_uf)": ("β uniform(τ)", SCORES["uniform_probe"]),
        "curve(alpha,alpha)": ("α(τ)", SCORES["attention"]),
    }
    lines = [
        {"step": row.axes["step"], "value": row.value, "group": label, "seed": 0}
        for name, (label, _) in groups.items()
        for row in _of(rows, name)
    ]
    entropy = [
        {"step": row.axes["step"], "value": row.value, "group": "entropy", "seed": 0}
        for row in _of(rows, "entropy(alpha)")
    ]
    x = _steps(_of(rows, "curve(alpha,beta)"))
    agreement = Panel(
        x,
        Axis("agreement with the final α (%)", domain=(0, 100)),
        {label: colour for label, colour in groups.values()},
        title="What the final attention agrees with",
    )
    spread = Panel(
        x,
        Axis("entropy of α / log L", domain=(0, 1)),
        {"entropy": SCORES["attention"]},
        title="How uniform attention still is",
        labels="none",
    )
    return [
        curves(lines, agreement, x="step", y="value", group="group", detail="seed"),
        curves(entropy, spread, x="step", y="value", group="group", detail="seed"),
    ]
