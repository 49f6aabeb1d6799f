"""RoCBert: BERT for Chinese that sees how a character sounds and looks, joined with its embedding."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.bert import Bert
from paramcount.flow import Data, Unreachable, activate, join, linear, lookup, norm
from paramcount.parts.classic import positions
from paramcount.parts.encoders import embeddings, masked_lm
from paramcount.sizes import Condition, Derivation, Flag, Positive, derived, flag, hf
from paramcount.sizes.conditions import memory_needs_a_decoder, padding_inside

PREFIX = "roc_bert.embeddings."


def looked_up(key: str, width: str) -> Derivation:
    """Whether a table is read: where vectors are summed, only one of their width can be."""
    return lambda js, c: flag(js, key, absent=True) and (c["inputs_joined"] or c[width] == c["d_model"])


class RoCBert(Bert):
    """Source: modeling_roc_bert.py of the reference."""

    reference: ClassVar[str] = "RoCBertForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RoCBertForCausalLM", "RoCBertForPreTraining")
    conditions: ClassVar[tuple[Condition, ...]] = (memory_needs_a_decoder, padding_inside(0, "n_sounds", "n_shapes"))

    n_sounds: Positive = hf("pronunciation_vocab_size", absent=910)
    d_sound: Positive = hf("pronunciation_embed_dim", absent=768)
    n_shapes: Positive = hf("shape_vocab_size", absent=24858)
    d_shape: Positive = hf("shape_embed_dim", absent=512)
    inputs_joined: Flag = hf("concat_input", absent=True)
    sounds: Flag = derived(looked_up("enable_pronunciation", "d_sound"))
    shapes: Flag = derived(looked_up("enable_shape", "d_shape"))

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        off = [("shape_embed", c.n_shapes, c.d_shape)] * (not c.shapes) + [
            ("pronunciation_embed", c.n_sounds, c.d_sound)
        ] * (not c.sounds)
        tables = [lookup(tokens, f"{PREFIX}{name}.weight", "other_embedding", rows, width) for name, rows, width in off]
        return (
            *super().unreachable(tokens),
            *(Unreachable(table, "shapes or sounds are switched off") for table in tables),
        )

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(
            c,
            tokens,
            head,
            "roc_bert.",
            embed=lambda tokens, segments, *seen: (
                joined(c, tokens, segments, seen) if c.inputs_joined else averaged(c, tokens, segments, seen)
            ),
            inputs=("segments", *(("shapes",) if c.shapes else ()), *(("sounds",) if c.sounds else ())),
        )


def tables(c: Any, seen: tuple[Data, ...]) -> list[Data]:
    """Shapes and sounds looked up, as far as they are switched on."""
    found = []
    if c.shapes:
        found.append(lookup(seen[0], PREFIX + "shape_embed.weight", "other_embedding", c.n_shapes, c.d_shape))
    if c.sounds:
        found.append(lookup(seen[-1], PREFIX + "pronunciation_embed.weight", "other_embedding", c.n_sounds, c.d_sound))
    return found


def joined(c: Any, tokens: Data, segments: Data, seen: tuple[Data, ...]) -> Data:
    x = lookup(tokens, PREFIX + "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
    for table in tables(c, seen):
        x = join(x, table)
    x = linear(x, PREFIX + "map_inputs_layer", "other", c.d_model, bias=True)
    x = x + lookup(segments, PREFIX + "token_type_embeddings.weight", "other_embedding", c.n_token_types, c.d_model)
    return norm(positions(x, tokens, PREFIX + "position_embeddings", c.n_positions), PREFIX + "LayerNorm", bias=True)


def averaged(c: Any, tokens: Data, segments: Data, seen: tuple[Data, ...]) -> Data:
    x = embeddings(c, tokens, segments, "roc_bert.", c.d_model)
    for table in tables(c, seen):
        x = x + table
    return activate(x, "mean")
