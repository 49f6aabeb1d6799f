"""Domino: DFlash with a GRU over the tokens before, which corrects the logits of the target's LM head."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.dflash import BLOCK, DFlash, projects_as
from paramcount.declare import Data, ops, sizes


def find_first(config: Mapping[str, Any], c: Any) -> int:
    """The first token of a block that the GRU corrects: it has read one token at least."""
    return int((config.get(BLOCK) or {}).get("pure_draft_prefix_len", 0)) + (not c.shifted)


class Domino(DFlash):
    """Source: DominoDraftModel of SpecForge, domino.py."""

    reference = "DominoDraftModel of sgl-project/SpecForge"
    conditions = (*DFlash.conditions, lambda js, c: projects_as(js, c, "domino"))
    unused_keys = (*DFlash.unused_keys, "emb_dim")

    d_gru: sizes.Positive = sizes.hf(f"{BLOCK}.gru_hidden_dim")
    d_correction: sizes.Positive = sizes.hf(f"{BLOCK}.emb_dim")

    shifted: sizes.Flag = sizes.hf(f"{BLOCK}.shift_label", absent=False)

    first_corrected = sizes.setting(default=find_first)

    def forward(c, tokens: Data) -> Data:
        """An embedded block to its logits: those that the target's LM head makes of the states, corrected."""
        block = ops.given("embedded block", c.block_size, c.d_model)
        x, read = c.transform_block(block), ops.given("embedded tokens before", c.block_size, c.d_model)
        logits = ops.given("target logits", c.block_size, c.vocab_size)
        read = ops.gru(read, "prefix_gru.", c.d_gru)  # [block, d_gru]
        if not c.shifted:
            read = ops.neighbour(read, behind=False)
        h = ops.activate(ops.linear(ops.join(x, read), "embed_proj.0", "other", c.d_correction), "silu")
        h = ops.linear(h, "embed_proj.2", "other", c.vocab_size)
        return logits + ops.clear_first_rows(h, c.first_corrected)

    def unused_fields(c) -> tuple[str, ...]:
        return ()
