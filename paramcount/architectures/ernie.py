"""ERNIE 1 to 3: BERT, in some releases with a table of tasks beside the other three."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Bert
from paramcount.flow import Data, lookup, norm
from paramcount.parts.encoders import embeddings, masked_lm
from paramcount.sizes import Flag, Positive, hf


class Ernie(Bert):
    """Source: modeling_ernie.py of the reference."""

    reference: ClassVar[str] = "ErnieForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("ErnieForCausalLM",)

    n_task_types: Positive = hf("task_type_vocab_size", absent=3)
    task_ids: Flag = hf("use_task_id", absent=False)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def embed(tokens: Data, segments: Data, *tasks: Data) -> Data:
            x = embeddings(c, tokens, segments, "ernie.", c.d_model, normed=False)
            for task in tasks:
                x = x + lookup(
                    task, "ernie.embeddings.task_type_embeddings.weight", "other_embedding", c.n_task_types, c.d_model
                )
            return norm(x, "ernie.embeddings.LayerNorm", bias=True)

        return masked_lm(
            c, tokens, head, "ernie.", embed=embed, inputs=("segments", "tasks") if c.task_ids else ("segments",)
        )
