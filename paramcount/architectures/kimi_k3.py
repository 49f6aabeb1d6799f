"""Kimi K3: Kimi Linear's layers with gated attention and experts that read and write a latent, before each of which a
token attends to what earlier blocks of layers left; MoonViT with RMS norms and heads wider than the model.
"""

from typing import Any

from paramcount.architectures.kimi_linear import KimiLinear
from paramcount.architectures.kimi_vl import Kimi
from paramcount.declare import Data, ops, parts, sizes

SITU = ops.Unknown("activation")  # tanh times sigmoid, which no operation computes


class KimiK3Text(KimiLinear):
    """Attention to earlier blocks of layers is not described, and SiTU not computed.

    A_log has a value for each channel of a head, as in the released files; the code reads one for each head.

    Source: modeling_kimi_linear.py of moonshotai/Kimi-K3, as kimi_k3.py of sgl-project/sglang@0000e9b46f38 reads it.
    """

    reference = "KimiLinearForCausalLM of moonshotai/Kimi-K3"
    model_types = ("kimi_k3_text",)
    is_found_by_class = False
    gguf = ""
    config_class = "KimiLinearConfig"
    reference_names = {}
    modules = {}

    d_latent: sizes.Positive | None = sizes.hf("routed_expert_hidden_size", absent=None)
    latent_norm: sizes.Flag = sizes.hf("latent_moe_use_norm", absent=False)
    layers_per_block: sizes.Positive | None = sizes.hf("attn_res_block_size", absent=None)
    full_gate: sizes.Flag = sizes.hf("linear_attn_config.use_full_rank_gate", absent=False)
    mla_gate: sizes.Flag = sizes.hf("mla_use_output_gate", absent=False)

    activation = "silu"  # of convolutions
    floor = sizes.setting("linear_attn_config.gate_lower_bound", default=None, kind=sizes.NUMBER)

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(c.look_back(x, "self_attention_res"), "input_layernorm")
        if word in ("full_attention", "attention"):
            gate = parts.sigmoid_gate("self_attn.g_proj") if c.mla_gate else None
            x = x + parts.latent_attention(c, h, "self_attn.", turn=lambda y: y, gate=gate)
        else:
            x = x + c.delta_attention(h, "self_attn.")
        h = c.norm(c.look_back(x, "mlp_res"), "post_attention_layernorm")
        if density == "moe":
            return x + c.moe(h, "block_sparse_moe.")
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=SITU)

    def look_back(c, x: Data, name: str) -> Data:
        """A token's sum so far and those that earlier blocks left, weighted by a softmax of one score each."""
        if c.layers_per_block is None:
            return x
        held = (
            ops.Weight(f"{name}_norm.weight", "norm", (c.d_model,)),
            ops.Weight(f"{name}_proj.weight", "other", (1, c.d_model)),
        )
        return Data("attention to earlier blocks", (x,), x.shape, held)

    def delta_attention(c, x: Data, prefix: str) -> Data:
        """`parts.kimi_delta_attention` whose gate may be one matrix."""
        heads = (c.n_linear_heads, c.d_linear_head)
        width = c.n_linear_heads * c.d_linear_head
        q, k, v = parts.linear_attention.streams_apart(c, x, prefix, heads, heads)
        step = ops.linear(x, prefix + "f_a_proj", "mixer.step", c.d_linear_head)
        step = ops.to_heads(ops.linear(step, prefix + "f_b_proj", "mixer.step", width), *heads)
        beta = ops.activate(ops.linear(x, prefix + "b_proj", "mixer.beta", c.n_linear_heads), "sigmoid")
        held = (
            ops.Weight(prefix + "A_log", "mixer.state", heads[1:]),
            ops.Weight(prefix + "dt_bias", "mixer.state", (width,)),
        )
        y = parts.delta_rule(q, k, v, step, beta, *held, floor=c.floor)
        if c.full_gate:
            z = ops.linear(x, prefix + "g_proj", "mixer.gate", width)
        else:
            z = ops.linear(x, prefix + "g_a_proj", "mixer.gate", c.d_linear_head)
            z = ops.linear(z, prefix + "g_b_proj", "mixer.gate", width)
        names = (prefix + "o_norm", prefix + "o_proj")
        return parts.gated_output(y, ops.to_heads(z, *heads), *names, c.d_model, eps=c.norm_eps, activation="sigmoid")

    def moe(c, x: Data, prefix: str) -> Data:
        """Experts between two matrices, and shared ones beside them."""
        n, active = c.n_routed_experts, c.n_active_experts
        scores = c.choose(ops.linear(x, prefix + "gate", "router", n))  # [n, experts]
        h = x if c.d_latent is None else ops.linear(x, prefix + "routed_expert_down_proj", "other", c.d_latent)

        def expert(x: Data) -> Data:
            return parts.gated_mlp(x, "", "experts", c.d_expert, names=("w1", "w3", "w2"), activation=SITU)

        y = ops.experts(h, scores, prefix + "experts.{expert}.", n, active, expert)
        if c.d_latent is not None:
            y = c.norm(y, prefix + "routed_expert_norm") if c.latent_norm else y
            y = ops.linear(y, prefix + "routed_expert_up_proj", "other", c.d_model)
        width = c.n_shared_experts * c.d_expert
        return y + parts.gated_mlp(x, prefix + "shared_experts.", "shared_experts", width, activation=SITU)

    def last(c, x: Data) -> Data:
        return super().last(c.look_back(x, c.prefix + "output_attn_res"))


