"""`adapt`: a module, a Hugging Face folder or a hub's name, as a model that can be measured.

Weights are read as safetensors or with ``weights_only``; a class that a folder names is looked up
among those of transformers and never imported from the folder, unless ``trust_remote_code``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.tokenised import Task, Tokeniser, tokenise
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.adapted import Adapted, Call, Facts

# Unequal, and no multiple of the number of examples: so that axes can be told apart.
_LENGTHS, _TARGETS = (7, 6, 5), (5, 4, 3)


def adapt(
    model: nn.Module | str | Path,
    tokenizer: Any = None,
    call: Call | None = None,
    example: Batch | Sequence[str] | None = None,
    *,
    trust_remote_code: bool = False,
) -> Adapted:
    """Return a model whose attention can be measured and replaced.

    Parameters
    ----------
    model
        Any module, the folder of a Hugging Face model, or a name on the hub (extra ``hf``).
    tokenizer
        A Hugging Face tokeniser or any function from a text to ids; found next to a folder.
    call
        ``call(module, batch)`` returns logits ``[batch, labels]`` or ``[batch, out, types]``. By
        default Hugging Face's arguments for its models, and ``module(batch.inputs)`` for others.
    example
        A batch, or texts, for the first pass: at least two of unequal lengths. By default made up.
    trust_remote_code
        Whether code that comes with a folder may be run. Read it first.

    Returns
    -------
    Adapted
        With ``places``, ``batch(texts, labels)`` and ``trace(batch, attention)``.
    """
    if isinstance(model, Adapted):
        return model
    if isinstance(model, str | Path):
        found = _pretrained(model, trust_remote_code)
        tokenizer = _tokenizer(model, trust_remote_code) if tokenizer is None else tokenizer
        return adapt(found, tokenizer, call, example)
    if not isinstance(model, nn.Module):
        raise UsageError(f"adapt takes a module, a folder or a name, not {type(model).__name__}.")
    if isinstance(model, torch.jit.ScriptModule):
        raise MissingCapability(
            "A scripted model cannot be watched: give the module it was made of."
        )
    module: nn.Module = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    cut = None if tokenizer is None else Tokeniser(tokenizer)
    hub = _is_hub(module)
    if call is None:
        call = _hub_call(module) if hub else _plain_call
    facts = _facts(module) if hub else Facts()
    batch = _example(module, cut, call, facts, example)
    facts = replace(facts, task=_task(batch))
    return Adapted(module, call, batch, cut, facts)


def _plain_call(module: nn.Module, batch: Batch) -> Tensor:
    return module(batch.inputs)


def _hub_call(module: nn.Module) -> Call:
    accepted = inspect.signature(module.forward).parameters
    if "input_ids" not in accepted:
        raise UsageError(
            f"{type(module).__name__} does not read ids: give adapt a call(module, batch) that "
            "runs it, for example on images[batch.ids]."
        )
    writes = "decoder_input_ids" in accepted
    fixed = {name: value for name, value in (("use_cache", False), ("return_dict", True))}
    fixed = {name: value for name, value in fixed.items() if name in accepted}

    def call(module: nn.Module, batch: Batch) -> Tensor:
        given: dict[str, Any] = {"input_ids": batch.inputs}
        given["attention_mask"] = batch.input_mask.to(batch.inputs.dtype)
        if writes and batch.targets.shape[1] > 1:
            given["decoder_input_ids"] = batch.decoder_inputs
        output = module(**given, **fixed)
        if getattr(output, "logits", None) is None:
            raise MissingCapability(
                f"{type(module).__name__} has no head: load it as …ForSequenceClassification, "
                "…ForCausalLM or …ForConditionalGeneration."
            )
        return output.logits

    return call


def _facts(module: Any) -> Facts:
    config = module.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    longest = getattr(text, "max_position_embeddings", None)
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") and longest:
        longest -= 2  # positions start after the padding's
    if not isinstance(longest, int) or longest <= 0:
        longest = None
    start = getattr(config, "decoder_start_token_id", None)
    return Facts(longest=longest, start=start if isinstance(start, int) else 0)


def _task(batch: Batch) -> Task:
    if batch.targets.shape[1] == 1:
        return "labels"
    return "next word" if batch.inputs.equal(batch.decoder_inputs) else "translation"


def _example(
    module: nn.Module, cut: Tokeniser | None, call: Call, facts: Facts, given: Any
) -> Batch:
    if isinstance(given, Batch):
        return given
    if given is not None:
        if cut is None:
            raise UsageError("Texts as an example need a tokeniser.")
        examples = [tokenise(cut, task, list(given)).batch for task in _TASKS]
        return _first_that_runs(module, call, examples)
    return _first_that_runs(module, call, _made_up(module, facts, cut))


_TASKS: tuple[Task, ...] = ("labels", "next word")


def _made_up(module: Any, facts: Facts, cut: Tokeniser | None = None) -> list[Batch]:
    """Return made-up examples of a label, of next words, and of a translation."""
    config = getattr(module, "config", None)
    types = _types(module)
    stream = torch.Generator().manual_seed(0)
    end = getattr(config, "eos_token_id", None)
    end = end if isinstance(end, int) and end < types else None
    pad = getattr(config, "pad_token_id", None)
    if not isinstance(pad, int):
        pad = 0 if cut is None else cut.pad
    special = {pad, *(getattr(config, name, None) for name in ("bos_token_id", "eos_token_id"))}
    usable = [index for index in range(types) if index not in special]

    def drawn(length: int) -> list[int]:
        ids = [usable[i] for i in torch.randint(len(usable), (length,), generator=stream).tolist()]
        return [*ids[:-1], end] if end is not None else ids

    rows = [drawn(length) for length in _LENGTHS]
    outs = [drawn(length) for length in _TARGETS]
    kinds = [
        [Example(n, row, [0], [0]) for n, row in enumerate(rows)],
        [Example(n, row, row, [*row[1:], row[0]]) for n, row in enumerate(rows)],
        [
            Example(n, row, [facts.start, *out[:-1]], out)
            for n, (row, out) in enumerate(zip(rows, outs, strict=True))
        ],
    ]
    if getattr(config, "is_encoder_decoder", False):
        kinds = [kinds[2], kinds[0]]
    return [collate(examples, pad) for examples in kinds]


def _types(module: Any) -> int:
    """Return how many input types there are, from the configuration or the first embedding."""
    config = getattr(module, "config", None)
    count = getattr(config, "vocab_size", None) or getattr(config, "src_vocab_size", None)
    if isinstance(count, int):
        return count
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            return part.num_embeddings
    raise UsageError(
        f"{type(module).__name__} has no embedding of ids: give adapt an example batch, and a "
        "call(module, batch) that runs the model on it."
    )


def _first_that_runs(module: nn.Module, call: Call, examples: Sequence[Batch]) -> Batch:
    """Return the example whose targets have the shape of the model's output."""
    parameter = next(module.parameters(), None)
    device = "cpu" if parameter is None else parameter.device
    was = module.training
    shapes = []
    module.eval()
    try:
        for example in examples:
            with torch.no_grad(), _one_sentence(module):
                logits = call(module, example.to(device))
            shape = logits.shape[:2] if logits.ndim == 3 else (len(logits), 1)
            if tuple(shape) == tuple(example.targets.shape):
                return example
            shapes.append(list(logits.shape))
    finally:
        module.train(was)
    raise UsageError(
        f"The model's output has the shape {shapes[0]}: neither labels [batch, labels] nor words "
        "[batch, out, types]; give adapt a call(module, batch) and an example batch."
    )


