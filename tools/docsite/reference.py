"""Reference pages read from tables of the package: kinds, scores, corpora, claims, records."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticUndefined

from attnscope.claims.catalogue import catalogue
from attnscope.claims.papers import PAPERS
from attnscope.claims.symbols import SCORES, in_letters
from attnscope.data import hub, pinned
from attnscope.data.known import definitions
from attnscope.data.source import Source
from attnscope.models.attentions import AttentionSpec
from attnscope.models.base import ModelSpec
from attnscope.models.encoders import EncoderSpec
from attnscope.models.intervention import Intervention
from attnscope.runs.result import Curve, Matrix, Measurement, Plane, Result
from attnscope.runs.spec import Spec
from attnscope.scores.score import ScoreRule
from attnscope.training.metric import Metric
from attnscope.training.objective import Term
from attnscope.training.optimizer import OptimizerSpec
from attnscope.training.registry import import_kinds
from docsite.markdown import Pages, code, first_sentence, prose, table, type_name

ROOTS: dict[str, tuple[type[Spec], str]] = {
    "Sources": (Source, "What a unit learns from: a task that is generated, or a corpus."),
    "Models": (ModelSpec, "Networks that can be traced."),
    "Encoders": (EncoderSpec, "Of classifiers."),
    "Attentions": (AttentionSpec, "Of classifiers."),
    "Interventions": (Intervention, "Attention at a site, while training or measuring."),
    "Scores": (ScoreRule, "A number for each output and input position."),
    "Loss terms": (Term, "The loss is their weighted sum."),
    "Metrics": (Metric, "Logged at each evaluation step, next to loss and accuracy."),
    "Optimisers": (OptimizerSpec, "With their schedules."),
}


def pages() -> Pages:
    """Return the pages."""
    import_kinds()
    return {
        "kinds.md": _kinds(),
        "scores.md": _scores(),
        "corpora.md": _corpora(),
        "claims.md": _claims(),
        "records.md": _records(),
    }


def _kinds() -> str:
    sections = []
    for title, (root, says) in ROOTS.items():
        rows = [
            [code(kind), first_sentence(cls.__doc__), _fields(cls), code(cls.__name__)]
            for kind, cls in sorted(root.variants.items())
            if cls.__module__.startswith("attnscope.")
        ]
        head = ["kind", "what it is", "settings", "class"]
        sections.append(f"## {title}\n\n{says}\n\n{table(head, rows)}")
    return (
        "# Kinds\n\nWhatever a configuration chooses is a small frozen object with a `kind`. "
        "Classes "
        "of your own are added by [defining them](../howto/extend.md).\n\n" + "\n".join(sections)
    )


def _fields(cls: type[Spec]) -> str:
    shown = []
    for name, field in cls.model_fields.items():
        if name == "kind":
            continue
        known = field.default is not PydanticUndefined and not isinstance(field.default, Spec)
        simple = known and not isinstance(field.default, tuple | dict)
        shown.append(code(f"{name}={field.default}" if simple else name))
    return ", ".join(shown)


def _scores() -> str:
    kinds = {_name(cls): cls for cls in ScoreRule.variants.values()}
    rows = []
    for name, (label, says) in SCORES.items():
        cls = kinds.get(name)
        made = code(f"{cls.__name__}()") if cls else "from a lexicon or a recipe"
        rows.append([code(name), label, says, made])
    return (
        "# Scores\n\nEvery score has the shape `Float[batch, out, inp]`; any two compare "
        "(`attnscope.compare`). The name is what units store and reports show. Values are as they "
        "come: attention is a probability, the lexical probe by default a log-odds, saliency has a "
        f"sign.\n\n{table(['name', 'symbol', 'meaning', 'class'], rows)}"
    )


def _name(cls: type[Any]) -> str:
    try:
        return str(cls().name)
    except Exception:  # a rule that has settings without defaults
        return ""


def _corpora() -> str:
    own = [
        ["`grammar-sentiment`", "classification", "Reviews made by a grammar", "shipped", ""],
        ["`grammar-translation`", "translation", "German to English, by a grammar", "shipped", ""],
    ]
    rows = [
        [code(each.name), each.task, each.title, _place(each.folder), each.deviation]
        for each in definitions().values()
    ]
    head = ["name", "task", "title", "comes from", "how it differs from the paper's"]
    return (
        "# Corpora\n\n`corpus=` takes a name below or the path of a folder "
        "([your own text](../start/your-text.md)). Two small corpora are made by the package "
        "itself. "
        "The others are looked for in the folder that `--data` or `ATTNSCOPE_DATA` names, then "
        "in the "
        "cache. *pinned*: `attnscope data fetch NAME` gets files pinned by SHA-256; *hub*: the "
        "same "
        "through the Hugging Face hub (extra `hub`); *by hand*: put the folder there yourself.\n\n"
        f"{table(head, own + rows)}"
    )


def _place(folder: str) -> str:
    if pinned.holds(folder):
        return "pinned"
    return "hub" if folder in hub.CORPORA else "by hand"


def _claims() -> str:
    sections = []
    for paper, title in PAPERS.items():
        rows = [
            [
                code(each.id),
                prose(in_letters(each.statement)),
                each.where,
                prose(in_letters(each.decided_by)),
                " ".join(f"[{name}](recipes/{paper}.md#{_anchor(name)})" for name in each.recipes),
            ]
            for each in catalogue()
            if each.paper == paper
        ]
        head = ["claim", "statement", "where", "decided by", "recipe"]
        sections.append(f"## {paper}: {title}\n\n{table(head, rows)}")
    return (
        "# Claims\n\nEvery claim of the four papers that is decided here; the rules are "
        "explained in "
        "[Intervals and verdicts](../ideas/verdicts.md), the verdicts are on the papers' pages.\n\n"
        + "\n".join(sections)
    )


def _anchor(name: str) -> str:
    return name.replace("/", "")


def _records() -> str:
    sections = []
    for model in (Result, Measurement, Matrix, Plane, Curve):
        rows = [
            [code(field.alias or name), code(type_name(field)), prose(field.description or "")]
            for name, field in model.model_fields.items()
        ]
        head = ["field", "type", "remark"]
        about = first_sentence(model.__doc__)
        sections.append(f"## {model.__name__}\n\n{about}\n\n{table(head, rows)}")
    return "# Records of a result\n\nThe fields of `result.json`.\n\n" + "\n".join(sections)