def head_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Heads share `qkv_hidden_size`, or the hidden size without it."""
    width = js.get("qkv_hidden_size")
    width = c["d_model"] if width is None else width
    if type(width) is not int or width < 1 or width % c["n_heads"]:
        raise sizes.make_value_error(width, "vision_config.qkv_hidden_size", f"a multiple of {c['n_heads']}")
    return int(width // c["n_heads"])


class KimiK3Vision(parts.MoonViT):
    """Source: kimi_k3_vl.py of sgl-project/sglang@0c8298348941."""

    config_class = ""
    conditions = (
        sizes.one_of("norm_type", ("rmsnorm",), "layernorm"),
        sizes.one_of("pos_emb_type", ("divided_fixed",), "divided_fixed"),
        sizes.one_of("pos_emb_interpolation_mode", ("bicubic", "bilinear"), "bicubic"),
        sizes.one_of("mm_projector_type", ("patchmergerv2",), "patchmergerv2"),
    )

    d_model: sizes.Positive = sizes.hf("vt_hidden_size")
    n_layers: sizes.Natural = sizes.hf("vt_num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("vt_num_attention_heads")
    d_head: sizes.Positive = sizes.derived(head_size)
    d_ff: sizes.Natural = sizes.hf("vt_intermediate_size")
    d_out: sizes.Positive = sizes.hf("mm_hidden_size", absent=sizes.equal_to("d_model"))
    n_rows: sizes.Positive = sizes.hf("init_pos_emb_height")
    n_columns: sizes.Positive = sizes.hf("init_pos_emb_width")
    attention_bias: sizes.Flag = sizes.hf("attn_bias", absent=True)
    linear_bias: sizes.Flag = sizes.hf("linear_bias", absent=True)
    patch_bias: sizes.Flag = sizes.hf("patch_embed_proj_bias", absent=True)

    activation = sizes.setting("activation_func", default="gelu_pytorch_tanh")
    norm_eps = 2.0**-23  # what torch takes if none is given, in float32
    interpolation = sizes.setting("pos_emb_interpolation_mode", default="bicubic")

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        x = parts.embed_patches(pixels, "patch_embed.proj", c.d_model, c.patch_size, bias=c.patch_bias)
        table = ("patch_embed.pos_emb.weight", c.n_rows, c.n_columns, c.d_model)
        x = x + ops.lookup_in_grid(
            places, *table, stretch="centres, cubic" if c.interpolation == "bicubic" else "centres"
        )
        return c.norm(c.encode(x, places, name="encoder.blocks.{layer}."), "encoder.final_layernorm")

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.attention(c.norm(x, "norm0"), *reads)
        names = ("mlp.fc0", "mlp.fc1")
        h = c.norm(x, "norm1")
        return x + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=c.linear_bias)

    def attention(c, x: Data, places: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "wqkv", bias=c.attention_bias)  # [n, n_heads, d_head]
        q, k = (ops.rope_at(y, places, c.rope, parts.moonvit.COLUMNS_AND_ROWS, "interleaved") for y in (q, k))
        return ops.linear(ops.attend(q, k, v), "wo", "output_projection", c.d_model, bias=c.attention_bias)

    def check(c) -> None:
        """Heads need not fill the hidden size."""
        sizes.check_equal(c, "d_out", "d_model")


class KimiK3(Kimi):
    """Frames of a video are averaged; an image is one. Source: kimi_k3_vl.py of sgl-project/sglang@0c8298348941."""

    reference = "KimiK3ForConditionalGeneration of moonshotai/Kimi-K3"
    base_model = ""
    sections = sizes.Sections("kimi_k3_text", tie_rule="text", ignores_model_type=True)
    reference_names = {}
    projector_prefix = "mm_projector."
    projector = ("proj.0", "proj.2")
    projector_bias = False

    vision: KimiK3Vision

    norm_eps = sizes.setting("vision_config.projector_ln_eps", default=1e-5)
    image_token = sizes.setting("media_placeholder_token_id", default=None)

    def project(c: Any, x: Data, *places: Data) -> Data:
        merged = c.vision.merged_rows * c.vision.merged_columns
        x = c.widen(ops.merge_squares(x, merged, *places), merged * c.vision.d_model)
        return ops.rms_norm(x, "post_norm", c.norm_eps)
