"""XLM: BERT with language embeddings instead of segments.

The LM head has a bias, reads the last layer directly and is tied to the token embedding.
"""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def plain_encoder(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    has_lm_head = str((js.get("architectures") or ["WithLMHeadModel"])[0]).endswith("WithLMHeadModel")
    for key, wanted in (("is_encoder", True), ("asm", False))[: 1 + has_lm_head]:
        if sizes.flag(js, key, wanted) is not wanted:
            raise ParamcountError(
                f"= {describe_value(js[key])} is not supported", where=key, expected=describe_value(wanted)
            )


class XLM(parts.Headed):
    """Source: arXiv:1901.07291, section 3; XLMModel of the reference."""

    reference = "XLMWithLMHeadModel"
    task_heads = "XLM"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (plain_encoder, sizes.padding_in_table(2, "pad_index"))

    vocab_size: sizes.Positive = sizes.hf("n_words", "vocab_size")
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_langs: sizes.Positive = sizes.hf("n_langs")
    use_lang_emb: sizes.Flag = sizes.hf("use_lang_emb")
    has_languages: sizes.Flag = sizes.derived(lambda js, c: c["use_lang_emb"] and c["n_langs"] > 1)
    d_model: sizes.Positive = sizes.hf("hidden_size", "emb_dim")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4 * c["d_model"])
    causal: sizes.Flag = sizes.hf("causal")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting(default=lambda js, c: "gelu" if js.get("gelu_activation", True) else "relu")
    norm_eps = sizes.setting("layer_norm_eps")
    norm = parts.use_layer_norm
    check = sizes.check_heads_fill

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, *languages: Data) -> Data:
            x = c.embed(tokens, *languages)
            x = ops.layers(x, "transformer.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
            return parts.head(c, x, "transformer.embeddings.weight", "pred_layer.proj", bias=True) if head else x

        reads = (ops.given("languages", "tokens"),) if c.has_languages else ()
        return ops.block(tokens, "", build, reads=reads, part="decoder" if c.causal else "encoder")

    def embed(c, tokens: Data, *languages: Data) -> Data:
        x = ops.lookup(tokens, "transformer.embeddings.weight", "embedding", c.vocab_size, c.d_model)
        name = "transformer.position_embeddings.weight"
        x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model)
        for ids in languages:
            x = x + ops.lookup(ids, "transformer.lang_embeddings.weight", "other_embedding", c.n_langs, c.d_model)
        return c.norm(x, "transformer.layer_norm_emb")

    def layer(c, x: Data) -> Data:
        """What belongs to a layer is stored in four lists side by side."""
        names = ("q_lin", "k_lin", "v_lin", "out_lin")
        a = parts.multi_head(c, x, "attentions.{layer}.", names, mix=parts.causally_if(c.causal))
        x = c.norm(x + a, "layer_norm1.{layer}")
        matrices = ("ffns.{layer}.lin1", "ffns.{layer}.lin2")
        mlp = parts.plain_mlp(x, matrices, "mlp", c.d_ff, activation=c.activation, bias=True)
        return c.norm(x + mlp, "layer_norm2.{layer}")
