"""Closed forms: count tables, IBM Model 1, derivatives at initialisation, gradient flow."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.theory.counts import (
        count_table as count_table,
        expected_mixture_table as expected_mixture_table,
        expected_permutation_table as expected_permutation_table,
        expected_sampled_table as expected_sampled_table,
    )
    from attnscope.theory.divergence import (
        jensen_shannon as jensen_shannon,
        total_variation as total_variation,
    )
    from attnscope.theory.gradient_flow.classifier import classifier_flow as classifier_flow
    from attnscope.theory.gradient_flow.pulls import (
        Pulls as Pulls,
        corpus_pulls as corpus_pulls,
        traced_pulls as traced_pulls,
    )
    from attnscope.theory.gradient_flow.terms import (
        Parameters as Parameters,
        Terms as Terms,
        embedding_rate as embedding_rate,
        flow_terms as flow_terms,
        similarity_rate as similarity_rate,
    )
    from attnscope.theory.ibm1 import IbmModel1 as IbmModel1, em_step as em_step
    from attnscope.theory.initial_derivative import (
        PaddedPairs as PaddedPairs,
        logit_velocity as logit_velocity,
        predicted_logit_velocity as predicted_logit_velocity,
        predicted_probability_velocity as predicted_probability_velocity,
        probability_velocity as probability_velocity,
    )
    from attnscope.theory.optimal_attention import OptimalAttention as OptimalAttention
else:
    __all__, __getattr__, __dir__ = exports(__name__)
