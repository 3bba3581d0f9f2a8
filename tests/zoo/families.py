"""Hugging Face families in miniature, with random weights of standard deviation .25.

At transformers' own .02 every attention is uniform, and nothing would be tested. ``call`` is given
for models that do not read ids; sites are the names that a reader of the paper would expect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import nn

from attnscope.data.batch import Example, collate

transformers.logging.set_verbosity_error()

_SMALL = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_SEQ2SEQ = {
    "vocab_size": 40,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
_ENCODER = ["encoder.1.self", "encoder.2.self"]
_DECODER = ["decoder.1.self", "decoder.2.self"]
_BOTH = [*_ENCODER, "decoder.1.self", "cross.1", "decoder.2.self", "cross.2"]
_KV = {"num_key_value_heads": 2}


@dataclass(frozen=True)
class Family:
    """A class of transformers, its settings, and the sites that it has."""

    name: str
    kind: str
    settings: dict[str, Any]
    sites: list[str]
    kernels: tuple[str, ...] = ("eager", "sdpa")
    config: str = ""
    call: Callable[..., Any] | None = None
    example: Any = None
    padding_matters: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def build(self, kernel: str = "eager", dtype: torch.dtype = torch.float32) -> nn.Module:
        """Return the model with weights that attend."""
        kind = getattr(transformers, self.kind)
        config = kind.config_class(**self.settings)
        config._attn_implementation = kernel
        return with_weights(kind(config)).to(dtype)


def with_weights(model: nn.Module, std: float = 0.25) -> nn.Module:
    """Draw every matrix anew; norms and biases stay."""
    stream = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 or "sinks" in name:
                parameter.copy_(std * torch.randn(parameter.shape, generator=stream))
    return model.eval()


def _classifier(name: str, kind: str, **settings: Any) -> Family:
    kernels = settings.pop("kernels", ("eager", "sdpa"))
    sites = settings.pop("sites", _ENCODER)
    matters = settings.pop("padding_matters", False)
    return Family(
        name,
        f"{kind}ForSequenceClassification",
        _without(_SMALL | {"num_labels": 3} | settings),
        sites,
        kernels,
        padding_matters=matters,
    )


def _without(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _writer(name: str, kind: str, **settings: Any) -> Family:
    kernels = settings.pop("kernels", ("eager", "sdpa"))
    return Family(name, kind, _SMALL | settings, _DECODER, kernels)


def _translator(name: str, kind: str, **settings: Any) -> Family:
    kernels = settings.pop("kernels", ("eager", "sdpa"))
    matters = settings.pop("padding_matters", False)
    return Family(name, kind, _SEQ2SEQ | settings, _BOTH, kernels, padding_matters=matters)


_IMAGES = torch.randn(3, 3, 12, 12, generator=torch.Generator().manual_seed(0))
_SOUNDS = torch.randn(3, 8, 24, generator=torch.Generator().manual_seed(0))


def _look(module: nn.Module, batch: Any) -> torch.Tensor:
    return module(pixel_values=_IMAGES.to(next(module.parameters()))[batch.ids]).logits


def _listen(module: nn.Module, batch: Any) -> torch.Tensor:
    sounds = _SOUNDS.to(next(module.parameters()))[batch.ids]
    return module(
        input_features=sounds, decoder_input_ids=batch.decoder_inputs, use_cache=False
    ).logits


def _patches(width: int, words: int = 1) -> Any:
    """Return examples whose inputs are numbered patches; ids choose the image or the sound."""
    rows = range(3)
    if words == 1:
        return collate([Example(n, range(width), [0], [0]) for n in rows])
    return collate([Example(n, range(width), [2, 5 + n, 6, 7], [5, 6, 7, 2]) for n in rows])


_ROPE = {"head_dim": 8}
FAMILIES = [
    _classifier("bert", "Bert"),
    _classifier("distilbert", "DistilBert", dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    _classifier("roberta", "Roberta"),
    _classifier("electra", "Electra", embedding_size=32),
    _classifier("albert", "Albert", embedding_size=16),
    _classifier(
        "modernbert",
        "ModernBert",
        local_attention=4,
        global_attn_every_n_layers=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    _classifier(
        "deberta-v2",
        "DebertaV2",
        kernels=("eager",),
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=8,
        pooler_hidden_size=32,
    ),
    _classifier("mpnet", "MPNet", kernels=("eager",)),
    _classifier(
        "xlnet",
        "XLNet",
        kernels=("eager",),
        d_model=32,
        n_layer=2,
        n_head=4,
        d_inner=48,
        max_position_embeddings=None,
        padding_matters=True,
    ),
    _classifier("camembert", "Camembert"),
    _writer("gpt2", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=40),
    _writer("llama (grouped queries)", "LlamaForCausalLM", **_KV),
    _writer("qwen2", "Qwen2ForCausalLM", **_KV),
    _writer("qwen3", "Qwen3ForCausalLM", **_KV, **_ROPE),
    _writer("mistral (window)", "MistralForCausalLM", sliding_window=3, **_KV),
    _writer("gemma2 (softcap)", "Gemma2ForCausalLM", **_KV, **_ROPE, kernels=("eager",)),
    _writer("gemma3", "Gemma3ForCausalLM", **_KV, **_ROPE, sliding_window=3),
    _writer("gpt_neox", "GPTNeoXForCausalLM"),
    _writer("opt", "OPTForCausalLM", ffn_dim=48, word_embed_proj_dim=32),
    _writer(
        "gptj",
        "GPTJForCausalLM",
        n_embd=32,
        n_layer=2,
        n_head=4,
        rotary_dim=4,
        n_positions=40,
        kernels=("eager",),
    ),
    _writer("bloom (ALiBi)", "BloomForCausalLM", n_layer=2, n_head=4, kernels=("eager",)),
    _writer("falcon", "FalconForCausalLM", kernels=("eager", "sdpa")),
    _writer("phi", "PhiForCausalLM"),
    _writer(
        "gpt_oss (sinks)",
        "GptOssForCausalLM",
        **_KV,
        **_ROPE,
        num_local_experts=2,
        num_experts_per_tok=1,
        kernels=("eager",),
    ),
    Family(
        "t5",
        "T5ForConditionalGeneration",
        {
            "vocab_size": 40,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        _BOTH,
        kernels=("eager",),
    ),
    _translator("bart", "BartForConditionalGeneration"),
    _translator("marian", "MarianMTModel"),
    _translator("m2m_100", "M2M100ForConditionalGeneration"),
    _translator("pegasus", "PegasusForConditionalGeneration"),
    _translator(
        "fsmt",
        "FSMTForConditionalGeneration",
        langs=["en", "de"],
        src_vocab_size=40,
        tgt_vocab_size=40,
        kernels=("eager",),
    ),
    Family(
        "whisper",
        "WhisperForConditionalGeneration",
        _SEQ2SEQ
        | {"num_mel_bins": 8, "max_source_positions": 12, "max_target_positions": 20}
        | {"suppress_tokens": None, "begin_suppress_tokens": None},
        _BOTH,
        call=_listen,
        example=_patches(12, words=4),
    ),
    Family(
        "vit",
        "ViTForImageClassification",
        {k: v for k, v in _SMALL.items() if "token" not in k and k != "vocab_size"}
        | {"image_size": 12, "patch_size": 4, "num_labels": 3},
        _ENCODER,
        call=_look,
        example=_patches(10),
    ),
]
BY_NAME = {family.name: family for family in FAMILIES}
