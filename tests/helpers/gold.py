"""A corpus of two sentence pairs with gold links, as a folder."""

from __future__ import annotations

import json
from pathlib import Path


def write_gold(folder: Path, first: str = "de", second: str = "en") -> Path:
    """Write the corpus into a new folder, its languages under these names."""
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": [first, second]}))
    rows = [
        {"id": "0", first: "das Haus", second: "the house", "sure": [[0, 0]], "possible": [[1, 1]]},
        {"id": "1", first: "ja", second: "oh yes", "sure": [[0, 1]], "possible": []},
    ]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
