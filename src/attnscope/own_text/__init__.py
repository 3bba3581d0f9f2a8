"""The user's own text: what a finished run says about a corpus that is not one of the papers'."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.own_text.about import About as About, CorpusNumbers as CorpusNumbers
    from attnscope.own_text.corpora import about_corpora as about_corpora, only_own as only_own
else:
    __all__, __getattr__, __dir__ = exports(__name__)