@contextmanager
def _one_sentence(module: nn.Module) -> Iterator[None]:
    """Say in one sentence why a model of transformers does not run."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        if isinstance(error, UsageError | torch.OutOfMemoryError) or not _is_hub(module):
            raise  # a module of one's own: the place of its error is what its author needs
        raise UsageError(
            f"{type(module).__name__} does not run on an example: {_first_line(error)}"
        ) from error


def _is_hub(module: nn.Module) -> bool:
    return hasattr(module, "config") and hasattr(module.config, "model_type")


def _pretrained(name: str | Path, trust: bool) -> nn.Module:
    transformers = _transformers()
    folder = Path(name)
    if not folder.is_dir() and str(name).count("/") != 1:
        raise UsageError(f"{name} is neither a folder nor a name on the hub (org/name).")
    if folder.is_dir() and not (folder / "config.json").exists():
        raise UsageError(f"{name} is not a Hugging Face model: it has no config.json.")
    try:
        told, _ = transformers.PretrainedConfig.get_config_dict(name)
        if told.get("auto_map") and not trust:
            raise UsageError(
                f"{name} comes with code of its own: read it, then pass trust_remote_code."
            )
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=trust)
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {_first_line(error)}") from error
    kind = _class_of(transformers, config)
    if kind is None:
        raise UsageError(f"{name}: transformers has no {config.architectures or 'architecture'}.")
    try:
        # From the hub a bar follows the download; a folder is read in a moment.
        with _without_bars(transformers) if folder.is_dir() else nullcontext():
            model, loaded = kind.from_pretrained(
                name, trust_remote_code=trust, output_loading_info=True
            )
    except UnpicklingError as error:
        raise UsageError(f"{name} has pickled objects besides weights: not loaded.") from error
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UsageError(f"{name} has no weights that fit: {_first_line(error)}") from error
    if loaded["missing_keys"]:
        raise UsageError(
            f"{name} lacks weights of {type(model).__name__}, which would be random: "
            f"{min(loaded['missing_keys'])}."
        )
    return model


def _class_of(transformers: Any, config: Any) -> Any:
    """Return the class of a configuration: of transformers, or from trusted code that it names."""
    own = getattr(config, "auto_map", None) or {}
    for name in config.architectures or ():
        found = getattr(transformers, name, None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
        for auto, reference in own.items():
            if str(reference).rpartition(".")[2] == name:
                return getattr(transformers, auto, None)
    return None


@contextmanager
def _without_bars(transformers: Any) -> Iterator[None]:
    bars = transformers.utils.logging
    if not bars.is_progress_bar_enabled():
        yield
        return
    bars.disable_progress_bar()
    try:
        yield
    finally:
        bars.enable_progress_bar()


def _tokenizer(name: str | Path, trust: bool) -> Any:
    transformers, folder = _transformers(), Path(name)
    try:
        cut = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=trust)
    except Exception as error:  # tokenizers raises nothing narrower
        if folder.is_dir() and not any(folder.glob("tokenizer*")):
            return None
        raise UsageError(f"The tokeniser of {name} cannot be read: {_first_line(error)}") from error
    # From a folder without a vocabulary transformers makes a tokeniser that knows five words.
    files = list(cut.vocab_files_names.values())
    if folder.is_dir() and files and not any((folder / file).exists() for file in files):
        return None
    return cut


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UsageError("This needs transformers: pip install 'attnscope[hf]'.") from error
    return transformers


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
