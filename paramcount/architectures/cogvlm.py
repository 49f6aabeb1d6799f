"""CogVLM2: Llama's layers with other matrices for the tokens of an image, and EVA2-CLIP's encoder."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError
from paramcount.parts.eva2_clip import Eva2Clip, join_squares


def of_cogvlm2(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """CogVLM's own code has the same model type and class, and no key for the number of KV heads."""
    if "num_multi_query_heads" not in js:
        expected = "the number of KV heads of CogVLM2; CogVLM is not supported"
        raise ParamcountError("is missing", where="num_multi_query_heads", expected=expected)


class CogVLM(parts.Decoder):
    """Source: arXiv:2311.03079, section 2.1; arXiv:2408.16500, section 2.1; modeling_cogvlm.py of
    THUDM/cogvlm2-llama3-chat-19B.
    """

    reference = "CogVLMForCausalLM of THUDM/cogvlm2-llama3-chat-19B"
    rotated = "d_head"
    conditions = (of_cogvlm2,)
    defaults = {"vocab_size": 128256, "d_model": 4096, "n_layers": 32, "tie_word_embeddings": False}
    unused_keys = ("num_key_value_heads", "template_version")

    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.hf("num_multi_query_heads", absent=8)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf(absent=14336)
    n_pairs: sizes.Natural = sizes.derived(lambda js, c: c["d_head"] // 2)
    vision: Eva2Clip

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    activation = sizes.setting("hidden_act", default="silu")
    rope = ops.Rope(500_000.0)

    def forward(c, tokens: Data) -> Data:
        image = ops.block(c.vision.image(), "model.vision.", c.vision.forward, part="vision")
        image = ops.block(image, "model.vision.", c.project, part="projector")
        return c.decode(ops.insert(c.embed(tokens), tokens, image, ops.Unknown("image_token")))

    def project(c, x: Data) -> Data:
        return join_squares(x, c.vision.d_model, c.d_ff, c.d_model)

    def layer(c, x: Data) -> Data:
        h, name = c.norm(x, "input_layernorm"), "self_attn.{kind}_expert_query_key_value"
        h = ops.elementwise(h, "frequencies", "self_attn.rotary_emb.inv_freq", "other", c.n_pairs, role="buffer")
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": (c.n_kv_heads, c.d_head), "qkv.v": (c.n_kv_heads, c.d_head)}
        seen = ops.fused(h, name.format(kind="vision"), shares, bias=True)
        read = ops.fused(h, name.format(kind="language"), shares)
        q, k, v = (choose(*pair) for pair in zip(seen, read, strict=True))  # [n, heads, d_head]
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)
        names = (f"self_attn.{kind}_expert_dense" for kind in ("vision", "language"))
        x = x + choose(*(ops.linear(a, name, "output_projection", c.d_model) for name in names))
        h = c.norm(x, "post_attention_layernorm")
        return x + choose(*(c.gated_mlp(h, f"mlp.{kind}_mlp.") for kind in ("vision", "language")))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_divides(c, "n_kv_heads", "n_heads")


def choose(seen: Data, read: Data) -> Data:
    """By the token: the first for those of an image."""
    return Data("choose by token", (seen, read), read.shape)
