"""Molmo: CLIP's vision encoder of which two layers are looked at, attention that pools squares of patches, and OLMo's
or Qwen 2's layers. The sizes of the encoder stand in the authors' code.
"""

from paramcount.architectures.molmo2 import SQUARE, Molmo2Adapter, Molmo2Vision
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

N_ADDITIONAL = 128  # tokens, in a table of their own
VIEWS = (-2, -9)


def halves(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    n = js.get("intermediate_size", 11008)
    if type(n) is not int or n < 1 or n % 2:
        raise ParamcountError(f"= {describe_value(n)}", where="intermediate_size", expected="an even integer")
    return n // 2


def n_rows(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of the token embedding and of the LM head, which may have more than the vocabulary."""
    n, size = js.get("vocab_size", 50304), js.get("embedding_size", 50304)
    if size and n > size:
        raise ParamcountError(f"= {describe_value(size)}", where="embedding_size", expected=f"{n:,} or more")
    return int(size or n)


class MolmoVision(Molmo2Vision):
    section = "vision"  # which no config.json has: the defaults are the sizes of the code
    defaults = {
        "d_model": 1024, "n_heads": 16, "n_kv_heads": 16, "d_head": 64, "d_ff": 4096, "n_channels": 3,
        "patch_size": 14, "attention_bias": True, "activation": "quick_gelu", "norm_eps": 1e-5,
    }  # fmt: skip

    n_layers: sizes.Natural = sizes.derived(lambda js, c: 23)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: 24 * 24)

    def forward(c, pixels: Data) -> Data:
        """One image to the hidden states of its class token and its patches."""
        x = ops.cut(pixels, c.patch_size, c.patch_size, axes="hwc")
        x = ops.class_token(ops.linear(x, "patch_embedding", "embedding", c.d_model), "class_embedding")
        x = ops.add_positions(x, "positional_embedding", c.n_patches + 1, c.d_model)
        return c.encode(c.norm(x, "pre_ln"), name="transformer.resblocks.{layer}.")


class MolmoAdapter(Molmo2Adapter):
    section = None

    d_model = sizes.constant(1024)
    n_heads = sizes.constant(16)
    n_kv_heads = sizes.constant(16)
    d_head = sizes.constant(64)
    attention_bias = sizes.constant(True)
    mlp_bias = sizes.constant(False)
    n_views = sizes.constant(len(VIEWS))
    d_ff: sizes.Natural = sizes.derived(halves)
    d_out: sizes.Positive = sizes.hf("hidden_size", absent=4096)

    activation = sizes.setting(default="silu")
    views = sizes.setting(default=VIEWS)

    def view(c, x: Data) -> Data:
        """States of patches; patches of the border of the image that are padded have another learned vector."""
        x = ops.other_tokens(super().view(x))
        return ops.elementwise(x, "padding", "pad_embed", "projector", 2, c.n_views * c.d_model)


class Molmo(parts.Decoder):
    """Source: arXiv:2409.17146, section 2; modeling_molmo.py of allenai/Molmo-7B-D-0924."""

    reference = "MolmoForCausalLM of allenai/Molmo-7B-D-0924"
    prefix = "model.transformer."
    names = ("wte.embedding", "blocks", "ln_f")
    head_name = "model.transformer.ff_out"
    rotated = "d_head"
    unused_keys = ("clip_qkv", "vocab_size", "weight_tying")
    conditions = (sizes.one_of("layer_norm_type", ("rms", "default", "low_precision"), "rms"),)
    defaults = {"d_model": 4096, "n_layers": 32}

    vocab_size: sizes.Positive = sizes.derived(n_rows)
    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.derived(halves)
    qkv_bias: sizes.Flag = sizes.hf(absent=False)
    qk_norm: sizes.Flag = sizes.hf("attention_layer_norm", absent=False)
    post_norm: sizes.Flag = sizes.hf("norm_after", absent=False)
    rms_norms: sizes.Flag = sizes.derived(lambda js, c: js.get("layer_norm_type", "rms") == "rms")
    tie_word_embeddings: sizes.Flag = sizes.derived(lambda js, c: False)  # whatever the key says

    vision: MolmoVision
    adapter: MolmoAdapter

    norm_eps = sizes.setting("layer_norm_eps", default=1e-5)
    activation = sizes.setting(default="silu")
    rope = sizes.rotary(10_000, 2048, scaled=False)

    def forward(c, tokens: Data) -> Data:
        pixels, name = c.vision.image(), "model.vision_backbone."
        image = ops.block(pixels, name + "image_vit.", c.vision.forward, part="vision")
        image = ops.block(image, name, c.adapter.view, part="projector")
        places = ops.patch_places(pixels, c.vision.patch_size, c.vision.patch_size)
        pooled = ops.given("pooled patches", "image", SQUARE)
        image = ops.block(image, name, c.adapter.pool, reads=(places, pooled), part="projector")
        return c.decode(ops.insert_sum(c.embed(tokens), tokens, image, ops.Unknown("image_patch_id")))

    def embed(c, tokens: Data) -> Data:
        more = (c.prefix + "wte.new_embedding", N_ADDITIONAL)
        return ops.lookup_continued(tokens, c.prefix + "wte.embedding", "embedding", c.vocab_size, c.d_model, *more)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps) if c.rms_norms else ops.layer_norm(x, name, c.norm_eps, bias=False)

    def layer(c, x: Data) -> Data:
        if c.post_norm:
            x = x + c.norm(c.attend(x), "attn_norm")
            return x + c.norm(c.feed_forward(x), "ff_norm")
        x = x + c.attend(c.norm(x, "attn_norm"))
        return x + c.feed_forward(c.norm(x, "ff_norm"))

    def attend(c, x: Data) -> Data:
        kv = c.n_kv_heads * c.d_head
        q, k, v = ops.fused(x, "att_proj", {"qkv.q": c.d_model, "qkv.k": kv, "qkv.v": kv}, bias=c.qkv_bias)
        if c.qk_norm:
            q, k = c.norm(q, "q_norm"), c.norm(k, "k_norm")
        heads = (c.n_heads, c.n_kv_heads, c.n_kv_heads)
        q, k, v = (ops.to_heads(y, n, c.d_head) for y, n in zip((q, k, v), heads, strict=True))  # [n, heads, d_head]
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)
        return ops.linear(a, "attn_out", "output_projection", c.d_model)

    def feed_forward(c, x: Data) -> Data:
        up, gate = ops.fused(x, "ff_proj", {"mlp.up": c.d_ff, "mlp.gate": c.d_ff})
        return ops.linear(ops.activate(gate, c.activation) * up, "ff_out", "mlp.down", c.d_model)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_divides(c, "n_kv_heads", "n_heads")
