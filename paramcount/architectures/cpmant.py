"""CPM-Ant: Llama-like layers over tokens, prompts and segments.

All layers share one table of relative positions and segment pairs.
"""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

QKVO = ("project_q", "project_k", "project_v", "attention_out")
PROMPT = 2  # the kind of prompt, and the segment of a text


class CpmAnt(sizes.Sizes):
    """Source: modeling_cpmant.py of the reference. The head is never tied: the embedding has more rows, for prompts."""

    reference = "CpmAntForCausalLM"
    conditions = (
        sizes.buckets_reach("position_bias_num_buckets", "position_bias_max_distance", 2048, one_sided=False),
    )

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("dim_head")
    d_ff: sizes.Natural = sizes.hf("dim_ff")
    n_buckets: sizes.Positive = sizes.hf("position_bias_num_buckets")
    n_prompts: sizes.Positive = sizes.hf("prompt_types")
    prompt_length: sizes.Positive = sizes.hf("prompt_length")
    n_segments: sizes.Positive = sizes.hf("segment_types")

    norm_eps = sizes.setting("eps")
    farthest = sizes.setting("position_bias_max_distance")

    def forward(c, tokens: Data) -> Data:
        """A prompt of a kind that the config does not choose stands in front of the text, in a segment of its own."""
        table, n_rows = "cpmant.input_embedding.weight", c.vocab_size + c.n_prompts * c.prompt_length
        x, first = ops.lookup(tokens, table, "embedding", n_rows, c.d_model), c.vocab_size + PROMPT * c.prompt_length
        prompt = ops.learned_rows(table, "embedding", n_rows, c.d_model, n=c.prompt_length, first=first)
        segments = ops.given("segments of the text", "tokens", default=PROMPT)
        segments = ops.put_in_front(
            ops.given("segments of the prompt", c.prompt_length, default=0), segments, once=True
        )
        of_segments = ops.lookup(
            segments, "cpmant.segment_embedding.weight", "other_embedding", c.n_segments, c.d_model
        )
        x = ops.put_in_front(prompt, x, once=True) + of_segments
        buckets = ops.bucket_distances_or_segments(segments, c.n_buckets, c.farthest, c.n_segments)
        n_rows, name = c.n_segments * c.n_segments + c.n_buckets, "cpmant.position_bias.relative_attention_bias"
        bias = ops.lookup(buckets, name, "position", n_rows, c.n_heads)
        kinds = [("layer", c.n_layers)]
        x = ops.layers(
            x, "cpmant.encoder.layers.{layer}.", kinds, lambda kind, x, bias: c.layer(x, bias), reads=(bias,)
        )
        return ops.linear(
            ops.text_alone(c.norm(x, "cpmant.encoder.output_layernorm")), "lm_head", "lm_head", c.vocab_size
        )

    def layer(c, x: Data, bias: Data) -> Data:
        """All tokens see each other: those of a prompt, and, when one is added to it, those before it."""
        h = c.norm(x, "self_att.layernorm_before_attention")

        def mix(q: Data, k: Data, v: Data) -> Data:
            return ops.attend(q, ops.cache(k), ops.cache(v), bias)  # [n, n_heads, d_head]

        x = x + parts.multi_head(c, h, "self_att.self_attention.", QKVO, bias=False, mix=mix)
        h, names = c.norm(x, "ffn.layernorm_before_ffn"), ("w_in.w_0", "w_in.w_1", "w_out")
        return x + parts.gated_mlp(h, "ffn.ffn.", "mlp", c.d_ff, activation="gelu", names=names)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)

    def check(c) -> None:
        for name in ("n_prompts", "n_segments"):
            if getattr(c, name) < 3:
                raise ParamcountError(
                    f"= {getattr(c, name)}, but text tokens use index 2", where=FieldName(name), expected="at least 3"
                )
