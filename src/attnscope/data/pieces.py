"""SentencePiece: one subword vocabulary for both languages of a corpus (snell A.8).

Training takes seconds to minutes and gives the same model every time (one thread), so it is kept
in the user's cache under a hash of the text and the settings.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import sentencepiece

from attnscope.data.corpus_writer import cache_folder
from attnscope.data.tokens import BOS, EOS, PAD, UNKNOWN
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import DamagedFile, UsageError
from attnscope.runs.atomic import write_bytes
from attnscope.runs.files import read_file
from attnscope.runs.lock import locked
from attnscope.runs.spec import fingerprint


class Pieces:
    """A trained SentencePiece model: text to ids and back.

    Ids 0–3 are padding, start, end and unknown, as in the authors' code.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
        count = self._processor.get_piece_size()
        words = tuple(self._processor.id_to_piece(index) for index in range(count))
        self.words = Vocabulary((PAD, BOS, EOS, *words[3:]), UNKNOWN)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts, without boundaries."""
        return self._processor.encode(list(texts))

    def decode(self, ids: Sequence[int]) -> str:
        """Return ids as text; padding and boundaries leave no trace."""
        return self._processor.decode([index for index in ids if index > 2])


def trained_pieces(digest: str, texts: Iterable[str], size: int) -> Pieces:
    """Return the pieces of a corpus, trained or found in the cache.

    Parameters
    ----------
    digest
        The text's part of the cache's key.
    texts
        What to train on; not looked at if the model is in the cache.
    size
        The number of types. A corpus too small for it gets as many as it gives.
    """
    key = fingerprint({"text": digest, "size": size, "version": sentencepiece.__version__}, 24)
    path = cache_folder() / "pieces" / f"{key}.model"
    if not path.exists():
        with locked(path.with_suffix(".lock"), wait=True):
            if not path.exists():
                write_bytes(path, _train(texts, size))
    try:
        return _read(read_file(path))
    except (RuntimeError, OSError) as error:
        raise DamagedFile(f"{path} is not a SentencePiece model; remove it.") from error


@lru_cache(maxsize=4)
def _read(model: bytes) -> Pieces:
    return Pieces(model)


def _train(texts: Iterable[str], size: int) -> bytes:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise UsageError(
            f"No {size} pieces can be learned from this text; give another number with pieces=."
        ) from error
    return model.getvalue()
