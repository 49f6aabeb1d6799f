"""Declarations broken on purpose: each mutant must be caught in the entries it strikes, and in no other.

What catches it is the comparison with the reference implementation, tensor shape by tensor shape, or a known figure
where the reference has none: active parameters, MTP layers, legacy buffers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

import paramcount.zoo as zoo
from paramcount import flow
from paramcount.architectures import architecture, gemma2, mllama, phi3, qwen3_next, t5
from paramcount.counting.count import Count
from paramcount.flow import Data, Weight
from paramcount.parts import attentions, decoders, feed_forward, mixtures, mla, state_space
from paramcount.parts.decoder import Decoder
from paramcount.sizes import build_as_reference
from tests.batches import in_batches
from tests.comparison import (
    TOTALS,
    count_anew,
    find_differences,
    find_misnamed,
    load_reference,
    load_reference_names,
)
from tests.structures import ROWS

IDS = sorted(load_reference())
OF_THE_ZOO = {ROWS[id]["architecture"] for id in IDS}
for name in OF_THE_ZOO:
    architecture(name)  # imported, so that a mutant reaches it

NAMED = sorted(load_reference_names())
Patch = pytest.MonkeyPatch
Operation = Callable[..., Any]
Apply = Callable[[Patch], None]


def replace_everywhere(patch: Patch, original: Operation, mutant: Operation) -> None:
    """Replace a function in every module of the package that has imported it."""
    for module in list(sys.modules.values()):
        if module.__name__.partition(".")[0] == "paramcount":
            for name in [name for name, value in vars(module).items() if value is original]:
                patch.setattr(module, name, mutant)


def change(original: Operation, make_mutant: Callable[[Operation], Operation]) -> Apply:
    """A mutant that is a function in the place of another one."""
    return lambda patch: replace_everywhere(patch, original, make_mutant(original))


def drop_options(*options: str) -> Callable[[Operation], Operation]:
    """The same function, which ignores some of its options."""
    return lambda original: lambda *a, **k: original(*a, **{name: k[name] for name in k if name not in options})


def swap_in_and_out(original: Operation) -> Operation:
    """The same function, whose matrix is stored in the other orientation."""
    return lambda *a, transposed=False, **k: original(*a, transposed=not transposed, **k)


class View:
    """Sizes, or operations, with some of them wrong."""

    def __init__(self, original: Any, **wrong: Any) -> None:
        self._original = original
        self.__dict__.update(wrong)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def set_sizes(**wrong: Any) -> Callable[[Operation], Operation]:
    """The same function, to which some sizes of its config are wrong."""
    return lambda original: lambda c, *a, **k: original(View(c, **wrong), *a, **k)


def change_method(cls: type, name: str, make_mutant: Callable[[Operation], Operation]) -> Apply:
    return lambda patch: patch.setattr(cls, name, make_mutant(getattr(cls, name)))


def join(*mutants: Apply) -> Apply:
    """All of these mutants at once."""

    def apply(patch: Patch) -> None:
        for mutant in mutants:
            mutant(patch)

    return apply


def empty(weight: Weight) -> Weight:
    """A weight that is left out: without values, but there, for declarations that read the shapes of a step's weights
    (I-BERT's buffers have them).
    """
    return weight._replace(shape=(0,), splits=())


# ---- functions that do something wrong


def forget_bias(original: Operation) -> Operation:
    def linear(*a: Any, **k: Any) -> Data:
        out: Data = original(*a, **k)
        return Data(out.operation, out.inputs, out.shape, (out.weights[0], *map(empty, out.weights[1:])))

    return linear


def swap_rows_and_columns(original: Operation) -> Operation:
    def lookup(*a: Any, **k: Any) -> Data:
        out = original(*a, **k)
        swapped = tuple(weight._replace(shape=weight.shape[::-1]) for weight in out.weights)
        return Data("lookup", out.inputs, out.shape, swapped)

    return lookup


def store_apart(original: Operation) -> Operation:
    linear = flow.linear

    def fused(
        x: Data, name: str, parts: dict[str, Any], *, bias: bool = False, transposed: bool = False, **k: Any
    ) -> tuple[Data, ...]:
        if "_weight" in k.get("suffixes", ()):  # PyTorch's MultiheadAttention uses one third of its matrix at a time
            found: tuple[Data, ...] = original(x, name, parts, bias=bias, transposed=transposed, **k)
            return found
        return tuple(
            linear(x, f"{name}.{part}", part, width, bias=bias, transposed=transposed) for part, width in parts.items()
        )

    return fused


def change_attention(wrong: Callable[[Any], dict[str, Any]]) -> Apply:
    """Every attention that reads heads of its config sees some of its sizes wrong."""

    def make_mutant(original: Operation) -> Operation:
        return lambda c, *a, **k: original(View(c, **wrong(c)), *a, **k)

    hybrid = change_method(qwen3_next.GatedDeltaHybrid, "attention", make_mutant)
    return join(change(attentions.project_heads, make_mutant), change(phi3.attention, make_mutant), hybrid)


def forget_norms(original: Operation) -> Operation:
    return lambda x, name, *a, **k: x if name.endswith(("q_norm", "k_norm")) else original(x, name, *a, **k)


def forget_gate(original: Operation) -> Operation:
    def fused(x: Data, name: str, parts: dict[str, Any], **k: Any) -> tuple[Data, ...]:
        kept = {part: width for part, width in parts.items() if part != "qkv.gate"}
        out = list(original(x, name, kept, **k))
        if kept != parts:
            out.insert(list(parts).index("qkv.gate"), out[0])
        return tuple(out)

    return fused


def plain_mlp(
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


def plain_mlp_of_two(*a: Any, names: Any = ("gate_up_proj", "down_proj"), up_first: bool = False, **k: Any) -> Data:
    return plain_mlp(*a, names=("", *names), **k)


def drop_weights(component: str) -> Callable[[Operation], Operation]:
    """An operation that forgets what it holds, where that is of this component."""

    def make_mutant(original: Operation) -> Operation:
        def mutant(x: Data, *a: Any, **k: Any) -> Data:
            out: Data = original(x, *a, **k)
            kept = tuple(empty(one) if one.component.split(".")[0] == component else one for one in out.weights)
            return Data(out.operation, out.inputs, out.shape, kept, bodies=out.bodies)

        return mutant

    return make_mutant


def drop_elementwise(op: str) -> Apply:
    return change(flow.elementwise, lambda do: lambda x, name, *a, **k: x if name == op else do(x, name, *a, **k))


def drop_decay(role: str) -> Apply:
    """What a state keeps from step to step is not there, where it has this role: learned, or fixed as MiniMax's."""

    def weight(*a: Any, **k: Any) -> Weight:
        made = Weight(*a, **k)
        return empty(made) if (made.component, made.role) == ("mixer.state", role) else made

    return change(Weight, lambda _: weight)


def add_layer(original: Operation) -> Operation:
    def layers(x: Data, prefix: str, kinds: Any, body: Operation, **k: Any) -> Data:
        (kind, n), *rest = kinds
        out: Data = original(x, prefix, [(kind, n + 1), *rest], body, **k)
        return out

    return layers


def repeat_last_kind(original: Operation) -> Operation:
    return lambda x, prefix, kinds, body, **k: original(
        x, prefix, [(list(kinds)[-1][0], n) for _, n in kinds], body, **k
    )


def change_experts(count: Callable[[int, int], tuple[int, int]]) -> Apply:
    """Layers of experts with other numbers of experts and of active ones."""
    return change(
        flow.experts, lambda do: lambda x, scores, prefix, n, k, *a, **o: do(x, scores, prefix, *count(n, k), *a, **o)
    )


def forget_outer_norms(original: Operation) -> Operation:
    behind = ("post_attention_layernorm", "post_feedforward_layernorm")
    return lambda c, x, name: x if name in behind else original(c, x, name)


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
    apply: Apply
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
MUTANTS = {
    "norm without weight": Mutant(
        change(flow.norm, lambda _: lambda x, name, **k: Data("norm", (x,), x.shape)), accept_all
    ),
    "norm without bias": Mutant(change(flow.norm, drop_options("bias")), has_architecture("gpt2 openai-gpt mllama")),
    "linear without bias": Mutant(
        change(flow.linear, forget_bias),
        lambda id: has_architecture(BIASED)(id) or has_sizes(lambda c: getattr(c, "mlp_bias", False))(id),
    ),
    "fused without bias": Mutant(
        change(flow.fused, drop_options("bias")), has_architecture("gpt2 openai-gpt qwen gpt_oss")
    ),
    # GPT's and T5's up and down are each other's transpose: where both are swapped, only names tell.
    "linear with in and out swapped": Mutant(
        change(flow.linear, swap_in_and_out),
        lambda id: id in NAMED or not (has_architecture("gpt2 openai-gpt")(id) or id in SQUARE_T5),
        SHAPES_ALONE,
    ),
    "fused with in and out swapped": Mutant(change(flow.fused, swap_in_and_out), FUSED, SHAPES_ALONE),
    "table with rows and columns swapped": Mutant(change(flow.lookup, swap_rows_and_columns), accept_all, SHAPES_ALONE),
    "fused stored apart": Mutant(change(flow.fused, store_apart), FUSED, SHAPES_ALONE),
    "stacked experts stored apart": Mutant(
        change(flow.experts, drop_options("stored")), has_architecture("gpt_oss"), SHAPES_ALONE
    ),
    "head without its tie": Mutant(
        change(decoders.head, set_sizes(tie_word_embeddings=False)), has_head(tied=True), TOTAL | {"lm_head"}
    ),
    "head always tied": Mutant(
        change(decoders.head, set_sizes(tie_word_embeddings=True)), has_head(tied=False), TOTAL | {"lm_head"}
    ),
    "keys and values for every head": Mutant(
        change_attention(lambda c: {"n_kv_heads": c.n_heads}),
        has_sizes(lambda c: hasattr(c, "n_kv_heads") and c.n_kv_heads != c.n_heads),
    ),
    "head width guessed from the model's": Mutant(
        change_attention(lambda c: {"d_head": c.d_model // c.n_heads} if hasattr(c, "d_model") else {}),
        has_sizes(lambda c: hasattr(c, "n_kv_heads") and c.n_heads * c.d_head != c.d_model),
    ),
    "attention without QK-norm": Mutant(
        join(change(flow.norm, forget_norms), change(attentions.wide_norm, forget_norms)),
        lambda id: QK_NORMED(id) or has_sizes(lambda c: getattr(c, "qk_norm", False))(id),
    ),
    "attention without its gate": Mutant(change(flow.fused, forget_gate), has_architecture("qwen3_next")),
    "output projection biased as QKV": Mutant(
        change_method(Decoder, "self_attention", drop_options("o_bias")), has_architecture("qwen2 qwen2_moe glm4_moe")
    ),
    "MLP without gate": Mutant(
        join(
            change(feed_forward.gated_mlp, lambda _: plain_mlp),
            change(feed_forward.fused_gated_mlp, lambda _: plain_mlp_of_two),
        ),
        lambda id: (
            GATED(id) if has_architecture("t5")(id) else not has_architecture("gpt2 openai-gpt gpt_oss mamba2")(id)
        ),
    ),
    "router left out": Mutant(change(flow.linear, drop_weights("router")), MIXTURES),
    "shared experts left out": Mutant(
        change(feed_forward.gated_mlp, drop_weights("shared_experts")),
        has_architecture("qwen2_moe deepseek deepseek_v2 deepseek_v3 glm4_moe qwen3_next"),
    ),
    "position table left out": Mutant(
        join(change(flow.lookup, drop_weights("position")), change(flow.lookup_position, drop_weights("position"))),
        has_architecture("gpt2 openai-gpt mllama t5"),
    ),
    "sinks left out": Mutant(change(flow.attend, drop_options("sinks")), has_architecture("gpt_oss")),
    "gates left out": Mutant(drop_elementwise("gate"), has_architecture("mllama")),
    "buffer counted as parameter": Mutant(
        join(
            change(flow.elementwise, lambda do: lambda *a, role="parameter": do(*a)),
            change(mixtures.routing_bias, lambda do: lambda *a, role="buffer": do(*a, role="parameter")),
        ),
        has_architecture("deepseek_v3 glm4_moe"),
        TOTAL | {"buffers"},
    ),
    "buffer left out": Mutant(
        join(
            drop_elementwise("correct"),
            drop_decay("buffer"),
            change(
                mixtures.routing_bias,
                lambda do: lambda *a, role="buffer": None if role == "buffer" else do(*a, role=role),
            ),
        ),
        has_architecture("deepseek_v3 glm4_moe"),
        frozenset({"buffers"}),
    ),
    "a layer too many": Mutant(change(flow.layers, add_layer), accept_all),
    "first layers like the rest": Mutant(
        change(flow.layers, repeat_last_kind),
        has_architecture("deepseek deepseek_v2 deepseek_v3 mllama glm4_moe jamba qwen3_next t5"),
    ),
    "an expert too few": Mutant(change_experts(lambda n, k: (n - 1, k)), MIXTURES),
    "table as long as the head": Mutant(
        change_method(mllama.MllamaText, "embed", lambda _: Decoder.embed),
        has_architecture("mllama"),
        TOTAL | {"embedding"},
    ),
    "convolution left out": Mutant(
        change(flow.convolve, lambda _: lambda x, *a, **k: x), has_architecture("jamba qwen3_next mamba2")
    ),
    "convolution without bias": Mutant(
        change(flow.convolve, lambda do: lambda *a, **k: do(*a, **{**k, "bias": False})),
        has_architecture("jamba mamba2"),
    ),
    "decay left out": Mutant(drop_decay("parameter"), has_architecture("jamba qwen3_next mamba2")),
    "mixer without inner norms": Mutant(
        change(state_space.mamba, drop_options("inner_norm")), has_architecture("jamba")
    ),
    "cross-attention left out": Mutant(
        change_method(t5.T5, "cross_attention", lambda _: lambda c, x, memory: x), has_architecture("t5")
    ),
    "norms behind left out": Mutant(
        change_method(gemma2.Gemma2Layers, "norm", forget_outer_norms), has_architecture("gemma3_text")
    ),
    "queries without latent": Mutant(
        change(mla.queries, set_sizes(d_q_lora=None)), has_sizes(lambda c: getattr(c, "d_q_lora", None) is not None)
    ),
}
LISTED = has_architecture(  # of which `strikes` says what a mutant strikes
    "deepseek deepseek_v2 deepseek_v3 gemma3_text glm4_moe gpt2 gpt_oss jamba llama mamba2 mistral "
    "mixtral mllama olmo2 openai-gpt phi3 qwen qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next t5"
)
# The smallest entry of each of these architectures, and of those that the same mutants strike
FEW = [
    "codestral-mamba-7b", "deepseek-moe-16b", "deepseek-r1", "deepseek-r1-distill-qwen-1.5b", "deepseek-v2",
    "deepseek-v2-lite", "distilgpt2", "e5-mistral-7b-instruct", "embeddinggemma-300m", "gemma-3-270m", "glm-4.5",
    "glm-4.5-air", "gpt-1", "gpt-oss-20b", "gpt2-small", "granite-3b-code", "granite-8b-code", "jamba-v0.1",
    "llama-3.1-minitron-4b-width", "llama-3.2-11b-vision", "mamba2-130m", "microllama-300m", "mistral-7b-v0.1",
    "mistral-nemo-12b", "mixtral-8x7b", "moonlight-16b-a3b", "olmo-2-1b", "olmo-2-32b", "phi-3-medium",
    "phi-3-mini", "phi-4-mini", "qwen-7b", "qwen1.5-0.5b", "qwen1.5-1.8b", "qwen1.5-moe-a2.7b", "qwen2-0.5b",
    "qwen2-57b-a14b", "qwen3-1.7b", "qwen3-30b-a3b", "qwen3-32b", "qwen3-embedding-0.6b", "qwen3-embedding-8b",
    "qwen3-next-80b-a3b", "sheared-llama-1.3b", "smollm-1.7b", "smollm-135m", "t5-base", "t5-small",
    "t5-v1.1-small",
]  # fmt: skip


def count_all(ids: Iterable[str]) -> dict[str, Count]:
    return {id: count_anew(id) for id in ids}


def find_caught(counts: dict[str, Count]) -> dict[str, list[str]]:
    """{id: where its count differs from the reference}"""
    differences = {id: find_differences(id, count) + find_misnamed(id, count) for id, count in counts.items()}
    return {id: lines for id, lines in differences.items() if lines}


@in_batches("id", IDS, size=120)
def test_without_a_mutant_no_entry_differs_from_its_reference(id: str) -> None:
    assert find_caught(count_all([id])) == {}


def test_names_are_recorded_for_every_architecture() -> None:
    assert {zoo.load_entry(id).architecture for id in NAMED} == OF_THE_ZOO


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(FEW, id="some entries"),
        pytest.param(IDS, id="every entry", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught_in_the_entries_it_strikes_and_in_no_other(
    name: str, ids: list[str], monkeypatch: Patch
) -> None:
    mutant = MUTANTS[name]
    listed = list(filter(LISTED, ids))
    mutant.apply(monkeypatch)
    found = find_caught(count_all(listed))
    assert set(found) == set(filter(mutant.strikes, listed)) != set()
    for lines in found.values():
        facts = {line.partition(":")[0] for line in lines} & set(TOTALS)
        assert facts >= mutant.seen_in
        assert facts == SHAPES_ALONE or mutant.seen_in


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


def wrong_mtp(**wrong: Operation) -> Apply:
    """Some operations are wrong in MTP layers alone."""
    return lambda patch: patch.setattr(sys.modules["paramcount.parts.mtp"], "ops", View(flow, **wrong))


WITH_MTP = ("deepseek_v3", "glm4_moe")
BEYOND: dict[str, tuple[Apply, set[tuple[str, str]]]] = {
    "all experts active": (change_experts(lambda n, k: (n, n)), {("active", id) for id in ACTIVE}),
    "an active expert too many": (change_experts(lambda n, k: (n, k + 1)), {("active", id) for id in ACTIVE}),
    "MTP left out": (
        join(*(change_method(architecture(name), "mtp", lambda _: lambda c, t: None) for name in WITH_MTP)),
        {("mtp", id) for id in MTP},
    ),
    "MTP with copies of its own": (wrong_mtp(linear=drop_options("tied_to")(flow.linear)), {("mtp", id) for id in MTP}),
    "MTP without join": (wrong_mtp(join=lambda a, b: b), {("mtp", id) for id in MTP}),
    "masks left out": (change(attentions.causal_masks, lambda _: lambda c: ()), {("legacy", "gpt2-small")}),
    "frequencies left out": (
        change_method(architecture("llama"), "legacy_buffers", lambda _: lambda c: ()), {("legacy", "llama-2-7b")}
    ),
}  # fmt: skip


def test_without_a_mutant_every_known_figure_is_met() -> None:
    assert find_missed() == set()


@pytest.mark.parametrize("name", BEYOND)
def test_a_mutant_beyond_the_reference_misses_a_known_figure_and_nothing_else(name: str, monkeypatch: Patch) -> None:
    apply, expected = BEYOND[name]
    apply(monkeypatch)
    assert find_missed() == expected
    assert find_caught(count_all(FEW)) == {}
