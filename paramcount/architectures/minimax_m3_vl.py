"""MiniMax M3: its language model and a vision encoder like CLIP's, with rotary positions, before two projectors."""

from typing import ClassVar

from paramcount.architectures.minimax_m3_vl_text import MiniMaxM3Text
from paramcount.declare import Data, ops, parts, sizes

ROWS_AND_COLUMNS = ops.Axes((1, 1), "restarted")


class MiniMaxM3Vision(parts.PatchVision):
    """A third of the pairs of a head rotates with the frame, a third with the row, a third with the column.

    An image is one frame, at 0. `n_pairs`: of a third; what is left of a head is not rotated.
    """

    config_class = "MiniMaxM3VLVisionConfig"

    unused_keys = ("image_size",)

    n_frames: sizes.Positive = sizes.hf("temporal_patch_size")
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")
    n_pairs: sizes.Natural = sizes.derived(lambda js, c: c["d_head"] // 3 // 2)

    rope = sizes.rotary()

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, square by square."""
        side, square, name = c.patch_size, c.merge_size, "vision_model.embeddings.patch_embedding"
        x = parts.embed_patches(pixels, name, c.d_model, side, square=square, frames=c.n_frames)
        x = c.norm(x, "vision_model.pre_layrnorm")  # spelled so
        places = ops.patch_places(pixels, side, side, square=square)
        return c.encode(x, places, name="vision_model.encoder.layers.{layer}.")

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads

        def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
            return c.rotate(q, places), c.rotate(k, places), v

        x = x + parts.multi_head(c, c.norm(x, "layer_norm1"), "self_attn.", turn=turn)
        return x + parts.encoder_mlp(c, c.norm(x, "layer_norm2"))

    def rotate(c, x: Data, places: Data) -> Data:
        n = c.n_pairs
        first, a, second, b, rest = ops.split(x, n, 2 * n, n, 2 * n, c.d_head - 6 * n)
        a, b = ops.split(ops.rope_at(ops.join(a, b), places, c.rope, ROWS_AND_COLUMNS), 2 * n, 2 * n)
        return ops.join(ops.join(ops.join(ops.join(first, a), second), b), rest)


def is_tied(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """At the top level or in the section of the language model."""
    return bool(js.get("tie_word_embeddings", False) or (js.get("text_config") or {}).get("tie_word_embeddings"))


class MiniMaxM3(parts.SeeingDecoder, MiniMaxM3Text):
    """Source: MiniMaxM3SparseForConditionalGeneration of the reference, modeling_minimax_m3_vl.py."""

    reference = "MiniMaxM3SparseForConditionalGeneration"
    reference_names = {
        "vision_tower.vision_model.embeddings.patch_embedding.": "model.vision_tower.embeddings.proj.",
        "vision_tower.vision_model.encoder.": "model.vision_tower.",
        "vision_tower.vision_model.": "model.vision_tower.",
        "language_model.lm_head.": "lm_head.",
        "language_model.model.": "model.language_model.",
        "": "model.",
        ".block_sparse_moe.": ".mlp.",
    }
    base_model = "MiniMaxM3VLModel"
    prefix = "language_model.model."
    head_name = "language_model.lm_head"
    modules = {
        ".block_sparse_moe.experts": (".mlp.experts",),
        ".block_sparse_moe.gate": (".mlp.gate",),
        ".mlp.gate_proj": (".mlp.gate_up_proj",),
        ".mlp.up_proj": (".mlp.gate_up_proj",),
        ".shared_experts.gate_proj": (".shared_experts.gate_up_proj",),
        ".shared_experts.up_proj": (".shared_experts.gate_up_proj",),
        ".index_q_proj": (".indexer.q_proj",),
        ".index_k_proj": (".indexer.k_proj",),
        "patch_merge_mlp.linear_1": ("multi_modal_projector.merge_linear_1",),
        "patch_merge_mlp.linear_2": ("multi_modal_projector.merge_linear_2",),
    }
    unused_keys = (*MiniMaxM3Text.unused_keys, "/merged_hidden_size")  # which the reference computes anew
    indexer: ClassVar[str] = "index_"

    tie_word_embeddings: sizes.Flag = sizes.derived(is_tied, at_root=True)
    d_projector: sizes.Positive = sizes.hf("/projector_hidden_size", absent=6144)
    vision: MiniMaxM3Vision

    image_token = sizes.setting("/image_token_index", "/image_token_id", default=200025)

    def see(c) -> Data:
        merged = ops.merge_rows(super().see(), c.vision.merge_size * c.vision.merge_size)
        return ops.block(merged, "patch_merge_mlp.", c.project, part="projector")

    def project(c, x: Data) -> Data:
        h = ops.activate(ops.linear(x, "linear_1", "projector", c.d_projector, bias=True), "gelu")
        return ops.linear(h, "linear_2", "projector", c.d_model, bias=True)

    def moe(c, x: Data) -> Data:
        prefix = "block_sparse_moe."
        logits = ops.linear(x, prefix + "gate", "router", c.n_routed_experts)  # [n, experts]
        bias = parts.routing_bias(c, prefix + "e_score_correction_bias")
        chosen = ops.route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True, factor=c.routed_scale)
        routed = ops.experts(x, chosen, prefix + "experts.{expert}.", c.n_routed_experts, c.n_active_experts, c.expert)
        return routed + c.mlp(x, prefix + "shared_experts.", "shared_experts", c.d_shared_expert)

    def expert(c, x: Data) -> Data:
        gate, up = (
            ops.linear(x, name, part, c.d_expert) for name, part in (("w1", "experts.gate"), ("w3", "experts.up"))
        )
        return ops.linear(c.gated(gate, up), "w2", "experts.down", c.d_model)  # [n, d_model]

    def mlp(c, x: Data, prefix: str, component: str, d_ff: ops.Size) -> Data:
        gate, up = (ops.linear(x, f"{prefix}{name}_proj", f"{component}.{name}", d_ff) for name in ("gate", "up"))
        return ops.linear(c.gated(gate, up), prefix + "down_proj", component + ".down", c.d_model)
