"""Networks with attention, their traces, interventions and decoding."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.models.adapted import Adapted as Adapted
    from attnscope.models.adapter import adapt as adapt
    from attnscope.models.architectures import AED as AED, AO as AO, VED as VED
    from attnscope.models.attentions import (
        Additive as Additive,
        AttentionSpec as AttentionSpec,
        DotProduct as DotProduct,
    )
    from attnscope.models.base import ModelSpec as ModelSpec, parameter_count as parameter_count
    from attnscope.models.classifier import (
        Classifier as Classifier,
        ClassifierSpec as ClassifierSpec,
    )
    from attnscope.models.contract import (
        ContractReport as ContractReport,
        check_model as check_model,
    )
    from attnscope.models.decoding import (
        beam_search as beam_search,
        greedy as greedy,
        respond as respond,
    )
    from attnscope.models.encoder_decoder import (
        EncoderDecoder as EncoderDecoder,
        EncoderDecoderSpec as EncoderDecoderSpec,
    )
    from attnscope.models.encoders import (
        EncoderSpec as EncoderSpec,
        Recurrent as Recurrent,
        WordsEncoder as WordsEncoder,
    )
    from attnscope.models.intervention import (
        Diagonal as Diagonal,
        Frozen as Frozen,
        Given as Given,
        Intervention as Intervention,
        Learned as Learned,
        OneHot as OneHot,
        Only as Only,
        Permuted as Permuted,
        Uniform as Uniform,
        Without as Without,
    )
    from attnscope.models.proxy import Proxy as Proxy, ProxySpec as ProxySpec
    from attnscope.models.seq2seq import Seq2Seq as Seq2Seq, Seq2SeqSpec as Seq2SeqSpec
    from attnscope.models.trace import (
        AttentionModel as AttentionModel,
        Site as Site,
        Trace as Trace,
        attend as attend,
    )
    from attnscope.models.transformer import (
        Transformer as Transformer,
        TransformerSpec as TransformerSpec,
    )
else:
    __all__, __getattr__, __dir__ = exports(__name__)
