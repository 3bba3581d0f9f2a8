"""The contract of a watched model, over Hugging Face's families: each keeps every promise."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import torch

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.analysis.fragility import compute_fragility
from attnscope.analysis.token_probabilities import compute_token_probabilities
from attnscope.data.batch import Batch
from attnscope.models.adapted import Adapted
from attnscope.models.adapter import adapt
from attnscope.models.intervention import Given, OneHot, Only, Permuted, Uniform
from cases import for_each

_spec = importlib.util.spec_from_file_location(
    "zoo_families", Path(__file__).with_name("families.py")
)
assert _spec is not None
assert _spec.loader is not None
families = importlib.util.module_from_spec(_spec)
sys.modules["zoo_families"] = families
_spec.loader.exec_module(families)


@cache
def adapted(name: str, kernel: str = "eager") -> Adapted:
    family = families.BY_NAME[name]
    return adapt(family.build(kernel), call=family.call, example=family.example)


@cache
def example(name: str) -> Batch:
    from attnscope.models.adapter import _first_that_runs, _made_up

    model, family = adapted(name), families.BY_NAME[name]
    made = [family.example] if family.example is not None else _made_up(model.module, model.facts)
    return _first_that_runs(model.module, model.call, made)


def outputs(model: Adapted, batch: Batch, attention=None) -> torch.Tensor:
    with torch.no_grad():
        return model.outputs(batch, attention)


def test_at_least_28_families_are_in_the_zoo():
    assert len(families.FAMILIES) >= 28


def sites_are_found_and_named_and_the_watched_pass_is_the_models_own(family):
    for kernel in family.kernels:
        model, batch = adapted(family.name, kernel), example(family.name)
        assert model.places.names == family.sites, kernel
        assert not model.places.left_out, kernel
        assert model.padding_matters == family.padding_matters, kernel
        with torch.no_grad():
            native, watched = model.call(model.module, batch), model.trace(batch).logits
        native = native[:, None] if native.ndim == 2 else native
        torch.testing.assert_close(watched, native, rtol=1e-5, atol=1e-5)
        if not family.padding_matters:  # then outputs are those of texts that are run alone
            torch.testing.assert_close(outputs(model, batch), native, rtol=1e-5, atol=1e-5)


# With a cache, FSMT takes its causal mask away.
_WHOLE = {"fsmt": {"use_cache": False}}
# Falcon's own record of its weights differs from the weights that it uses.
UNRECORDED = ("falcon", "xlnet", "whisper", "vit")


def weights_are_those_that_the_family_records(family):
    if family.name in UNRECORDED:
        return
    model, batch = adapted(family.name), example(family.name)
    given = {"input_ids": batch.inputs, "attention_mask": batch.input_mask.long()}
    if "cross" in model.places.aliases:
        given["decoder_input_ids"] = batch.decoder_inputs
    with torch.no_grad():
        recorded = model.module(**given, output_attentions=True, **_WHOLE.get(family.name, {}))
        sites = model.trace(batch).sites
    kinds = {"encoder": "attentions", "decoder": "attentions"}
    if "cross" in model.places.aliases:
        kinds = {f"{each}": f"{each}_attentions" for each in ("encoder", "decoder", "cross")}
    for kind, field in kinds.items():
        names = [name for name in sites if name.startswith(kind)]
        for name, weights in zip(names, recorded[field] or (), strict=False):
            real = batch.input_mask
            if "cross" in model.places.aliases and kind != "encoder":
                real = batch.target_mask
            rows = real[:, None, :, None]
            width = sites[name].weights.shape[-1]
            torch.testing.assert_close(
                sites[name].weights * rows, weights[..., :width] * rows, rtol=0, atol=1e-5
            )


def logits_are_queries_times_keys_plus_a_bias_and_their_softmax_the_weights(family):
    model, batch = adapted(family.name), example(family.name)
    with torch.no_grad():
        sites = model.trace(batch).sites
    for name, site in sites.items():
        assert site.queries is not None, name
        allowed = site.allowed[:, None]
        rebuilt = (site.queries @ site.keys.mT + site.bias).masked_fill(~allowed, 0.0)
        torch.testing.assert_close(rebuilt, site.logits, rtol=1e-4, atol=1e-4)
        left = site.weights.sum(-1, keepdim=True)  # less than 1 where there are sinks
        softmax = site.logits.masked_fill(~allowed, -torch.inf).softmax(-1).nan_to_num(0.0)
        real = allowed.any(-1, keepdim=True)
        torch.testing.assert_close(
            (left * softmax) * real, site.weights * real, rtol=1e-4, atol=1e-5
        )


def own_weights_given_back_change_nothing_bit_for_bit(family):
    model, batch = adapted(family.name), example(family.name)
    with torch.no_grad():
        trace = model.trace(batch)
    given = {name: Given(site.weights) for name, site in trace.sites.items()}
    assert outputs(model, batch, given).equal(trace.logits)


def interventions_change_the_output_and_causal_sites_never_look_ahead(family):
    model, batch = adapted(family.name), example(family.name)
    own = outputs(model, batch)
    with torch.no_grad():
        for name, rule in product(model.places.names, [Uniform(), Permuted(seed=1)]):
            trace = model.trace(batch, {name: rule})
            assert (trace.logits - own).abs().max() > 1e-3, (name, rule)
            if model.places.named(name).causal:
                assert not trace.sites[name].weights.triu(1).any()


def a_rule_for_one_head_changes_that_head_alone(family):
    model, batch = adapted(family.name), example(family.name)
    name = model.places.names[-1]
    with torch.no_grad():
        own = model.trace(batch).sites[name].weights
        changed = model.trace(batch, {name: Only(Permuted(seed=2), heads=[1])}).sites[name].weights
    assert changed[:, [0, 2, 3]].equal(own[:, [0, 2, 3]])
    assert not changed[:, 1].equal(own[:, 1])


def an_example_alone_is_the_example_in_a_batch(family):
    model, batch = adapted(family.name), example(family.name)
    together = outputs(model, batch)
    for row in range(len(batch)):
        one = batch.rows(slice(row, row + 1)).trimmed()
        real = one.target_mask[0]
        alone = outputs(model, one)[0][real]
        torch.testing.assert_close(alone, together[row, : len(real)][real], rtol=1e-4, atol=1e-4)


def gradients_flow_through_given_weights(family):
    model, batch = adapted(family.name), example(family.name)
    with torch.no_grad():
        sites = model.trace(batch).sites
    name = model.places.aliases.get("last", model.places.names[-1])
    weights = sites[name].weights.clone().requires_grad_()
    model.outputs(batch, {name: Given(weights)}).square().sum().backward()
    assert weights.grad is not None
    assert weights.grad.abs().max() > 0


def a_pattern_stands_for_every_site_that_it_matches(family):
    model, batch = adapted(family.name), example(family.name)
    by_name = dict.fromkeys(model.places.names, Uniform())
    assert outputs(model, batch, {"*": Uniform()}).equal(outputs(model, batch, by_name))


def a_pass_that_starts_at_a_site_is_the_whole_pass(family):
    model, batch = adapted(family.name), example(family.name)
    for name in model.places.names:
        whole = outputs(model, batch, {name: Uniform()})
        with model.resuming(batch, name):
            assert model._resumption.takes(batch, {name: Uniform()}), name
            resumed = outputs(model, batch, {name: Uniform()})
        torch.testing.assert_close(resumed, whole, rtol=1e-5, atol=1e-5)


PROMISES = [
    sites_are_found_and_named_and_the_watched_pass_is_the_models_own,
    weights_are_those_that_the_family_records,
    logits_are_queries_times_keys_plus_a_bias_and_their_softmax_the_weights,
    own_weights_given_back_change_nothing_bit_for_bit,
    interventions_change_the_output_and_causal_sites_never_look_ahead,
    a_rule_for_one_head_changes_that_head_alone,
    an_example_alone_is_the_example_in_a_batch,
    gradients_flow_through_given_weights,
    a_pattern_stands_for_every_site_that_it_matches,
    a_pass_that_starts_at_a_site_is_the_whole_pass,
]


@pytest.mark.parametrize("family", families.FAMILIES, ids=lambda family: family.name)
@for_each("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_family_keeps_every_promise(family, promise):
    promise(family)


HALF = ["bert", "llama (grouped queries)", "marian", "t5", "gpt2"]


@pytest.mark.parametrize("name", HALF)
def test_half_precision_is_watched_by_its_own_tolerance(name):
    family = families.BY_NAME[name]
    kernel = "sdpa" if "sdpa" in family.kernels else "eager"
    model = adapt(family.build(kernel, torch.bfloat16))
    assert model.places.names == family.sites
    assert model.off < 5e-2


STATELESS = ["bert", "marian", "gpt2"]


@pytest.mark.parametrize("name", STATELESS)
def test_a_model_is_left_as_it_was_also_after_an_error(name):
    module = families.BY_NAME[name].build("sdpa").train()
    module.requires_grad_(False)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    model = adapt(module)

    def broken(logits, mask, ids):
        raise RuntimeError("a rule that fails")

    batch = example(name)
    fused = torch.nn.functional.scaled_dot_product_attention
    with pytest.raises(RuntimeError, match="a rule that fails"):
        model.outputs(batch, {"*": broken})
    with model.resuming(batch, "last"):
        model.outputs(batch, {"last": Uniform()})
        with pytest.raises(RuntimeError, match="a rule that fails"):
            model.outputs(batch, {"last": broken})
    assert torch.nn.functional.scaled_dot_product_attention is fused
    assert module.config._attn_implementation == "sdpa"
    for part in module.modules():
        assert part.training
        assert not part._forward_hooks
        assert not part._forward_pre_hooks
        assert "forward" not in part.__dict__
    assert not any(parameter.requires_grad for parameter in module.parameters())
    assert all(value.equal(state[key]) for key, value in module.state_dict().items())
    module.eval()
    with torch.no_grad():  # nothing is watched any more
        assert model.call(module, batch).isfinite().all()


@pytest.mark.parametrize("name", ["marian", "gpt2"])
def test_measures_of_output_words_are_those_of_the_model_run_again(name):
    """Fragility, token probabilities and adversaries, against single passes under their rules."""
    model, batch = adapted(name), example(name)
    [site] = {model.places.aliases["last"]}
    found = compute_fragility(model, batch, 2, seed=3, site=site)
    real = batch.target_mask
    for draw in range(2):
        single = outputs(model, batch, {site: Permuted(seed=3 + draw)})[real].softmax(-1)
        right = single.gather(-1, batch.targets[real][:, None])[:, 0]
        torch.testing.assert_close(found.probabilities["permuted"][draw], right, atol=1e-5, rtol=0)
    assert found.changed("permuted").max() > 0
    tokens = compute_token_probabilities(model, batch, site=site)
    native = outputs(model, batch)[real].softmax(-1)
    torch.testing.assert_close(tokens.confidence, native.amax(-1), atol=1e-5, rtol=0)
    # The first output word of the first example, all attention on each of the words that it sees.
    seen = model.trace(batch, keep=[site]).sites[site].allowed[0, 0].nonzero()[:, 0].tolist()
    alone = [outputs(model, batch, {site: OneHot(n)})[0, 0].softmax(-1) for n in seen]
    mean = torch.stack(alone)[:, tokens.predicted[0]].mean()
    torch.testing.assert_close(tokens.token_mean[0], mean, atol=1e-5, rtol=0)
    other = find_adversaries(model, batch, Search(restarts=1, steps=5, lr=0.1), site=site)
    assert bool((other.distance <= Search().epsilon + 1e-6).all())
