"""Configuration objects: small frozen pydantic models, chosen by their ``kind``.

A *root* (task, model, intervention, score, loss term) is a subclass of `Spec` without a ``kind``;
its variants declare ``kind: Literal["name"] = "name"``. A variant read from JSON finds its class by
its kind, so adding one is defining a class, in the package or in a module of the user's, and no
shared code lists them.
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
    """A frozen configuration that rejects unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=False, allow_inf_nan=False
    )


class Spec(Settings):
    """A configuration object chosen by its ``kind`` among the variants of its root."""

    variants: ClassVar[dict[str, type[Spec]]]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if Spec in cls.__bases__:
            cls.variants = {}
        kind = cls.model_fields.get("kind")
        if kind is not None:
            _check_free(kind.default, cls)
            cls.variants[kind.default] = cls

    @model_validator(mode="wrap")
    @classmethod
    def _find_variant(cls, value: Any, handler: Any) -> Any:
        if isinstance(value, Mapping) and "kind" not in cls.model_fields:
            kind = str(value.get("kind"))
            if kind not in cls.variants:
                raise ValueError(
                    f"unknown kind {kind!r}; if a module of yours defines it, import that module "
                    "first (--import MODULE on the command line), otherwise "
                    f"{suggestion(kind, cls.variants)}"
                )
            return cls.variants[kind].model_validate(value)
        return handler(value)


def _check_free(kind: str, cls: type[Spec]) -> None:
    """Refuse a kind that another class has: stored configurations would change their meaning."""
    taken = cls.variants.get(kind)
    # Running a notebook's cell again, or a script as a module, defines the same class again.
    if taken is not None and taken.__qualname__ != cls.__qualname__:
        raise UsageError(
            f"{cls.__qualname__} needs a kind of its own: {kind!r} is that of "
            f"{taken.__module__}.{taken.__qualname__}."
        )


def read_settings(model: type[S], values: Mapping[str, Any], where: str) -> S:
    """Return a configuration made from key-value pairs, or raise a `UsageError` of one sentence."""
    unknown = [key for key in values if key not in model.model_fields]
    if unknown:
        near = suggestion(unknown[0], model.model_fields)
        raise UsageError(f"{where} has no setting {unknown[0]!r}; {near}")
    with usage_errors(where):
        return model.model_validate(dict(values))


@contextmanager
def usage_errors(where: str) -> Iterator[None]:
    """Turn pydantic's errors into a `UsageError` of one sentence, about the first of them."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{where}: {_refused(key, first['input'])}{reason}.") from error


def _refused(key: str, value: Any) -> str:
    if not key:
        return ""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return f"{key}: " if isinstance(value, Mapping) else f"{key}={shown} is not valid: "


def fingerprint(value: Any, length: int = 12) -> str:
    """Return a short hash of a JSON value that is the same on every machine."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]
