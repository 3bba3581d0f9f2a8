"""`audit`: one model, one data set, one verdict.

Every question's numbers and scores are written as soon as they are measured, so that an audit that
was killed goes on with the next question, to the same bytes but for ``seconds``. The folder's name
has a hash of weights, texts, settings and versions: another model is another audit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attnscope.audits import (
    agrees,
    finds,
    gold,
    idle,
    replaceable,
    stable,
    temporal,
    uniform,
)
from attnscope.audits.checkpoints import find_checkpoints
from attnscope.audits.claims import QUESTIONS, decide, sentence
from attnscope.audits.prepare import (
    config_of,
    demand_own_pass,
    device_of,
    identity_of,
    notices_from,
    notices_of,
    subject_of,
    within,
)
from attnscope.audits.stored import save_scores
from attnscope.audits.subject import Subject
from attnscope.audits.texts import Texts, read_texts
from attnscope.audits.verdict import Audit
from attnscope.errors import UsageError, suggestion
from attnscope.models.adapter import adapt
from attnscope.running.duration import seconds_of
from attnscope.runs.atomic import read_json, write_json
from attnscope.runs.environment import environment
from attnscope.runs.result import Measurement, Record, Result
from attnscope.runs.spec import fingerprint
from attnscope.training.accelerator import accelerator

_VERSION = 5  # raised whenever a change of the code changes an audit's numbers
MEASURES: dict[str, Callable[[Subject], list[Record]]] = {
    "uniform": uniform.measure,
    "idle": idle.measure,
    "replaceable": replaceable.measure,
    "finds": finds.measure,
    "agrees": agrees.measure,
    "gold": gold.measure,
    "temporal": temporal.measure,
}


def audit(
    model: nn.Module | str | Path,
    data: str | Path | Texts,
    *,
    tokenizer: Any = None,
    split: str | None = None,
    examples: int = 200,
    seed: int = 0,
    budget: str | None = None,
    checkpoints: str | Path | None = None,
    against: Sequence[nn.Module | str | Path] = (),
    only: Sequence[str] = (),
    device: str = "auto",
    out: str | Path = "runs",
    trust_remote_code: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Audit:
    """Measure whether a model's attention can be trusted as an explanation.

    Parameters
    ----------
    model
        A module, an adapted model, the folder of a Hugging Face model, or a name on the hub.
    data
        A known corpus, a corpus folder, a Hugging Face `datasets` folder, a TSV or JSONL file; see
        `attnscope.audits.texts.read_texts`.
    tokenizer
        Where there is none next to the model.
    split
        Of a corpus, by default the one that is held out.
    examples
        How many texts, drawn evenly.
    seed
        Decides the sample, permutations and resamples.
    budget
        For example ``"5m"``: one batch is timed, and fewer examples are taken if needed.
    checkpoints
        A folder of ``checkpoint-N`` folders: how attention was learned.
    against
        Models that were trained alike, from other seeds: is attention the same?
    only
        The questions to ask, by default all of them.
    device
        ``auto``, ``cpu`` or ``cuda``.
    out
        The workspace; an audit that was stopped goes on there.
    trust_remote_code
        Whether code that comes with a model may be run.
    progress
        Called with the name of each question before it is measured.

    Returns
    -------
    Audit
        Printed, it is the verdict; ``table()`` has every number.
    """
    asked = _questions(only)
    place = device_of(device)
    watched = adapt(model, tokenizer, trust_remote_code=trust_remote_code)
    watched.module.to(place)
    texts = data if isinstance(data, Texts) else read_texts(data, split)
    subject = subject_of(watched, texts.sample(examples, seed), seed, place)
    if budget is not None:
        subject = within(subject, seconds_of(budget), Path(out) / "audits" / "budgets")
    rivals = [
        adapt(each, tokenizer, trust_remote_code=trust_remote_code).to(place) for each in against
    ]
    steps = {} if checkpoints is None else find_checkpoints(Path(checkpoints))
    config = config_of(subject, asked, model)
    identity = identity_of(subject, rivals, steps)
    _in_memory(subject, demand_own_pass)
    digest = fingerprint({**config, **identity, "version": _VERSION})
    folder = Path(out) / "audits" / f"{config['model']}-{texts.name}-{digest}"
    measured = Result(
        recipe="audit",
        scale="full",
        config=config,
        environment=environment(place.type, accelerator(place.type)),
        seconds=0.0,
        measurements=(),
    )
    records: list[Record] = [subject.mean("accuracy", subject.accuracy)]
    spent = 0.0
    for question in asked:
        if progress is not None:
            progress(question)
        measure = MEASURES.get(question)
        if measure is None:
            measure = partial(stable.measure, rivals=rivals, checkpoints=steps)
        answer = _once(folder, question, subject, measure, measured)
        records += [*answer.measurements, *answer.pictures]
        spent += answer.seconds
    notices = (*subject.notices, *notices_of(subject), *notices_from(records))
    told = measured.model_copy(update={"config": {**config, "notices": list(notices)}})
    result = _result(told, records, spent)
    result.write(folder)
    verdicts = decide(result)
    return Audit(result, verdicts, sentence(result, verdicts), notices, folder)


def _once(
    folder: Path,
    question: str,
    subject: Subject,
    measure: Callable[[Subject], list[Record]],
    empty: Result,
) -> Result:
    """Return a question's answer, from its file if it was measured before.

    Scores are written before the answer: where there is an answer, there are its scores.
    """
    path = folder / "questions" / f"{question}.json"
    if path.exists():
        return Result.model_validate(read_json(path))
    started = time.monotonic()
    records = _in_memory(subject, measure)
    save_scores(folder, subject)
    answer = _result(empty, records, time.monotonic() - started)
    write_json(path, answer.model_dump(mode="json", by_alias=True))
    return answer


def _in_memory(subject: Subject, measure: Callable[[Subject], list[Record]]) -> list[Record]:
    """Measure with ever smaller batches until they fit."""
    while True:
        try:
            return measure(subject)
        except torch.OutOfMemoryError:
            if subject.positions < 64:
                raise
        subject.halve()
        note = f"Memory ran out: batches were cut to {subject.positions} positions."
        subject.notices = (*subject.notices, note)


def _result(empty: Result, records: Sequence[Record], seconds: float) -> Result:
    numbers = tuple(each for each in records if isinstance(each, Measurement))
    pictures = tuple(each for each in records if not isinstance(each, Measurement))
    update = {"measurements": numbers, "pictures": pictures, "seconds": round(seconds, 1)}
    return empty.model_copy(update=update)


def _questions(only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in QUESTIONS:
            raise UsageError(f"There is no question {name!r}; {suggestion(name, QUESTIONS)}")
    return [name for name in QUESTIONS if not only or name in only]
