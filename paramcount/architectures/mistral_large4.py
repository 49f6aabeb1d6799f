"""Mistral Large 4: latent attention to the tokens that an indexer chooses, whose queries grow with their position and
of which every fourth layer rotates nothing; images through Pixtral's encoder.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from paramcount.architectures.glm_moe_dsa import reusing
from paramcount.architectures.llava import Mistral3
from paramcount.architectures.mistral4 import Mistral4
from paramcount.architectures.smollm3 import without_positions
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, count_noun

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "yarn", "rope_theta": 10_000.0, "factor": 2048.0, "original_max_position_embeddings": 512,
    "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0,
}  # fmt: skip
OWN, LENT, BORROWED = "own", "lent", "borrowed"


LARGE_PIXTRAL = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "patch_size": 14,
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "hidden_act": "silu",
}


def sources(js: sizes.ConfigJson, c: sizes.FieldValues) -> list[int]:
    """For each layer, the one whose latent it reads."""
    found = js.get("kv_source_layers")
    if found is None:
        return list(sizes.per_layer(c))
    if not isinstance(found, (list, tuple)) or not all(type(i) is int for i in found) or len(found) != c["n_layers"]:
        raise sizes.make_value_error(found, "kv_source_layers", count_noun(c["n_layers"], "layer"))
    for i, source in enumerate(found):
        if not -len(found) <= source <= i or found[source] != source:
            raise ParamcountError(
                f"= {source}",
                where=f"kv_source_layers.{i}",
                expected="the layer itself, or an earlier such one",
            )
    return list(found)


def lending(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    found = sources(js, c)
    return tuple(i for i in sizes.per_layer(c) if i in found[i + 1 :])


def find_rope(js: sizes.ConfigJson) -> tuple[Mapping[str, Any], str]:
    rope: Mapping[str, Any] = js.get("rope_scaling") or js.get("rope_parameters") or SCALED
    return rope, str(rope.get("rope_type", rope.get("type", "default")))


def rotary_or_one_pair() -> Any:
    """Rotary positions, whose share of a head may be one pair that stands for all of it."""
    rope = sizes.rotary(absent=SCALED)
    check = rope.check

    def check_pairs(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
        is_one = c["n_frequencies"] == 1 and find_rope(js)[1] != "dynamic"
        check(js, {**c, "d_rope": None} if is_one else c)

    rope.check = check_pairs
    return rope


def frequencies(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The pairs of a head that rotate, of which a single one stands for all."""
    rope, kind = find_rope(js)
    share = 1.0 if kind == "default" else rope.get("partial_rotary_factor", 1.0)
    n_pairs = (sizes.part_of(c["d_rope"], share) + 1) // 2
    if n_pairs != 1 and 2 * n_pairs != c["d_rope"]:
        raise ParamcountError(
            f"= {share:g} rotates {2 * n_pairs} of {c['d_rope']} values",
            where="rope_parameters.partial_rotary_factor",
            expected="all of them, or one pair",
        )
    return n_pairs


class MistralLayer(NamedTuple):
    """Of a layer. `chooses`: whether it has an indexer; `latent`: its own, one that later layers read, or theirs."""

    rotates: bool
    chooses: bool
    latent: str
    mlp: str


