"""nanochat: norms without parameters, also after the token embedding, and a squared-ReLU MLP."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.olmo import bare_norm, bare_pre_norm
from paramcount.flow import Data, rope
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


class NanoChat(Sizes):
    """Source: modeling_nanochat.py of the reference."""

    reference: ClassVar[str] = "NanoChatForCausalLM"
    linear_by_component: ClassVar[bool] = False
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=50304)
    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=6)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=8192)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, enter=bare_norm, leave=bare_norm)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: mlp(c, h), arrange=bare_pre_norm, bias=c.attention_bias, prepare=rotate_and_norm)


def rotate_and_norm(q: Data, k: Data) -> tuple[Data, Data]:
    return bare_norm(rope(q)), bare_norm(rope(k))


def mlp(c: Any, x: Data) -> Data:
    return plain_mlp(x, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation="relu²")
