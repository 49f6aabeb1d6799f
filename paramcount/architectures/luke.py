"""LUKE: RoBERTa that reads entities after the words, and has queries of their own for each pair of both kinds.

An entity has the mean of the positions of its words. The LM head is not tied; that of entities is.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

QUERIES = (("query", "w2e_query"), ("e2w_query", "e2e_query"))  # of words and of entities: for words, for entities


def words_of_luke(c: Any, tokens: Data) -> Data:
    """LUKE without its pooler, which the class for language modelling has."""
    return c.forward(tokens, head=False, pooler=False)


class Luke(parts.LikeRoberta, parts.MaskedEncoder):
    """Source: arXiv:2010.01057, section 3; modeling_luke.py of the reference."""

    reference = "LukeForMaskedLM"
    task_heads = parts.tasks.BERT | {
        "ForTokenClassification": parts.TOKENS._replace(body=words_of_luke),
        "ForQuestionAnswering": parts.SPAN_OF_LABELS._replace(body=words_of_luke),
    }
    prefix = "luke."

    n_entities: sizes.Positive = sizes.hf("entity_vocab_size")
    d_entity: sizes.Positive = sizes.hf("entity_emb_size")
    n_token_types: sizes.Positive = sizes.hf("type_vocab_size")
    entity_aware: sizes.Flag = sizes.hf("use_entity_aware_attention")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def forward(c, tokens: Data, head: bool = True, pooler: bool = True) -> Data:
        """Token ids to logits, beside those of the entities, or without `head` to the words' hidden states, the pooled
        one beside them if the class has a pooler.
        """
        segments = ops.given("segments", "tokens", default=0)
        entities = ops.given("entities", "entities")
        places = ops.given("entity positions", "entities", "mentions")
        kinds = ops.given("entity segments", "entities", default=0)

        def build(tokens: Data, segments: Data, *reads: Data) -> Data:
            words = c.norm(parts.embed_tokens(c, tokens, segments, c.d_model), "luke.embeddings.LayerNorm")
            x = ops.stack_rows(words, c.embed_entities(*reads), length="words and entities")
            x = c.encode(x, words)
            found = ops.drop_rows(x, words)
            if pooler:
                found = parts.first_pooled(found, "luke.pooler.dense")
            if not head:
                return found
            return ops.bundle(c.head(found), c.entity_head(ops.later_rows(x, words)))

        return ops.block(tokens, "", build, reads=(segments, entities, places, kinds), part="encoder")

    def embed_entities(c, entities: Data, places: Data, segments: Data) -> Data:
        names = "luke.entity_embeddings."
        x = ops.lookup(entities, names + "entity_embeddings.weight", "other_embedding", c.n_entities, c.d_entity)
        if c.d_entity != c.d_model:
            x = ops.linear(x, names + "entity_embedding_dense", "other", c.d_model)
        at = ops.lookup(places, names + "position_embeddings.weight", "position", c.n_positions, c.d_model)
        kind = ops.lookup(
            segments, names + "token_type_embeddings.weight", "other_embedding", c.n_token_types, c.d_model
        )
        return c.norm(x + ops.mean_of_streams(at) + kind, names + "LayerNorm")

    def layer(c, x: Data, words: Data) -> Data:
        x = c.norm(x + c.attention(x, words), "attention.output.LayerNorm")
        return c.norm(x + parts.bert_mlp(c, x), "output.LayerNorm")

    def attention(c, x: Data, words: Data) -> Data:
        """All attend to all, with other queries for words than for entities."""
        k, v = (c.project(x, name) for name in ("key", "value"))
        if not c.entity_aware:
            a = ops.attend(c.project(x, "query"), k, v)  # [n, n_heads, d_head]
        else:
            shares = ops.drop_rows(x, words), ops.later_rows(x, words)
            (q, w2e), (e2w, e2e) = ([c.project(part, name) for name in names] for part, names in zip(shares, QUERIES))
            q, other = (ops.stack_rows(a, b, length="words and entities") for a, b in ((q, e2w), (w2e, e2e)))
            a = ops.weighted_sum(ops.softmax(ops.scores_of_two(q, other, k, words)), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.output.dense", "output_projection", c.d_model, bias=True)

    def project(c, x: Data, name: str) -> Data:
        kind = "q" if name.endswith("query") else name[0]
        return ops.linear(x, "attention.self." + name, f"qkv.{kind}", (c.n_heads, c.d_head), bias=True)

    def head(c, x: Data) -> Data:
        h = c.norm(
            ops.activate(ops.linear(x, "lm_head.dense", "other", c.d_model, bias=True), "gelu"), "lm_head.layer_norm"
        )
        return ops.linear(h, "lm_head.decoder", "lm_head", c.vocab_size, bias=True)

    def entity_head(c, x: Data) -> Data:
        names = "entity_predictions."
        h = ops.activate(ops.linear(x, names + "transform.dense", "other", c.d_entity, bias=True), c.activation)
        table = "luke.entity_embeddings.entity_embeddings.weight" if c.tie_word_embeddings else None
        h = c.norm(h, names + "transform.LayerNorm")
        h = ops.linear(h, names + "decoder", "other", c.n_entities, tied_to=table)
        return ops.add_vector(h, names + "bias", "other", c.n_entities)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if c.tie_word_embeddings:
            return ()
        bias = ops.add_vector(tokens, "lm_head.bias", "lm_head", c.vocab_size)
        return (ops.Unreachable(bias, "the LM head reads a bias of its own", of_lm_head=True),)
