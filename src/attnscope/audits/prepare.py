"""From a model and texts to the subject of an audit, within a budget, with notices."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from attnscope.audits.checkpoints import with_weights
from attnscope.audits.claims import LEAST
from attnscope.audits.idle import ELSEWHERE
from attnscope.audits.replaceable import SEARCHED, STEPS
from attnscope.audits.subject import POSITIONS, Subject
from attnscope.audits.texts import Texts
from attnscope.data.tokenised import TokenisedBatch
from attnscope.errors import UsageError, WorkspaceError
from attnscope.models.adapted import Adapted
from attnscope.running.run import choose_device
from attnscope.runs.atomic import read_json, write_json
from attnscope.runs.result import Record
from attnscope.runs.spec import fingerprint

_CHANCE_MARGIN = 0.05


def device_of(name: str) -> torch.device:
    """Return a device by its name; ``auto`` takes a GPU where there is one."""
    if name in ("auto", "cpu", "cuda"):
        return torch.device(choose_device(name))
    try:
        return torch.device(name)  # one that PyTorch alone knows
    except RuntimeError as error:
        raise UsageError(f"No device {name!r}; valid: auto, cpu, cuda.") from error


def subject_of(model: Adapted, texts: Texts, seed: int, place: torch.device) -> Subject:
    """Return a model with its texts, cut by its tokeniser; says what was left out."""
    task = model.facts.task
    wanted = None if task == "next word" else texts.wanted
    if task == "translation" and texts.targets is None:
        raise UsageError(f"{texts.name} has no translations, and the model is a translator.")
    if task == "labels" and texts.labels is None:
        raise UsageError(
            f"{texts.name} has no labels (whole numbers from 0), and the model says labels."
        )
    read = model.read(texts.texts, wanted, texts.ids)
    kept = set(read.batch.ids.tolist())
    notices = [f"{_texts(n)} left out: {why}." for why, n in read.left_out.items()]
    left = texts.chosen([n for n, each in enumerate(texts.ids) if each in kept])
    batch = read.batch.to(place)
    assert isinstance(batch, TokenisedBatch)
    positions = POSITIONS.get(place.type, POSITIONS["cuda"])
    return Subject(model, left, batch, seed, positions=positions, notices=tuple(notices))


def _texts(count: int) -> str:
    return "1 text was" if count == 1 else f"{count} texts were"


def within(subject: Subject, seconds: float, folder: Path) -> Subject:
    """Return the subject with as many examples as a budget allows.

    How many is kept in the folder: an audit that was stopped goes on with as many.
    """
    given = {**identity_of(subject, (), {}), "seed": subject.seed, "seconds": seconds}
    file = folder / f"{fingerprint(given)}.json"
    count = _kept_count(file)
    if count is None:
        count = _affordable(subject, seconds)
        write_json(file, {"examples": count})
    if count >= len(subject.batch):
        return subject
    rows = torch.linspace(0, len(subject.batch) - 1, count).round().long()
    note = f"The budget allows {count} of {len(subject.batch)} examples."
    fewer = subject.batch.rows(rows).trimmed()
    assert isinstance(fewer, TokenisedBatch)
    chosen = subject.texts.chosen(rows.tolist())
    notices = (*subject.notices, note)
    return replace(subject, texts=chosen, batch=fewer, notices=notices)


def _kept_count(file: Path) -> int | None:
    """Return the count in a file, or None where there is none or it is damaged."""
    try:
        count = read_json(file)["examples"]
    except (WorkspaceError, OSError, LookupError, TypeError):
        return None
    return count if isinstance(count, int) and count >= LEAST else None


def _affordable(subject: Subject, seconds: float) -> int:
    """Time one part, and return how many examples take so long."""
    _, part = subject.parts[0]
    with torch.no_grad():
        subject.model.outputs(part)  # the first pass of a process is slower than all others
        started = time.monotonic()
        subject.model.outputs(part)
    length = float(subject.batch.input_lengths.double().mean())
    # By positions: the first part has the texts of one length, which is not the mean one.
    each = (time.monotonic() - started) / part.inputs.numel() * length
    # Runs per example: replaced attention from the middle site on, words taken out, probe from the
    # last site on, leave-one-out, rankings, searches of some.
    sites = len(subject.model.places)
    searched = SEARCHED[subject.labels] / max(len(subject.batch), SEARCHED[subject.labels])
    again = sites / 2 * (ELSEWHERE + 1) + 2 * subject.draws + 1
    runs = again + (1 + 2 / sites) * length + 35 + 6 / sites * STEPS * searched
    return max(LEAST, min(len(subject.batch), int(seconds / (each * runs))))


def config_of(subject: Subject, asked: Sequence[str], model: Any) -> dict[str, Any]:
    """Return the settings of an audit, as its result keeps them."""
    named = Path(model).name if isinstance(model, str | Path) else ""
    kind = type(subject.model.module).__name__
    return {
        "model": re.sub(r"[^A-Za-z0-9._-]+", "-", named or kind),
        "class": kind,
        "data": subject.texts.name,
        "split": subject.texts.split,
        "examples": len(subject.batch),
        "seed": subject.seed,
        "site": subject.site,
        "sites": subject.model.places.names,
        "questions": list(asked),
        "off": subject.model.off,
    }


def demand_own_pass(subject: Subject) -> list[Record]:
    """Raise where the pass under watch is not the model's own on these texts."""
    for _, part in subject.parts:
        subject.model.demand_own_pass(part)
    return []


