"""Scores: a number for each output and input position, read off a model or a lexicon."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.scores.attention import Attention as Attention
    from attnscope.scores.leave_one_out import LeaveOneOut as LeaveOneOut
    from attnscope.scores.lexical_probe import LexicalProbe as LexicalProbe
    from attnscope.scores.lexicon import (
        Lexicon as Lexicon,
        proxy_lexicon as proxy_lexicon,
        proxy_odds as proxy_odds,
    )
    from attnscope.scores.logistic import logistic_lexicon as logistic_lexicon
    from attnscope.scores.optimal_attention import solve as solve
    from attnscope.scores.polarity import (
        WordTypeScores as WordTypeScores,
        mean_scores as mean_scores,
        scores_alone as scores_alone,
    )
    from attnscope.scores.rollout import Rollout as Rollout
    from attnscope.scores.saliency import Saliency as Saliency
    from attnscope.scores.score import (
        Score as Score,
        ScoreRule as ScoreRule,
        read_score as read_score,
        read_scores as read_scores,
    )
    from attnscope.scores.subwords import (
        merge_words as merge_words,
        word_groups as word_groups,
        word_groups_of_ids as word_groups_of_ids,
    )
    from attnscope.scores.value_norm import ValueNorm as ValueNorm
else:
    __all__, __getattr__, __dir__ = exports(__name__)
