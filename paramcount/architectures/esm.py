"""ESM-1b and ESM-2, encoders of proteins: norms before attention and MLP, learned or rotary positions."""

from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    Data,
    Unreachable,
    activate,
    add_vector,
    given,
    linear,
    lookup,
    rope_from,
    scale_unmasked,
    stored_sinusoids,
)
from paramcount.parts.classic import crossing
from paramcount.parts.decoders import head
from paramcount.parts.encoders import Encoder, bert_attention, bert_mlp, embed_tokens
from paramcount.parts.tasks import FIRST, TOKENS
from paramcount.sizes import (
    Condition,
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    class_ends,
    derived,
    hf,
    setting,
)
from paramcount.sizes.conditions import angles_fit_heads, memory_needs_a_decoder, not_null, padding_inside
from paramcount.sizes.rules import check_even

TABLE = "esm.embeddings.word_embeddings.weight"
MASKED = 0.15 * 0.8  # the share of tokens that were masked in training


def padding_is_known(js: ConfigJson, c: FieldValues) -> None:
    """Positions are numbered from the padding token on, also those that no table has."""
    token = js.get("pad_token_id")
    if type(token) is not int:
        raise ParamcountError(f"= {describe_value(token)}", where="pad_token_id", expected="a token id")
    padding_inside(0, places=2 if c["positions_added"] else 0)(js, c)


def mask_is_known(js: ConfigJson, c: FieldValues) -> None:
    if js.get("token_dropout") and js.get("mask_token_id") is None:
        raise ParamcountError("is missing, but token_dropout = true", where="mask_token_id", expected="a token id")


def rotary_angles_fit(js: ConfigJson, c: FieldValues) -> None:
    if c["positions_rotated"]:
        angles_fit_heads(js, c)


class Esm(Encoder):
    """Source: doi:10.1126/science.ade2574, supplementary section 1.2; EsmLayer of the reference."""

    reference = "EsmForMaskedLM"
    task_heads = {"ForSequenceClassification": FIRST, "ForTokenClassification": TOKENS}
    conditions: ClassVar[tuple[Condition, ...]] = (
        not_null("layer_norm_eps", "hidden_dropout_prob"),
        memory_needs_a_decoder,
        padding_is_known,
        mask_is_known,
        rotary_angles_fit,
    )
    prefix = "esm."
    last_norm = "encoder.emb_layer_norm_after"

    vocab_size: Positive = hf()
    n_positions: Positive = hf("max_position_embeddings")
    cross_attention: Flag = hf(null=False)
    positions_added: Flag = derived(lambda js, c: js.get("position_embedding_type", "absolute") == "absolute")
    positions_rotated: Flag = derived(lambda js, c: js.get("position_embedding_type") == "rotary")
    n_frequencies: Natural = derived(lambda js, c: -(-c["d_head"] // 2))
    embeddings_normed: Flag = hf("emb_layer_norm_before", absent=False, null=False)
    pooled: Flag = derived(class_ends("Model"))
    tie_word_embeddings: Flag = hf()

    activation: ClassVar = "gelu"
    base = setting("rope_theta", default=10_000.0)
    first_position = setting(default=lambda js, c: js.get("pad_token_id", 0) + 1)
    masked_id = setting(default=lambda js, c: js.get("mask_token_id") if js.get("token_dropout") else None)

    def count_unused_positions(c) -> int:
        return super().count_unused_positions() if c.positions_added else 0

    def inputs(c) -> dict[str, int]:
        return {}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.look_up(tokens)
        if c.masked_id is not None:
            x = scale_unmasked(x, tokens, c.masked_id, MASKED)
        if c.positions_added:
            name, first = "esm.embeddings.position_embeddings.weight", c.first_position
            x = x + lookup(tokens, name, "position", c.n_positions, c.d_model, index="positions", offset=first)
        return c.norm(x, "esm.embeddings.layer_norm") if c.embeddings_normed else x

    def look_up(c, tokens: Data) -> Data:
        return embed_tokens(c, tokens, None, c.d_model, has_positions=False)

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        if not c.positions_rotated:
            return ()
        return (stored_sinusoids(tokens, "esm.rotary_embeddings.inv_freq", c.d_head, c.n_frequencies, c.base),)

    def layer(c, x: Data, *reads: Data) -> Data:
        n = 1 if c.positions_rotated else 0
        angles, memory = reads[:n], reads[n:]
        x = x + c.attend(c.norm(x, "attention.LayerNorm"), "attention.", None, *angles)
        for source in memory:
            x = crossing(x, "crossattention.", c.look, source, *angles)
        return x + bert_mlp(c, c.norm(x, "LayerNorm"))

    def look(c, x: Data, memory: Data, *angles: Data) -> Data:
        return x + c.attend(c.norm(x, "LayerNorm"), "", memory, *angles)

    def attend(c, x: Data, prefix: str, memory: Data | None, *angles: Data) -> Data:
        def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
            for table in angles:
                q, k = rope_from(q, table, "halves"), rope_from(k, table, "halves")
            return q, k, v

        return bert_attention(c, x, prefix, memory, turn=turn)

    def head(c, x: Data) -> Data:
        h = c.norm(activate(linear(x, "lm_head.dense", "other", c.d_model, bias=True), "gelu"), "lm_head.layer_norm")
        return add_vector(head(c, h, TABLE, "lm_head.decoder"), "lm_head.bias", "lm_head", c.vocab_size)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        attention = given("attention weights", "tokens", c.n_layers * c.n_heads)
        contacts = linear(attention, "esm.contact_head.regression", "other", 1, bias=True)
        return (Unreachable(contacts, "the forward pass predicts no contacts"),)

    def check(c) -> None:
        super().check()
        if c.positions_rotated:
            check_even(c, "d_head")
