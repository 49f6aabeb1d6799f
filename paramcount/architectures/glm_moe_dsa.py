"""GLM-5: DeepSeek-V3.2's sparse attention, in which layers may look at the tokens that an earlier layer chose."""

from collections.abc import Hashable
from typing import Any

from paramcount.architectures.deepseek_v32 import DeepseekV32
from paramcount.declare import Data, ops, parts, sizes


def reusing(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers without an indexer."""
    words = sizes.read_indexer_types(js, c, c["n_layers"])
    return tuple(i for i in sizes.per_layer(c) if words[i] == "shared")


class GlmMoeDsa(DeepseekV32):
    """Source: arXiv:2602.15763; GlmMoeDsaDecoderLayer. `reusing_layers`: those without an indexer of their own."""

    reference = "GlmMoeDsaForCausalLM"
    gguf = "glm-dsa"
    conditions = sizes.routed_sparse_attention(1, 1, 64)

    reusing_layers: sizes.Indices = sizes.derived(reusing)

    def decode(c, x: Data) -> Data:
        kinds, width = list_kinds(c), (c.n_chosen,)
        x = ops.layers(x, "model.layers.{layer}.", kinds, lambda kind, x, chosen: c.share(x, kind, chosen), carry=width)
        return c.head(c.norm(x, "model.norm"))

    def share(c, x: Data, kind: tuple[str, str], chosen: Data | None) -> tuple[Data, Data | None]:
        """A layer and the tokens that it attends to. `chosen`: those of the last layer with an indexer."""
        indexer, mlp = kind
        h = c.norm(x, "input_layernorm")
        latent = parts.query_latent(c, h, "self_attn.", bias=c.attention_bias)
        if indexer == "full":
            chosen = parts.index_tokens(c, h, latent, "self_attn.indexer.", turn=parts.rotate_pairs(c))
        q = parts.queries(c, h, "self_attn.", latent, bias=c.attention_bias)  # [n, n_heads, d_nope + d_rope]
        x = x + parts.latent_attention(c, h, "self_attn.", bias=c.attention_bias, q=q, chosen=chosen)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if mlp == "moe" else c.mlp(h)), chosen

    def mtp(c, tokens: Data) -> Data | None:
        if c.reusing_layers:
            return None
        return parts.next_token_layers(c, tokens, lambda x: c.share(x, ("full", "moe"), None)[0])

    def has_unknown_mtp(c) -> bool:
        """What a release whose layers reuse a selection of tokens holds of an indexer there is not known."""
        return bool(c.reusing_layers) and c.n_mtp_layers > 0

    def check(c) -> None:
        super().check()
        sizes.check_reused_choices(c)


def list_kinds(c: Any) -> list[tuple[Hashable, ops.Size]]:
    if c.reusing_layers:
        return parts.typed_layers(
            ["shared" if i in c.reusing_layers else "full" for i in range(c.n_layers)], c.dense_layers
        )
    return [(("full", kind), n) for kind, n in parts.dense_or_moe(c.dense_layers, c.n_layers)]
