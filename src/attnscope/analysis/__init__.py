"""Numbers from scores and states: agreement, intervals, decomposition, fragility, …"""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.analysis.adversary import find_adversaries as find_adversaries
    from attnscope.analysis.agreement import (
        attention_entropy as attention_entropy,
        expected_random_agreement as expected_random_agreement,
        top_share_agreement as top_share_agreement,
    )
    from attnscope.analysis.alignment import (
        alignment_error as alignment_error,
        alignment_precision as alignment_precision,
        alignment_recall as alignment_recall,
        read_pharaoh as read_pharaoh,
        to_pharaoh as to_pharaoh,
    )
    from attnscope.analysis.alignment_terms import (
        AlignmentTerms as AlignmentTerms,
        QueriesAndKeys as QueriesAndKeys,
        compute_alignment_terms as compute_alignment_terms,
        temporal_alignment as temporal_alignment,
    )
    from attnscope.analysis.classification import classification_metrics as classification_metrics
    from attnscope.analysis.comparison import compare as compare, per_word as per_word
    from attnscope.analysis.decomposition import (
        Decomposition as Decomposition,
        decompose as decompose,
        decompose_views as decompose_views,
    )
    from attnscope.analysis.fragility import (
        Fragility as Fragility,
        compute_fragility as compute_fragility,
        fragility_intervals as fragility_intervals,
    )
    from attnscope.analysis.gold_alignments import (
        open_gold as open_gold,
        training_words as training_words,
    )
    from attnscope.analysis.ibm_alignment import ibm_links as ibm_links
    from attnscope.analysis.imitation import compare_with_base as compare_with_base
    from attnscope.analysis.information import (
        Information as Information,
        label_information as label_information,
        mutual_information as mutual_information,
    )
    from attnscope.analysis.intervals import (
        Interval as Interval,
        crossed_interval as crossed_interval,
        independent_difference_interval as independent_difference_interval,
        mean_interval as mean_interval,
        paired_difference_interval as paired_difference_interval,
        rate_interval as rate_interval,
        sentence_interval as sentence_interval,
    )
    from attnscope.analysis.kendall import kendall_tau_b as kendall_tau_b
    from attnscope.analysis.learning import learned as learned, steps_to as steps_to
    from attnscope.analysis.rationales import rationale_agreement as rationale_agreement
    from attnscope.analysis.separation import compute_separation as compute_separation
    from attnscope.analysis.state_measures import (
        cross_orthogonality as cross_orthogonality,
        delta_share as delta_share,
        orthogonality as orthogonality,
    )
    from attnscope.analysis.stored_agreement import (
        StoredAgreement as StoredAgreement,
        StoredScore as StoredScore,
    )
    from attnscope.analysis.term_shares import (
        TermShares as TermShares,
        compute_term_shares as compute_term_shares,
    )
    from attnscope.analysis.token_probabilities import (
        compute_token_probabilities as compute_token_probabilities,
        sentence_probabilities as sentence_probabilities,
    )
else:
    __all__, __getattr__, __dir__ = exports(__name__)
