"""Jina BERT, of Jina Embeddings v2: BERT's post-norm layers with ALiBi on both sides and a gated MLP."""

from typing import Any, ClassVar

from paramcount.architectures.bert import POOLED
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

# Two repositories hold code with the same classes: config.json says which, as text-embeddings-inference reads it, too.
BASE, NORMED = "jinaai/jina-bert-implementation", "jinaai/jina-bert-v2-qk-post-norm"
ACTIVATIONS = {"geglu": "gelu", "reglu": "relu"}


def normalises_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    named = " ".join(map(str, [js.get("_name_or_path"), *(js.get("auto_map") or {}).values()]))
    if (BASE in named) == (NORMED in named):
        problem, expected = "does not say which of two modeling files builds the model", f"{BASE}--… or {NORMED}--…"
        raise ParamcountError(problem, where="auto_map", expected=expected)
    return NORMED in named


class JinaBert(parts.MaskedEncoder):
    """Source: arXiv:2310.19923, section 3; modeling_bert.py of both repositories. That of the later one has norms of
    queries and keys, and one more after attention.
    """

    reference = f"JinaBertForMaskedLM of {BASE}"
    task_heads: ClassVar[sizes.TaskHeads] = "BERT_SENTENCES"
    equivalent_classes = ("JinaBertLMHeadModel",)
    released_as = {"bert": ("JinaBert",)}
    conditions = (
        *parts.MaskedEncoder.conditions,
        sizes.one_of("position_embedding_type", ("alibi", "absolute"), "absolute"),
        sizes.one_of("feed_forward_type", tuple(ACTIVATIONS), ""),
    )
    defaults: ClassVar[dict[str, Any]] = {
        "vocab_size": 30522, "d_model": 768, "n_layers": 12, "n_heads": 12, "d_ff": 3072, "n_token_types": 2,
        "tie_word_embeddings": True,
    }  # fmt: skip

    n_positions: sizes.Natural = sizes.derived(
        lambda js, c: 0 if js.get("position_embedding_type") == "alibi" else js.get("max_position_embeddings", 512)
    )
    learned_positions: sizes.Flag = sizes.derived(lambda js, c: c["n_positions"] > 0)
    n_token_types: sizes.Positive = sizes.hf()
    qk_norm: sizes.Flag = sizes.derived(normalises_heads)
    pooled: sizes.Flag = sizes.derived(sizes.class_ends(*POOLED))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    gate = sizes.setting(default=lambda js, c: ACTIVATIONS[js["feed_forward_type"]])

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = parts.embed_tokens(c, tokens, reads[0], c.d_model, has_positions=c.learned_positions)
        return c.norm(x, "bert.embeddings.LayerNorm")

    def layer(c, x: Data) -> Data:
        a = parts.multi_head(c, x, "attention.", parts.encoders.BERT, turn=c.normalise, mix=c.attend)
        attended = c.norm(x + a, "attention.output.LayerNorm")
        if not c.qk_norm:
            names = ("mlp.gated_layers", "mlp.wo")
            return c.norm(attended + c.mlp(attended, names, up_first=False), "mlp.layernorm")
        x = c.norm(x + attended, "layer_norm_1")
        return c.norm(x + c.mlp(x, ("mlp.up_gated_layer", "mlp.down_layer"), up_first=True), "layer_norm_2")

    def normalise(c, q: Data, k: Data, v: Data) -> parts.Projections:
        """Norms of all heads together."""
        if c.qk_norm:
            q = ops.layer_norm(q, "attention.self.layer_norm_q", c.norm_eps, wide=True)
            k = ops.layer_norm(k, "attention.self.layer_norm_k", c.norm_eps, wide=True)
        return q, k, v

    def attend(c, q: Data, k: Data, v: Data) -> Data:
        return ops.attend(q, k, v, ops.symmetric_alibi(q, c.n_heads))  # [n, n_heads, d_head]

    def mlp(c, x: Data, names: tuple[str, str], *, up_first: bool) -> Data:
        """Gate and up out of one matrix without a bias."""
        order = ("mlp.up", "mlp.gate") if up_first else ("mlp.gate", "mlp.up")
        halves = ops.fused(x, names[0], dict.fromkeys(order, c.d_ff))
        gate, up = halves[::-1] if up_first else halves
        return ops.linear(ops.activate(gate, c.gate) * up, names[1], "mlp.down", c.d_model, bias=True)

    def check(c) -> None:
        super().check()
        sizes.check_flag(c, "learned_positions", "n_positions")