class MistralLarge4Text(parts.RoutedLatentDecoder):
    """Source: modeling_mistral_large4.py of the reference. `reusing_layers`: those without an indexer of their own;
    `borrowing_layers`: those that read the latent of an earlier layer.
    """

    reference = "MistralLarge4ForConditionalGeneration"
    model_types = ("mistral_large4_text",)
    reference_names = {"model.": ""}
    base_model = "MistralLarge4TextModel"
    is_section_type = False
    d_q_lora = sizes.constant(None)
    float32 = ("rotary_emb", "mlp.gate.weight")
    float32_if_float16 = ("indexer.weights_proj",)
    unused_keys = ("head_dim",)
    conditions = sizes.routed_sparse_attention(1, 1, 64)

    n_frequencies: sizes.Positive = sizes.derived(frequencies)
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Positive = sizes.hf("index_topk")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(1)))
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts", "n_routed_experts", null=128)
    n_shared_experts: sizes.Natural = sizes.hf()
    unrotated_layers: sizes.Indices = sizes.derived(without_positions)
    reusing_layers: sizes.Indices = sizes.derived(reusing)
    lending_layers: sizes.Indices = sizes.derived(lending)
    borrowing_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(i for i, source in enumerate(sources(js, c)) if source != i)
    )

    norm_topk_prob = sizes.setting(default=True)
    rope = rotary_or_one_pair()
    logit_cap = sizes.setting("final_logit_softcapping")
    choose: ClassVar[Any] = Mistral4.choose
    moe: ClassVar[Any] = Mistral4.moe

    def decode(c, x: Data) -> Data:
        angles = ops.learned_angles(x, c.prefix + "rotary_emb.alpha", c.d_rope, c.n_frequencies, c.rope)
        return c.head(c.transform(x, angles))

    def kinds(c) -> parts.Kinds:
        return [(kind, 1) for kind in c.list_kinds()]

    def list_kinds(c) -> list[MistralLayer]:
        unrotated, reusing, dense = set(c.unrotated_layers), set(c.reusing_layers), set(c.dense_layers)
        latents = {**dict.fromkeys(c.lending_layers, LENT), **dict.fromkeys(c.borrowing_layers, BORROWED)}
        return [
            MistralLayer(i not in unrotated, i not in reusing, latents.get(i, OWN), "dense" if i in dense else "moe")
            for i in range(c.n_layers)
        ]

    def carry(c) -> tuple[Any, ...]:
        """The chosen tokens and the latents: of layers that rotate, its rotated keys, and of the others."""
        return (c.n_chosen, c.d_kv_lora, c.d_rope, c.d_kv_lora) if c.borrowing_layers else (c.n_chosen,)

    def layer(c, x: Data, *reads: Any) -> Any:
        angles, chosen, *latents, kind = reads
        h = c.norm(x, "input_layernorm")
        if kind.chooses:
            chosen = c.index(h, angles if kind.rotates else None)
        a, after = c.attend(h, angles, kind, chosen, tuple(latents))
        x = x + a
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if kind.mlp == "moe" else c.gated_mlp(h)), chosen, *after

    def attend(
        c, x: Data, angles: Data, kind: MistralLayer, chosen: Data, latents: tuple[Data, ...]
    ) -> tuple[Data, tuple[Data, ...]]:
        """x to attended x and the latents that later layers read."""
        prefix = "self_attn."
        q = ops.linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_nope + c.d_rope))
        if kind.latent == BORROWED:
            own = latents[:2] if kind.rotates else latents[2:]
        elif kind.rotates:
            width = c.d_kv_lora + c.d_rope
            latent, k_rope = ops.split(c.down(x, width), c.d_kv_lora, c.d_rope)
            own = (ops.cache(c.norm(latent, prefix + "kv_a_layernorm")), ops.cache(ops.rope_from(k_rope, angles)))
        else:
            own = (ops.cache(c.norm(c.down(x, c.d_kv_lora), prefix + "kv_a_layernorm")),)
        d_k = c.d_nope if kind.rotates else c.d_nope + c.d_rope
        k, v = ops.split(ops.linear(own[0], prefix + "kv_b_proj", "qkv.kv_up", (c.n_heads, d_k + c.d_v)), d_k, c.d_v)
        if kind.rotates:
            q_nope, q_rope = ops.split(q, c.d_nope, c.d_rope)
            q, k = ops.join(q_nope, ops.rope_from(q_rope, angles)), ops.join(k, ops.to_every_head(own[1], c.n_heads))
        q = ops.scale_by_log_position(q, prefix + "softmax_scaling.", ("scale", "bias"))
        a = parts.attend_to_chosen(q, k, v, chosen, scale=c.attention_scale)  # [n, n_heads, d_v]
        if latents and kind.latent == LENT:
            latents = (*own, *latents[2:]) if kind.rotates else (*latents[:2], *own)
        return ops.linear(a, prefix + "o_proj", "output_projection", c.d_model, bias=c.attention_bias), latents

    def down(c, x: Data, width: Any) -> Data:
        return ops.linear(x, "self_attn.kv_a_proj_with_mqa", "qkv.kv_down", width, bias=c.attention_bias)

    def index(c, x: Data, angles: Data | None) -> Data:
        """The tokens that each token attends to, [n, n_chosen]."""
        prefix = "self_attn.indexer."

        def rotate(y: Data) -> Data:
            if angles is None:
                return y
            turned, kept = ops.split(y, c.d_rope, c.d_index - c.d_rope)
            return ops.join(ops.rope_from(turned, angles), kept)

        q = ops.layer_norm(x, prefix + "q_input_norm", parts.LATENT_EPS)
        q = ops.linear(q, prefix + "wq_b", "other", (c.n_index_heads, c.d_index))
        q = rotate(ops.scale_by_log_position(q, prefix + "softmax_scaling.", ("scale", "bias")))
        k = ops.layer_norm(ops.linear(x, prefix + "wk", "other", c.d_index), prefix + "k_norm", parts.LATENT_EPS)
        of_heads = ops.linear(x, prefix + "weights_proj", "other", c.n_index_heads)
        return ops.choose_tokens(q, ops.cache(rotate(k)), of_heads, c.n_chosen)

    def head(c, x: Data) -> Data:
        return ops.soft_cap(super().head(x), c.logit_cap)

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_rope")
        if any(kind.rotates and kind.chooses for kind in c.list_kinds()):
            sizes.check_at_most(c, "d_rope", "d_index")
        for name in ("unrotated_layers", "lending_layers", "borrowing_layers"):
            sizes.check_layer_indices(c, name, "n_layers")
        sizes.check_reused_choices(c)
        check_latents_there(c)


def check_latents_there(c: MistralLarge4Text) -> None:
    """Raise an error if a layer reads a latent that no earlier layer of its kind, rotating or not, has stored."""
    stored: set[bool] = set()
    for i, kind in enumerate(c.list_kinds()):
        if kind.latent == LENT:
            stored.add(kind.rotates)
        if kind.latent == BORROWED and kind.rotates not in stored:
            raise ParamcountError(
                f"contains {i}, but no earlier layer with the same rotation stores a latent",
                where=FieldName("borrowing_layers"),
                expected="layers after one that stores such a latent",
            )


class MistralLarge4(Mistral3):
    """Source: modeling_mistral_large4.py of the reference."""

    reference = "MistralLarge4ForConditionalGeneration"
    sections = sizes.Sections(
        "mistral_large4_text",
        ignores_model_type=True,
        default_encoder="pixtral",
        default_encoder_section=LARGE_PIXTRAL,
    )
    reference_names = {}
    encoder_prefix = "model.vision_tower."
    projector_prefix = "model.multi_modal_projector."
    moved = ("model.", "model.language_model.")
    has_bare_head = False
