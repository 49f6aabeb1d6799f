"""Declarations broken on purpose: each mutant must be caught in the entries it strikes, and in no other.

What catches it is the comparison with the reference implementation, tensor shape by tensor shape, or a known figure
where the reference has none: active parameters, MTP layers, legacy buffers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from math import prod
from typing import Any, NamedTuple

import pytest

import paramcount.zoo as zoo
from paramcount import flow
from paramcount.architectures import architecture, gemma2, mllama, phi3, qwen3_next, t5
from paramcount.counting.count import Count
from paramcount.flow import Data, Weight
from paramcount.parts import attentions, decoder, decoders, feed_forward, mixtures, state_space
from paramcount.parts.decoder import Decoder
from paramcount.sizes import build_as_reference
from tests.batches import in_batches
from tests.comparison import (
    TOTALS,
    count_anew,
    find_differences,
    find_misnamed,
    list_learned,
    load_reference,
    load_reference_names,
)
from tests.structures import ROWS, pick_distinct

IDS = sorted(load_reference())
OF_THE_ZOO = {ROWS[id]["architecture"] for id in IDS}
for name in OF_THE_ZOO:
    architecture(name)  # imported, so that a mutant reaches it

NAMED = sorted(load_reference_names())
Patch = pytest.MonkeyPatch
Operation = Callable[..., Any]


def replace_everywhere(patch: Patch, original: Operation, mutant: Operation) -> None:
    """Replace a function in every module of the package that has imported it."""
    for module in list(sys.modules.values()):
        if module.__name__.partition(".")[0] == "paramcount":
            for name in [name for name, value in vars(module).items() if value is original]:
                patch.setattr(module, name, mutant)


class View:
    """Sizes, or operations, with some of them wrong."""

    def __init__(self, original: Any, **wrong: Any) -> None:
        self._original = original
        self.__dict__.update(wrong)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def empty(weight: Weight) -> Weight:
    """A weight that is left out: without values, but there, for declarations that read the shapes of a step's weights
    (I-BERT's buffers have them).
    """
    return weight._replace(shape=(0,), splits=())


# ---- mutants


def norm_without_weight(patch: Patch) -> None:
    replace_everywhere(patch, flow.norm, lambda x, name, **k: Data("norm", (x,), x.shape))


def norm_without_bias(patch: Patch) -> None:
    original = flow.norm
    replace_everywhere(patch, original, lambda x, name, *, bias=False, **k: original(x, name, **k))


def linear_without_bias(patch: Patch) -> None:
    original = flow.linear

    def linear(*a: Any, **k: Any) -> Data:
        out: Data = original(*a, **k)
        return Data(out.operation, out.inputs, out.shape, (out.weights[0], *map(empty, out.weights[1:])))

    replace_everywhere(patch, original, linear)


def fused_without_bias(patch: Patch) -> None:
    original = flow.fused
    replace_everywhere(patch, original, lambda *a, bias=False, **k: original(*a, **k))


def linear_with_in_and_out_swapped(patch: Patch) -> None:
    original = flow.linear
    replace_everywhere(patch, original, lambda *a, transposed=False, **k: original(*a, transposed=not transposed, **k))


def fused_with_in_and_out_swapped(patch: Patch) -> None:
    original = flow.fused
    replace_everywhere(patch, original, lambda *a, transposed=False, **k: original(*a, transposed=not transposed, **k))


def table_with_rows_and_columns_swapped(patch: Patch) -> None:
    original = flow.lookup

    def lookup(*a: Any, **k: Any) -> Data:
        out = original(*a, **k)
        swapped = tuple(weight._replace(shape=weight.shape[::-1]) for weight in out.weights)
        return Data("lookup", out.inputs, out.shape, swapped)

    replace_everywhere(patch, original, lookup)


def fused_stored_apart(patch: Patch) -> None:
    linear, original = flow.linear, flow.fused

    def apart(
        x: Data,
        name: str,
        parts: dict[str, Any],
        *,
        bias: bool = False,
        transposed: bool = False,
        suffixes: Any = (),
        **k: Any,
    ) -> tuple[Data, ...]:
        if "_weight" in suffixes:  # PyTorch's MultiheadAttention, of whose matrix one third at a time is used
            return original(x, name, parts, bias=bias, transposed=transposed, suffixes=suffixes, **k)
        return tuple(
            linear(x, f"{name}.{part}", part, width, bias=bias, transposed=transposed) for part, width in parts.items()
        )

    replace_everywhere(patch, original, apart)


def stacked_experts_stored_apart(patch: Patch) -> None:
    original = flow.experts
    replace_everywhere(patch, original, lambda *a, stored="apart", **k: original(*a, **k))


def head_without_its_tie(patch: Patch) -> None:
    original = decoders.head
    replace_everywhere(patch, original, lambda c, *a, **k: original(View(c, tie_word_embeddings=False), *a, **k))


def head_always_tied(patch: Patch) -> None:
    original = decoders.head
    replace_everywhere(patch, original, lambda c, *a, **k: original(View(c, tie_word_embeddings=True), *a, **k))


def change_attention(patch: Patch, wrong: Callable[[Any], dict[str, Any]]) -> None:
    """Every attention that reads heads of its config sees some of its sizes wrong."""

    def make_mutant(original: Operation) -> Operation:
        return lambda c, *a, **k: original(View(c, **wrong(c)), *a, **k)

    for original in (attentions.project_heads, phi3.attention):
        replace_everywhere(patch, original, make_mutant(original))
    hybrid = qwen3_next.GatedDeltaHybrid
    patch.setattr(hybrid, "attention", make_mutant(hybrid.attention))


def keys_and_values_for_every_head(patch: Patch) -> None:
    change_attention(patch, lambda c: {"n_kv_heads": c.n_heads})


def head_width_guessed_from_the_models(patch: Patch) -> None:
    change_attention(patch, lambda c: {"d_head": c.d_model // c.n_heads} if hasattr(c, "d_model") else {})


def attention_without_qk_norm(patch: Patch) -> None:
    def forget_norms(original: Operation) -> Operation:
        return lambda x, name, *a, **k: x if name.endswith(("q_norm", "k_norm")) else original(x, name, *a, **k)

    for original in (flow.norm, attentions.wide_norm):
        replace_everywhere(patch, original, forget_norms(original))


def attention_without_its_gate(patch: Patch) -> None:
    original = flow.fused

    def fused(x: Data, name: str, parts: dict[str, Any], **k: Any) -> tuple[Data, ...]:
        kept = {part: width for part, width in parts.items() if part != "qkv.gate"}
        out = list(original(x, name, kept, **k))
        if kept != parts:
            out.insert(list(parts).index("qkv.gate"), out[0])
        return tuple(out)

    replace_everywhere(patch, original, fused)


def output_projection_biased_as_qkv(patch: Patch) -> None:
    original = decoder.Decoder.self_attention
    patch.setattr(decoder.Decoder, "self_attention", lambda *a, o_bias=None, **k: original(*a, **k))


def mlp_without_gate(patch: Patch) -> None:
    def plain(
        x: Data,
        prefix: str,
        component: str,
        d_ff: Any,
        *,
        activation: Any = feed_forward.ACTIVATION,
        bias: bool = False,
        down_bias: bool | None = None,
        names: Any = feed_forward.GATED,
        limit: Any = None,  # clips values, which has no weights
    ) -> Data:
        _, up, down = names
        h = flow.activate(flow.linear(x, prefix + up, component + ".up", d_ff, bias=bias), activation)
        down_bias = bias if down_bias is None else down_bias
        return flow.linear(h, prefix + down, component + ".down", x.shape[-1], bias=down_bias)

    def plain_of_two(*a: Any, names: Any = ("gate_up_proj", "down_proj"), up_first: bool = False, **k: Any) -> Data:
        return plain(*a, names=("", *names), **k)

    replace_everywhere(patch, feed_forward.gated_mlp, plain)
    replace_everywhere(patch, feed_forward.fused_gated_mlp, plain_of_two)


def drop_weights(patch: Patch, original: Operation, component: str) -> None:
    """An operation that forgets what it holds, where that is of this component."""

    def mutant(x: Data, *a: Any, **k: Any) -> Data:
        out: Data = original(x, *a, **k)
        kept = tuple(empty(weight) if weight.component.split(".")[0] == component else weight for weight in out.weights)
        return Data(out.operation, out.inputs, out.shape, kept, bodies=out.bodies)

    replace_everywhere(patch, original, mutant)


def router_left_out(patch: Patch) -> None:
    drop_weights(patch, flow.linear, "router")


def shared_experts_left_out(patch: Patch) -> None:
    drop_weights(patch, feed_forward.gated_mlp, "shared_experts")


def position_table_left_out(patch: Patch) -> None:
    drop_weights(patch, flow.lookup, "position")
    drop_weights(patch, flow.lookup_position, "position")


def drop_elementwise(patch: Patch, op: str) -> None:
    original = flow.elementwise

    def mutant(x: Data, name: str, *a: Any, **k: Any) -> Data:
        return x if name == op else original(x, name, *a, **k)

    replace_everywhere(patch, original, mutant)


def sinks_left_out(patch: Patch) -> None:
    original = flow.attend
    replace_everywhere(patch, original, lambda *a, sinks=None, **k: original(*a, **k))


def gates_left_out(patch: Patch) -> None:
    drop_elementwise(patch, "gate")


def buffer_counted_as_parameter(patch: Patch) -> None:
    original, bias = flow.elementwise, mixtures.routing_bias
    replace_everywhere(patch, original, lambda *a, role="parameter": original(*a))
    replace_everywhere(patch, bias, lambda *a, role="buffer": bias(*a, role="parameter"))


def drop_decay(patch: Patch, role: str) -> None:
    """What a state keeps from step to step is not there, where it has this role: learned, or fixed as MiniMax's."""

    def weight(*a: Any, **k: Any) -> Weight:
        made = Weight(*a, **k)
        return empty(made) if (made.component, made.role) == ("mixer.state", role) else made

    replace_everywhere(patch, Weight, weight)


def buffer_left_out(patch: Patch) -> None:
    drop_elementwise(patch, "correct")
    drop_decay(patch, "buffer")
    original = mixtures.routing_bias
    replace_everywhere(patch, original, lambda *a, role="buffer": None if role == "buffer" else original(*a, role=role))


def a_layer_too_many(patch: Patch) -> None:
    original = flow.layers

    def layers(x: Data, prefix: str, kinds: Any, body: Operation, **k: Any) -> Data:
        (kind, n), *rest = kinds
        return original(x, prefix, [(kind, n + 1), *rest], body, **k)

    replace_everywhere(patch, original, layers)


def first_layers_like_the_rest(patch: Patch) -> None:
    original = flow.layers

    def layers(x: Data, prefix: str, kinds: Any, body: Operation, **k: Any) -> Data:
        return original(x, prefix, [(list(kinds)[-1][0], n) for _, n in kinds], body, **k)

    replace_everywhere(patch, original, layers)


def an_expert_too_few(patch: Patch) -> None:
    original = flow.experts
    replace_everywhere(
        patch, original, lambda x, scores, prefix, count, *a, **k: original(x, scores, prefix, count - 1, *a, **k)
    )


def table_as_long_as_the_head(patch: Patch) -> None:
    patch.setattr(mllama.MllamaText, "embed", Decoder.embed)


def convolution_left_out(patch: Patch) -> None:
    replace_everywhere(patch, flow.convolve, lambda x, *a, **k: x)


def convolution_without_bias(patch: Patch) -> None:
    original = flow.convolve
    replace_everywhere(patch, original, lambda *a, bias=True, **k: original(*a, bias=False, **k))


def decay_left_out(patch: Patch) -> None:
    drop_decay(patch, "parameter")


def mixer_without_inner_norms(patch: Patch) -> None:
    original = state_space.mamba
    replace_everywhere(patch, original, lambda *a, inner_norm=None, **k: original(*a, **k))


def cross_attention_left_out(patch: Patch) -> None:
    patch.setattr(t5.T5, "cross_attention", lambda c, x, memory: x)


def norms_behind_left_out(patch: Patch) -> None:
    original, behind = gemma2.Gemma2Layers.norm, ("post_attention_layernorm", "post_feedforward_layernorm")
    patch.setattr(gemma2.Gemma2Layers, "norm", lambda c, x, name: x if name in behind else original(c, x, name))


def queries_without_latent(patch: Patch) -> None:
    from paramcount.parts import mla as latent

    original = latent.queries
    replace_everywhere(patch, original, lambda c, *a, **k: original(View(c, d_q_lora=None), *a, **k))


# ---- what each strikes


def has_architecture(names: str) -> Callable[[str], bool]:
    return lambda id: zoo.load_entry(id).architecture in names.split()


def accept_all(id: str) -> bool:
    return True


def has_sizes(test: Callable[[Any], bool]) -> Callable[[str], bool]:
    return lambda id: test(zoo.load_entry(id).sizes)


def has_head(*, tied: bool) -> Callable[[str], bool]:
    has_tie = has_sizes(lambda c: getattr(build_as_reference(c), "tie_word_embeddings") == tied)  # noqa: B009
    return lambda id: zoo.load_entry(id).reading.head and has_tie(id)


TOTAL = frozenset({"total"})
SHAPES_ALONE: frozenset[str] = frozenset()


class Mutant(NamedTuple):
    apply: Callable[[Patch], None]
    strikes: Callable[[str], bool]  # id to whether it must be caught there
    seen_in: frozenset[str] = TOTAL  # totals it changes wherever it strikes; none where shapes alone tell


MIXTURES = has_architecture(
    "mixtral qwen2_moe qwen3_moe deepseek deepseek_v2 deepseek_v3 gpt_oss glm4_moe jamba qwen3_next"
)
FUSED = has_architecture("gpt2 openai-gpt qwen gpt_oss jamba qwen3_next mamba2 phi3")
QK_NORMED = has_architecture("qwen3 qwen3_moe mllama qwen3_next gemma3_text olmo2")
GATED = has_sizes(lambda c: c.gated)  # T5 1.1, but not T5
BIASED = "gpt2 openai-gpt qwen2 qwen2_moe gpt_oss mllama glm4_moe jamba"  # a bias of a matrix that is not fused
SQUARE_T5 = ("t5-base", "t5-large")  # d_model = n_heads · d_head, with a plain MLP
MUTANTS = [
    Mutant(norm_without_weight, accept_all),
    Mutant(norm_without_bias, has_architecture("gpt2 openai-gpt mllama")),
    Mutant(
        linear_without_bias,
        lambda id: has_architecture(BIASED)(id) or has_sizes(lambda c: getattr(c, "mlp_bias", False))(id),
    ),
    Mutant(fused_without_bias, has_architecture("gpt2 openai-gpt qwen gpt_oss")),
    # GPT's and T5's up and down are each other's transpose: where both are swapped, only names tell.
    Mutant(
        linear_with_in_and_out_swapped,
        lambda id: id in NAMED or not (has_architecture("gpt2 openai-gpt")(id) or id in SQUARE_T5),
        SHAPES_ALONE,
    ),
    Mutant(fused_with_in_and_out_swapped, FUSED, SHAPES_ALONE),
    Mutant(table_with_rows_and_columns_swapped, accept_all, SHAPES_ALONE),
    Mutant(fused_stored_apart, FUSED, SHAPES_ALONE),
    Mutant(stacked_experts_stored_apart, has_architecture("gpt_oss"), SHAPES_ALONE),
    Mutant(head_without_its_tie, has_head(tied=True), TOTAL | {"lm_head"}),
    Mutant(head_always_tied, has_head(tied=False), TOTAL | {"lm_head"}),
    Mutant(keys_and_values_for_every_head, has_sizes(lambda c: hasattr(c, "n_kv_heads") and c.n_kv_heads != c.n_heads)),
    Mutant(
        head_width_guessed_from_the_models,
        has_sizes(lambda c: hasattr(c, "n_kv_heads") and c.n_heads * c.d_head != c.d_model),
    ),
    Mutant(
        attention_without_qk_norm, lambda id: QK_NORMED(id) or has_sizes(lambda c: getattr(c, "qk_norm", False))(id)
    ),
    Mutant(attention_without_its_gate, has_architecture("qwen3_next")),
    Mutant(output_projection_biased_as_qkv, has_architecture("qwen2 qwen2_moe glm4_moe")),
    Mutant(
        mlp_without_gate,
        lambda id: (
            GATED(id) if has_architecture("t5")(id) else not has_architecture("gpt2 openai-gpt gpt_oss mamba2")(id)
        ),
    ),
    Mutant(router_left_out, MIXTURES),
    Mutant(shared_experts_left_out, has_architecture("qwen2_moe deepseek deepseek_v2 deepseek_v3 glm4_moe qwen3_next")),
    Mutant(position_table_left_out, has_architecture("gpt2 openai-gpt mllama t5")),
    Mutant(sinks_left_out, has_architecture("gpt_oss")),
    Mutant(gates_left_out, has_architecture("mllama")),
    Mutant(buffer_counted_as_parameter, has_architecture("deepseek_v3 glm4_moe"), TOTAL | {"buffers"}),
    Mutant(buffer_left_out, has_architecture("deepseek_v3 glm4_moe"), frozenset({"buffers"})),
    Mutant(a_layer_too_many, accept_all),
    Mutant(
        first_layers_like_the_rest,
        has_architecture("deepseek deepseek_v2 deepseek_v3 mllama glm4_moe jamba qwen3_next t5"),
    ),
    Mutant(an_expert_too_few, MIXTURES),
    Mutant(table_as_long_as_the_head, has_architecture("mllama"), TOTAL | {"embedding"}),
    Mutant(convolution_left_out, has_architecture("jamba qwen3_next mamba2")),
    Mutant(convolution_without_bias, has_architecture("jamba mamba2")),
    Mutant(decay_left_out, has_architecture("jamba qwen3_next mamba2")),
    Mutant(mixer_without_inner_norms, has_architecture("jamba")),
    Mutant(cross_attention_left_out, has_architecture("t5")),
    Mutant(norms_behind_left_out, has_architecture("gemma3_text")),
    Mutant(queries_without_latent, has_sizes(lambda c: getattr(c, "d_q_lora", None) is not None), TOTAL),
]


# The architectures of which `strikes` says what it strikes. In each other one a mutant strikes what it changes.
LISTED = has_architecture(
    "deepseek deepseek_v2 deepseek_v3 gemma3_text glm4_moe gpt2 gpt_oss jamba llama mamba2 mistral "
    "mixtral mllama olmo2 openai-gpt phi3 qwen qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next t5"
)


def list_declared(id: str, count: Count) -> dict[tuple[Any, ...], int]:
    """What an entry declares: {(name, shape): how many tensors}, its buffers, its LM head.

    Without names if the reference's are not recorded.
    """
    found: dict[tuple[Any, ...], int] = {("buffers",): count.buffers, ("lm_head",): count.lm_head}
    for tensor in list_learned(count):
        key = tensor.name if id in NAMED else "", tensor.shape
        found[key] = found.get(key, 0) + tensor.copies
    return found


@cache
def list_few() -> list[str]:
    """Some entries, and one of each structure of those listed."""
    return sorted({*NAMED[::12], *pick_distinct(filter(LISTED, IDS))})


@cache
def list_intact(id: str) -> dict[tuple[Any, ...], int]:
    """What an entry declares without a mutant. Call it before one is applied."""
    return list_declared(id, count_anew(id))


def count_all(ids: Iterable[str]) -> dict[str, Count]:
    return {id: count_anew(id) for id in ids}


def find_caught(counts: dict[str, Count]) -> dict[str, list[str]]:
    """{id: where its count differs from the reference}"""
    differences = {id: find_differences(id, count) + find_misnamed(id, count) for id, count in counts.items()}
    return {id: lines for id, lines in differences.items() if lines}


def test_without_a_mutant_no_entry_differs_from_its_reference() -> None:
    assert find_caught(count_all(IDS)) == {}


@in_batches("id", NAMED, size=80)
def test_an_entry_has_the_tensors_of_its_reference_name_by_name(id: str) -> None:
    assert find_misnamed(id, count_anew(id)) == []


def test_names_are_recorded_for_every_architecture() -> None:
    assert {zoo.load_entry(id).architecture for id in NAMED} == OF_THE_ZOO
    for id, recorded in load_reference_names().items():  # what is recorded is the whole model
        shapes = [item for counts in recorded["tensors"].values() for item in counts.items()]
        values = sum(prod(int(n) for n in shape.split("×") if n) * copies for shape, copies in shapes)  # "": a scalar
        assert values == load_reference()[id]["total"]


@pytest.mark.parametrize(
    "list_ids",
    [
        pytest.param(list_few, id="some entries"),
        pytest.param(lambda: IDS, id="every entry", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.apply.__name__)
def test_a_mutant_is_caught_in_the_entries_it_strikes_and_in_no_other(
    mutant: Mutant, list_ids: Callable[[], list[str]], monkeypatch: Patch
) -> None:
    ids = list_ids()
    intact = {id: list_intact(id) for id in ids if not LISTED(id)}
    mutant.apply(monkeypatch)
    counts = count_all(ids)
    found = find_caught(counts)
    assert {id for id in found if LISTED(id)} == {id for id in ids if LISTED(id) and mutant.strikes(id)}
    changed = {id for id in intact if list_declared(id, counts[id]) != intact[id]}
    assert {id for id in found if not LISTED(id)} == changed
    for lines in found.values():
        facts = {line.partition(":")[0] for line in lines} & set(TOTALS)
        assert facts >= mutant.seen_in
        if not mutant.seen_in:
            assert facts == SHAPES_ALONE


def test_every_mutant_strikes_some_entry() -> None:
    ids = list(filter(LISTED, IDS))
    assert [mutant.apply.__name__ for mutant in MUTANTS if not any(mutant.strikes(id) for id in ids)] == []


def test_every_architecture_is_struck_by_a_mutant_that_leaves_its_total_as_it_was() -> None:
    struck = {
        zoo.load_entry(id).architecture
        for mutant in MUTANTS
        if mutant.seen_in == SHAPES_ALONE
        for id in IDS
        if mutant.strikes(id)
    }
    assert struck == OF_THE_ZOO


def test_an_entry_without_reference_differs() -> None:
    assert find_differences("no-such-model", count_anew("gpt2-small")) == ["no-such-model has no reference"]


# ---- what the reference does not have: known figures catch it

ACTIVE = {  # as Mistral and Qwen count it
    "mixtral-8x7b": 12_879_925_248,
    "qwen3-30b-a3b": 3_353_032_704,
    "qwen3-next-80b-a3b": 3_874_929_408,
    "deepseek-v3": 37_552_282_624,
}
MTP = {  # own parameters, own buffers, copies of table and head
    "deepseek-v3": (11_610_067_968, 256, 2 * 129_280 * 7_168),
    "glm-4.5": (3_988_069_632, 160, 2 * 151_552 * 5_120),
}
LEGACY = {"gpt2-small": 12 * 1024 * 1024, "llama-2-7b": 32 * 64}  # causal masks; inv_freq


def count_known() -> dict[str, dict[str, Any]]:
    """What the package says of the known figures, counted anew."""
    counts = count_all((*ACTIVE, *MTP, *LEGACY))
    return {
        "active": {id: counts[id].active for id in ACTIVE},
        "mtp": {id: (counts[id].mtp, counts[id].mtp_buffers, counts[id].mtp_copies) for id in MTP},
        "legacy": {id: counts[id].legacy_buffers for id in LEGACY},
    }


def find_missed() -> set[tuple[str, str]]:
    """(which figure, of which entry) is not what it should be."""
    expected: dict[str, dict[str, Any]] = {"active": ACTIVE, "mtp": MTP, "legacy": LEGACY}
    return {
        (what, id) for what, figures in count_known().items() for id in figures if figures[id] != expected[what][id]
    }


def all_experts_active(patch: Patch) -> None:
    original = flow.experts
    replace_everywhere(
        patch,
        original,
        lambda x, scores, prefix, count, active, *a, **k: original(x, scores, prefix, count, count, *a, **k),
    )


def an_active_expert_too_many(patch: Patch) -> None:
    original = flow.experts
    replace_everywhere(
        patch,
        original,
        lambda x, scores, prefix, count, active, *a, **k: original(x, scores, prefix, count, active + 1, *a, **k),
    )


def mtp_left_out(patch: Patch) -> None:
    for name in ("deepseek_v3", "glm4_moe"):
        patch.setattr(architecture(name), "mtp", lambda c, tokens: None)


def mtp_with_copies_of_its_own(patch: Patch) -> None:
    wrong = View(flow, linear=lambda *a, tied_to=None, **k: flow.linear(*a, **k))
    patch.setattr(sys.modules["paramcount.parts.mtp"], "ops", wrong)


def mtp_without_join(patch: Patch) -> None:
    patch.setattr(sys.modules["paramcount.parts.mtp"], "ops", View(flow, join=lambda a, b: b))


def masks_left_out(patch: Patch) -> None:
    replace_everywhere(patch, attentions.causal_masks, lambda c: ())


def frequencies_left_out(patch: Patch) -> None:
    patch.setattr(architecture("llama"), "legacy_buffers", lambda c: ())


BEYOND: list[tuple[Callable[[Patch], None], set[tuple[str, str]]]] = [
    (all_experts_active, {("active", id) for id in ACTIVE}),
    (an_active_expert_too_many, {("active", id) for id in ACTIVE}),
    (mtp_left_out, {("mtp", id) for id in MTP}),
    (mtp_with_copies_of_its_own, {("mtp", id) for id in MTP}),
    (mtp_without_join, {("mtp", id) for id in MTP}),
    (masks_left_out, {("legacy", "gpt2-small")}),
    (frequencies_left_out, {("legacy", "llama-2-7b")}),
]


def test_without_a_mutant_every_known_figure_is_met() -> None:
    assert find_missed() == set()


@pytest.mark.parametrize(("mutant", "expected"), BEYOND, ids=[mutant.__name__ for mutant, _ in BEYOND])
def test_a_mutant_beyond_the_reference_misses_a_known_figure_and_nothing_else(
    mutant: Callable[[Patch], None], expected: set[tuple[str, str]], monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    assert find_missed() == expected
    assert find_caught(count_all(list_few())) == {}
