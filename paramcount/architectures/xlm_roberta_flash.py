"""Jina Embeddings v3 as it was released: each matrix and table has low-rank updates for several tasks."""

from typing import Any, ClassVar

from paramcount.architectures.jina_embeddings_v3 import JinaEmbeddingsV3
from paramcount.declare import Data, ops, sizes

KEY = "lora_adaptations"


def count_tasks(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """0 if auto_map names the class without updates."""
    if "LoRA" not in str((js.get("auto_map") or {}).get("AutoModel")):
        return 0
    tasks = js.get(KEY)
    if not isinstance(tasks, list) or not tasks:
        raise sizes.make_value_error(tasks, KEY, "a list of at least one task")
    return len(tasks)


class XlmRobertaFlash(JinaEmbeddingsV3):
    """Source: arXiv:2409.10173, section 4; modeling_lora.py of jinaai/xlm-roberta-flash-implementation."""

    reference = "XLMRobertaLoRA of jinaai/xlm-roberta-flash-implementation"
    base_model = ""
    equivalent_classes = ("XLMRobertaModel",)
    is_found_by_class = False  # the class alone is that of transformers
    task_heads: ClassVar[dict[str, object]] = {}
    released_as = {"xlm-roberta": ("xlm-roberta-flash-implementation", "XLMRobertaLoRA")}
    conditions = (
        sizes.padding_in_table(1),
        sizes.one_of("position_embedding_type", ("rotary",), "absolute"),
    )
    defaults: ClassVar[dict[str, Any]] = {"tie_word_embeddings": True}
    config_class = "XLMRobertaConfig"

    n_tasks: sizes.Natural = sizes.derived(count_tasks)
    updated: sizes.Flag = sizes.derived(lambda js, c: c["n_tasks"] > 0)
    d_update: sizes.Natural = sizes.hf("lora_rank", absent=0, null=0)
    pooled = sizes.constant(False)  # by `encode`

    rope = sizes.rotary(10_000, 512, key="rotary_emb_base")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        """There is no class with an LM head."""
        return super().forward(tokens, head=False)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = c.look_up(tokens, "word_embeddings", "embedding", c.vocab_size)
        x = x + c.look_up(reads[0], "token_type_embeddings", "other_embedding", c.n_token_types)
        return c.norm(x, "roberta.emb_ln")

    def encode(c, x: Data, *memory: Data) -> Data:
        x, d = super().encode(x, *memory), c.d_model
        (pooled,) = c.linear(ops.first_token(x), "roberta.pooler.dense", {"other": d}, d, d)
        return ops.bundle(x, ops.activate(pooled, "tanh"))

    def layer(c, x: Data) -> Data:
        x = c.norm(x + c.attend(x), "norm1")
        return c.norm(x + c.mlp(x), "norm2")

    def attend(c, x: Data) -> Data:
        heads, d = (c.n_heads, c.d_head), c.d_model
        q, k, v = c.linear(x, "mixer.Wqkv", {"qkv.q": heads, "qkv.k": heads, "qkv.v": heads}, d, d + d + d)
        a = ops.attend(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return c.linear(a, "mixer.out_proj", {"output_projection": d}, d, d)[0]

    def mlp(c, x: Data) -> Data:
        (h,) = c.linear(x, "mlp.fc1", {"mlp.up": c.d_ff}, c.d_model, c.d_ff)
        return c.linear(ops.activate(h, c.activation), "mlp.fc2", {"mlp.down": c.d_model}, c.d_ff, c.d_model)[0]

    def look_up(c, ids: Data, name: str, component: str, rows: ops.Size) -> Data:
        """Rows of a table, whose update for each task stands behind them."""
        name, factors = (
            f"roberta.embeddings.{name}",
            ((c.n_tasks, rows, c.d_update), (c.n_tasks, c.d_update, c.d_model)),
        )
        x = ops.lookup(ids, name + c.ending, component, rows, c.d_model)
        return ops.update_by_task(x, name, *factors) if c.updated else x

    def linear(c, x: Data, name: str, shares: dict[str, Any], d_in: ops.Size, d_out: ops.Size) -> tuple[Data, ...]:
        """x through a matrix, whose update for each task stands in front of it."""
        if c.updated:
            x = ops.update_by_task(x, name, (c.n_tasks, c.d_update, d_in), (c.n_tasks, d_out, c.d_update))
        return ops.fused(x, name, shares, bias=True, suffixes=(c.ending, ".bias"))

    @property
    def ending(c) -> str:
        """Of the name of a matrix."""
        return ".parametrizations.weight.original" if c.updated else ".weight"

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_flag(c, "updated", "n_tasks")
