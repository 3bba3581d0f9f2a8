"""Rewrite results of schema 1 as schema 2: ``python -m attnscope.runs.convert FOLDER …``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.runs.atomic import read_json
from attnscope.runs.result import read_result


def convert_folder(folder: Path) -> list[Path]:
    """Rewrite every result of schema 1 below a folder, and return the paths of these results."""
    done = []
    for path in sorted(folder.rglob("result.json")):
        content = read_json(path)
        if isinstance(content, dict) and content.get("schema") == 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                read_result(path).write(path.parent)
            done.append(path)
    return done


def main(folders: Iterable[str]) -> int:
    """Convert folders named on the command line."""
    try:
        for folder in folders:
            for path in convert_folder(Path(folder)):
                print(f"{path} is converted to schema 2.")
    except AttnscopeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
