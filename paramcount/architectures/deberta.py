"""DeBERTa: the scores of a pair of tokens also compare each token with a vector for their distance.

These vectors are one table for all layers.
"""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

TABLE = "deberta.embeddings.word_embeddings.weight"
TO_POSITION, TO_CONTENT = "c2p", "p2c"  # terms that compare a query, or a key, with the vector of a distance


def position_terms(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """c2p compares a query with the vector of a distance, p2c a key."""
    words = js.get("pos_att_type") or ()
    if isinstance(words, str):
        words = [word.strip() for word in words.lower().split("|")]
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise sizes.make_value_error(words, "pos_att_type", '"c2p|p2c", or a list of these')
    return tuple(words)


def read_integer(js: sizes.ConfigJson, key: str, absent: int) -> int:
    value = js.get(key, absent)
    if type(value) is not int:
        raise sizes.make_value_error(value, key, "an integer")
    return value


def farthest_position(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The largest distance that has a vector of its own, or, on a log scale, the one that the scale ends with."""
    value = read_integer(js, "max_relative_positions", -1)
    return c["n_positions"] if value < 1 else value


def no_talking_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if sizes.flag(js, "talking_head", absent=False):
        raise ParamcountError("= true is not supported", where="talking_head", expected="false")


class Deberta(parts.MaskedEncoder):
    """Source: arXiv:2006.03654, section 3; DebertaLayer of the reference."""

    reference = "DebertaForMaskedLM"
    task_heads: ClassVar[sizes.TaskHeads] = "DEBERTA"
    conditions = (sizes.padding_in_table(0), no_talking_heads)
    prefix = "deberta."

    d_embedding: sizes.Positive = sizes.hf(absent=sizes.equal_to("d_model"))
    embeddings_projected: sizes.Flag = sizes.derived(lambda js, c: c["d_embedding"] != c["d_model"])
    positions_added: sizes.Flag = sizes.hf("position_biased_input")
    n_token_types: sizes.Natural = sizes.hf()
    has_segments: sizes.Flag = sizes.derived(lambda js, c: c["n_token_types"] > 0)
    relative_attention: sizes.Flag = sizes.hf("relative_attention")
    position_terms: sizes.Words = sizes.derived(position_terms)
    n_distances: sizes.Positive = sizes.derived(lambda js, c: 2 * farthest_position(js, c))
    legacy_head: sizes.Flag = sizes.hf("legacy")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    pooler_activation = sizes.setting("pooler_hidden_act")
    farthest: ClassVar = 0  # rows of distances are on no log scale

    def embed(c, tokens: Data, *reads: Data) -> Data:
        segments = reads[0] if reads else None
        x = parts.embed_tokens(c, tokens, segments, c.d_embedding, has_positions=c.positions_added)
        if c.embeddings_projected:
            x = ops.linear(x, "deberta.embeddings.embed_proj", "other", c.d_model)
        return c.norm(x, "deberta.embeddings.LayerNorm")

    @property
    def reads_distances(c) -> bool:
        return c.relative_attention and any(term in c.position_terms for term in (TO_POSITION, TO_CONTENT))

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        """The vectors of all distances, and which of them is whose."""
        if not c.reads_distances:
            return ()
        return c.distances(), ops.index_signed_distances(tokens, c.n_distances, c.farthest)

    def distances(c) -> Data:
        return ops.learned_rows("deberta.encoder.rel_embeddings.weight", "position", c.n_distances, c.d_model)

    def layer(c, x: Data, *reads: Data) -> Data:
        x = c.norm(x + c.attend(x, *reads), "attention.output.LayerNorm")
        return c.norm(x + parts.bert_mlp(c, x), "output.LayerNorm")

    def attend(c, x: Data, *reads: Data) -> Data:
        """The scores are the sum of up to three terms, divided by the root of their number times d_head."""
        q, k, v = c.project_tokens(x)
        n_terms = 1 + c.n_terms()
        q = ops.scale_by_root(q, c.d_head * n_terms, f"divided by √({n_terms} · d_head)", inverse=True)
        scores = []
        if reads and TO_POSITION in c.position_terms:
            keys = c.project_distances(reads[0], "key")
            scores.append(ops.select_by_pair(reads[1], ops.score_keys(q, keys), axis=2))
        if reads and TO_CONTENT in c.position_terms:
            queries = c.project_distances(reads[0], "query")
            queries = ops.scale_by_root(queries, c.d_head * n_terms, f"divided by √({n_terms} · d_head)", inverse=True)
            scores.append(ops.select_by_pair(reads[1], ops.score_keys(k, queries), axis=2, of_keys=True))
        a = ops.attend(q, k, v, *scores, scale=1.0)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.output.dense", "output_projection", c.d_model, bias=True)

    def n_terms(c) -> int:
        """The terms of the scores besides the usual one."""
        return len(c.position_terms)

    def project_tokens(c, x: Data) -> tuple[Data, Data, Data]:
        """Queries, keys and values, of which keys have no bias."""
        q, k, v = parts.fused_qkv(c, x, "attention.self.in_proj", bias=False, groups=c.n_heads)  # [n, n_heads, d_head]
        q, v = (
            ops.add_vector(y, f"attention.self.{name}_bias", f"qkv.{name}", c.n_heads * c.d_head)
            for y, name in ((q, "q"), (v, "v"))
        )
        return q, k, v

    def project_distances(c, vectors: Data, word: str) -> Data:
        """The vectors of distances to keys, or to queries."""
        name, heads = {"key": "pos_proj", "query": "pos_q_proj"}[word], (c.n_heads, c.d_head)
        return ops.linear(vectors, f"attention.self.{name}", f"qkv.{word[0]}", heads, bias=word == "query")

    def head(c, x: Data) -> Data:
        if c.legacy_head:
            return parts.masked_head(c, x, parts.BERT_HEAD, c.d_embedding, c.activation)
        h = ops.activate(ops.linear(x, "lm_predictions.lm_head.dense", "other", c.d_model, bias=True), c.activation)
        h = c.norm(h, "lm_predictions.lm_head.LayerNorm")
        logits = ops.linear(h, "lm_predictions.lm_head.decoder", "lm_head", c.vocab_size, tied_to=TABLE)
        return ops.add_vector(logits, "lm_predictions.lm_head.bias", "lm_head", c.vocab_size)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        found = parts.second_bias(c, tokens, "cls.predictions.bias") if c.legacy_head else ()
        if c.relative_attention and not c.reads_distances:
            return (*found, ops.Unreachable(c.distances(), "no term of the scores reads the vectors of distances"))
        return found

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_projection(c)
        sizes.check_flag(c, "has_segments", "n_token_types")
        if c.has_lm_head and not c.legacy_head and c.embeddings_projected:
            found = f"= {c.d_embedding}, but the LM head reads {c.d_model}"
            raise ParamcountError(found, where="embedding_size", expected=f"{c.d_model}, or legacy = true")