def identity_of(
    subject: Subject, rivals: Sequence[Adapted], checkpoints: Mapping[int, Path]
) -> dict[str, Any]:
    """Return what makes an audit another one: weights, texts, versions."""
    learned = {
        str(step): _weights_digest(with_weights(subject.model, path).module)
        for step, path in checkpoints.items()
    }
    return {
        **({"checkpoints": learned} if learned else {}),
        "weights": [_weights_digest(each.module) for each in (subject.model, *rivals)],
        "texts": subject.texts.digest,
        "ids": hashlib.sha256(subject.batch.inputs.cpu().numpy().tobytes()).hexdigest(),
        "torch": torch.__version__,
    }


def _weights_digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(name.encode())
        digest.update(
            value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        )
    return digest.hexdigest()


def notices_from(records: Sequence[Record]) -> list[str]:
    """Return what the reader of an audit should know about its numbers."""
    shares = [each for each in records if each.name == "found_share"]
    if not shares or any(getattr(each, "value", None) is not None for each in shares):
        return []
    return [
        "Leave-one-out finds no more than chance does: there is nothing that scores could find."
    ]


def notices_of(subject: Subject) -> list[str]:
    """Return what the reader of an audit should know about the model."""
    model, notices = subject.model, []
    left_out = model.places.left_out
    if left_out:
        notices.append(
            f"{len(left_out)} of {len(left_out) + len(model.places)} attentions cannot be seen "
            f"({left_out[0].module}: {left_out[0].reason}): answers are about the others."
        )
    if model.padding_matters:
        notices.append("Padding changes the output: only texts of equal length were run together.")
    if subject.labels:
        labels = subject.batch.targets[:, 0].cpu().numpy()
        chance = float(np.bincount(labels).max() / len(labels))
        accuracy = float(subject.accuracy.mean())
        if accuracy < chance + _CHANCE_MARGIN:
            notices.append(
                f"Accuracy is {accuracy:.2f}, about what the most frequent label gives "
                f"({chance:.2f}): a model that has not learned explains nothing."
            )
    place = model.places.named(subject.site)
    first = subject.batch.input_words[:, 0] >= 0
    if place.reads == "first" and place.queries == "source" and bool(first.all()):
        notices.append("The output reads the first position, and the tokeniser puts a word there.")
    return notices
