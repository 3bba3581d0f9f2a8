"""Text of others on a terminal: control characters are printed as escapes."""

from __future__ import annotations

import re
from typing import Any

# Everything that moves the cursor, starts an escape sequence, hides or turns text; not \\n and \\t.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Return text whose control characters and lone surrogates are escapes."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class CleanStream:
    """A stream that prints `clean` text in whatever encoding there is."""

    def __init__(self, stream: Any) -> None:
        if hasattr(stream, "reconfigure"):  # An ASCII terminal prints a question mark for β.
            stream.reconfigure(errors="replace")
        self.stream = stream

    def write(self, text: str) -> int:
        """Write clean text."""
        return int(self.stream.write(clean(text)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
