"""ESM-1b and ESM-2, encoders of proteins: norms before attention and MLP, learned or rotary positions."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

TABLE = "esm.embeddings.word_embeddings.weight"
MASKED = 0.15 * 0.8  # the share of tokens that were masked in training


def padding_is_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Positions are numbered from the padding token on, also those that no table has."""
    token = js.get("pad_token_id")
    if type(token) is not int:
        raise sizes.make_value_error(token, "pad_token_id", "a token id")
    sizes.padding_inside(0, places=2 if c["positions_added"] else 0)(js, c)


def mask_is_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("token_dropout") and js.get("mask_token_id") is None:
        raise ParamcountError("is missing, but token_dropout = true", where="mask_token_id", expected="a token id")


def rotary_angles_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["positions_rotated"]:
        sizes.angles_fit_heads(js, c)


class Esm(parts.Encoder):
    """Source: doi:10.1126/science.ade2574, supplementary section 1.2; EsmLayer of the reference."""

    reference = "EsmForMaskedLM"
    task_heads = {"ForSequenceClassification": parts.tasks.FIRST, "ForTokenClassification": parts.TOKENS}
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.not_null("layer_norm_eps", "hidden_dropout_prob"),
        sizes.memory_needs_a_decoder,
        padding_is_known,
        mask_is_known,
        rotary_angles_fit,
    )
    prefix = "esm."
    last_norm = "encoder.emb_layer_norm_after"

    vocab_size: sizes.Positive = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    cross_attention: sizes.Flag = sizes.hf(null=False)
    positions_added: sizes.Flag = sizes.derived(
        lambda js, c: js.get("position_embedding_type", "absolute") == "absolute"
    )
    positions_rotated: sizes.Flag = sizes.derived(lambda js, c: js.get("position_embedding_type") == "rotary")
    n_frequencies: sizes.Natural = sizes.derived(lambda js, c: -(-c["d_head"] // 2))
    embeddings_normed: sizes.Flag = sizes.hf("emb_layer_norm_before", absent=False, null=False)
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation: ClassVar = "gelu"
    base = sizes.setting("rope_theta")
    first_position = sizes.setting(default=lambda js, c: js.get("pad_token_id", 0) + 1)
    masked_id = sizes.setting(default=lambda js, c: js.get("mask_token_id") if js.get("token_dropout") else None)

    def count_unused_positions(c) -> int:
        return super().count_unused_positions() if c.positions_added else 0

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.look_up(tokens)
        if c.masked_id is not None:
            x = ops.scale_unmasked(x, tokens, c.masked_id, MASKED)
        if c.positions_added:
            name, first = "esm.embeddings.position_embeddings.weight", c.first_position
            x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model, offset=first)
        return c.norm(x, "esm.embeddings.layer_norm") if c.embeddings_normed else x

    def look_up(c, tokens: Data) -> Data:
        return parts.embed_tokens(c, tokens, None, c.d_model, has_positions=False)

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        if not c.positions_rotated:
            return ()
        return (ops.stored_sinusoids(tokens, "esm.rotary_embeddings.inv_freq", c.d_head, c.n_frequencies, c.base),)

    def layer(c, x: Data, *reads: Data) -> Data:
        n = 1 if c.positions_rotated else 0
        angles, memory = reads[:n], reads[n:]
        x = x + c.attend(c.norm(x, "attention.LayerNorm"), "attention.", None, *angles)
        for source in memory:
            x = parts.crossing(x, "crossattention.", c.look, source, *angles)
        return x + parts.bert_mlp(c, c.norm(x, "LayerNorm"))

    def look(c, x: Data, memory: Data, *angles: Data) -> Data:
        return x + c.attend(c.norm(x, "LayerNorm"), "", memory, *angles)

    def attend(c, x: Data, prefix: str, memory: Data | None, *angles: Data) -> Data:
        def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
            for table in angles:
                q, k = ops.rope_from(q, table, "halves"), ops.rope_from(k, table, "halves")
            return q, k, v

        return parts.bert_attention(c, x, prefix, memory, turn=turn)

    def head(c, x: Data) -> Data:
        h = c.norm(
            ops.activate(ops.linear(x, "lm_head.dense", "other", c.d_model, bias=True), "gelu"), "lm_head.layer_norm"
        )
        return ops.add_vector(parts.head(c, h, TABLE, "lm_head.decoder"), "lm_head.bias", "lm_head", c.vocab_size)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        attention = ops.given("attention weights", "tokens", c.n_layers * c.n_heads)
        contacts = ops.linear(attention, "esm.contact_head.regression", "other", 1, bias=True)
        return (ops.Unreachable(contacts, "the forward pass predicts no contacts"),)

    def check(c) -> None:
        super().check()
        if c.positions_rotated:
            sizes.check_even(c, "d_head")
