"""Configuration objects: what a recipe chooses is a small frozen pydantic model with a ``kind``.

A *root* (task, model, intervention, score, objective term) is a subclass of `Spec` without a
``kind``; its variants declare ``kind: Literal["name"] = "name"``. A variant read from JSON finds
its class by its kind, so adding one is adding a class, and no shared code lists them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from attnscope.errors import UsageError, suggestion

S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """A frozen configuration that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=False)


class Spec(Settings):
    """A configuration object chosen by its ``kind`` among the variants of its root."""

    variants: ClassVar[dict[str, type[Spec]]]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if Spec in cls.__bases__:
            cls.variants = {}
        kind = cls.model_fields.get("kind")
        if kind is not None:
            cls.variants[kind.default] = cls

    @model_validator(mode="wrap")
    @classmethod
    def _find_variant(cls, value: Any, handler: Any) -> Any:
        if isinstance(value, Mapping) and "kind" not in cls.model_fields:
            kind = str(value.get("kind"))
            if kind not in cls.variants:
                raise ValueError(f"unknown kind {kind!r}; {suggestion(kind, cls.variants)}")
            return cls.variants[kind].model_validate(value)
        return handler(value)


def read_settings(model: type[S], values: Mapping[str, Any], where: str) -> S:
    """Make a configuration from key-value pairs; a mistake is one sentence with the valid names."""
    unknown = [key for key in values if key not in model.model_fields]
    if unknown:
        near = suggestion(unknown[0], model.model_fields)
        raise UsageError(f"{where} has no setting {unknown[0]!r}; {near}")
    with told_in_one_sentence(where):
        return model.model_validate(dict(values))


@contextmanager
def told_in_one_sentence(where: str) -> Iterator[None]:
    """Turn a refused value into a `UsageError`, also where settings contradict each other."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
        key = ".".join(str(part) for part in first["loc"])
        value = f"{key}={first['input']!r} is not valid: " if key else ""
        raise UsageError(f"{where}: {value}{reason}.") from error


def fingerprint(value: Any, length: int = 12) -> str:
    """Return a short hash of a JSON value, the same on every machine."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]
