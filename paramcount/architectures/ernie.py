"""ERNIE 1 to 3: BERT, in some releases with a table of tasks beside the other three."""

from paramcount.architectures.bert import Bert
from paramcount.flow import Data, Unknown, lookup
from paramcount.parts.encoders import embed_tokens
from paramcount.sizes import Flag, Positive, hf


class Ernie(Bert):
    """Source: modeling_ernie.py of the reference, ErnieEmbeddings."""

    reference = "ErnieForMaskedLM"
    equivalent_classes = ("ErnieForCausalLM",)
    prefix = "ernie."

    n_task_types: Positive = hf("task_type_vocab_size", absent=3)
    task_ids: Flag = hf("use_task_id", absent=False)

    def inputs(c) -> dict[str, int | Unknown | None]:
        return {"segments": 0, "tasks": 0} if c.task_ids else {"segments": 0}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = embed_tokens(c, tokens, reads[0], c.d_model)
        for tasks in reads[1:]:
            name = "ernie.embeddings.task_type_embeddings.weight"
            x = x + lookup(tasks, name, "other_embedding", c.n_task_types, c.d_model)
        return c.norm(x, "ernie.embeddings.LayerNorm")
