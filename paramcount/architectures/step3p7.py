"""Step 3.7: Step 3.5's layers, and a vision encoder like Perception Encoder before two convolutions that shrink the
image.
"""

from paramcount.architectures.step3p5 import Step35
from paramcount.declare import Data, ops, parts, sizes


class Step37Vision(parts.PatchVision):
    config_class = "Step3p7VisionConfig"
    unused_keys = ("intermediate_size",)

    d_model: sizes.Positive = sizes.hf("width", "hidden_size")
    n_layers: sizes.Natural = sizes.hf("layers", "num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("heads", "num_attention_heads")
    d_ff: sizes.Natural = sizes.derived(sizes.times_mlp_ratio(8960 / 1536))
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 728) // c["patch_size"]) ** 2)

    rope = sizes.setting(default=sizes.axial_rope)

    def forward(c, pixels: Data) -> Data:
        """One square image to vectors of squares of 4 × 4 patches."""
        places, table = ops.patch_places(pixels, c.patch_size, c.patch_size), (c.n_patches, c.d_model)
        x = parts.embed_patches(pixels, "conv1", c.d_model, c.patch_size)
        x = x + ops.lookup_in_grid(places, "positional_embedding", *table, stretch="centres")
        turned = ops.other_tokens(ops.patch_places(pixels, c.patch_size, c.patch_size, class_place="first"))
        x = c.encode(c.norm(x, "ln_pre"), turned, name="transformer.resblocks.{layer}.")
        x = ops.convolve_image(x, "vit_downsampler1", "mixer", 2 * c.d_model, 3, stride=2, bias=True)
        return ops.convolve_image(x, "vit_downsampler2", "mixer", 4 * c.d_model, 3, stride=2, bias=True)

    def layer(c, x: Data, *reads: Data) -> Data:
        return parts.scaled_layer(c, x, lambda h: c.attend(h, *reads))

    def attend(c, x: Data, places: Data) -> Data:
        shares = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), (c.n_heads, c.d_head))
        q, k, v = ops.fused(x, "attn.in_proj", shares, bias=True, suffixes=("_weight", "_bias"))
        return parts.attend_by_places(c, (q, k, v), places, parts.perception.COLUMNS_AND_ROWS, "attn.out_proj")

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_two_directions(c)


class Step37(parts.SeeingDecoder, Step35):
    """Source: Step3p7ForConditionalGeneration of the reference, modeling_step3p7.py. Names as in released files."""

    reference = "Step3p7ForConditionalGeneration"
    ignores_rope = True
    reference_names = {
        "vision_model.conv1.": "model.vision_model.embeddings.patch_embedding.",
        "vision_model.transformer.resblocks.": "model.vision_model.layers.",
        "vision_model.": "model.vision_model.",
        "multi_modal_projector.": "model.multi_modal_projector.",
        "lm_head.": "lm_head.",
        "model.": "model.language_model.",
        ".shared_experts.": ".mlp.shared_experts.",
    }
    base_model = "Step3p7Model"
    encoder_prefix = "vision_model."
    projector_prefix = ""
    modules = {
        ".moe.gate_proj": (".mlp.experts.gate_up_proj",),
        ".moe.up_proj": (".mlp.experts.gate_up_proj",),
        ".moe.down_proj": (".mlp.experts.down_proj",),
        ".moe.gate": (".mlp.gate",),
        ".share_expert.gate_proj": (".shared_experts.gate_proj",),
        ".share_expert.up_proj": (".shared_experts.up_proj",),
        ".share_expert.down_proj": (".shared_experts.down_proj",),
        ".attn.in_proj": (".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj"),
        ".attn.out_proj": (".self_attn.out_proj",),
        ".mlp.c_fc": (".mlp.fc1",),
        ".mlp.c_proj": (".mlp.fc2",),
        "vit_large_projector": ("multi_modal_projector",),
    }

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=False, null=False)
    projector_bias: sizes.Flag = sizes.hf("/projector_bias", absent=False)
    vision: Step37Vision

    image_token = sizes.setting("/image_token_id", default=151679)

    def project(c, x: Data) -> Data:
        return ops.linear(x, "vit_large_projector", "projector", c.d_model, bias=c.projector_bias)
