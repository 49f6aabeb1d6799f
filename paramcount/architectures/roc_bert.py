"""RoCBert: BERT for Chinese that sees how a character sounds and looks, joined with its embedding."""

from collections.abc import Sequence

from paramcount.architectures.bert import Bert
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

PREFIX = "roc_bert.embeddings."


@sizes.options_first
def looked_up(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, width: str) -> bool:
    """Whether a table is read: where vectors are summed, only one of their width can be."""
    return sizes.flag(js, key, absent=True) and (c["inputs_joined"] or c[width] == c["d_model"])


class RoCBert(Bert):
    """Source: modeling_roc_bert.py of the reference, RoCBertEmbeddings."""

    reference = "RoCBertForMaskedLM"
    task_heads = "BERT"
    equivalent_classes = ("RoCBertForCausalLM", "RoCBertForPreTraining")
    prefix = "roc_bert."
    conditions = (sizes.memory_needs_a_decoder, sizes.padding_inside(0, "n_sounds", "n_shapes"))

    n_sounds: sizes.Positive = sizes.hf("pronunciation_vocab_size")
    d_sound: sizes.Positive = sizes.hf("pronunciation_embed_dim")
    n_shapes: sizes.Positive = sizes.hf("shape_vocab_size")
    d_shape: sizes.Positive = sizes.hf("shape_embed_dim")
    inputs_joined: sizes.Flag = sizes.hf("concat_input")
    sounds: sizes.Flag = sizes.derived(looked_up("enable_pronunciation", "d_sound"))
    shapes: sizes.Flag = sizes.derived(looked_up("enable_shape", "d_shape"))

    def check(c) -> None:
        super().check()
        if not c.inputs_joined:
            for table, size in (("sounds", "d_sound"), ("shapes", "d_shape")):
                width = getattr(c, size)
                if getattr(c, table) and width != c.d_model:
                    found = f"= {width}, but " + FieldName(table) + f" are added to vectors of {c.d_model}"
                    raise ParamcountError(
                        found, where=FieldName(size), expected=f"{c.d_model}", sizes=(width, c.d_model)
                    )

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        off = [("shape_embed", c.n_shapes, c.d_shape)] * (not c.shapes) + [
            ("pronunciation_embed", c.n_sounds, c.d_sound)
        ] * (not c.sounds)
        tables = [
            ops.lookup(tokens, f"{PREFIX}{name}.weight", "other_embedding", rows, width) for name, rows, width in off
        ]
        return (
            *super().unreachable(tokens),
            *(ops.Unreachable(table, "shapes or sounds are switched off") for table in tables),
        )

    def inputs(c) -> dict[str, int | ops.Unknown | None]:
        names = ["shapes"] * c.shapes + ["sounds"] * c.sounds
        return {"segments": 0, **dict.fromkeys(names, 0 if c.inputs_joined else None)}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        """Tokens, shapes and sounds side by side through a matrix, or the mean of all."""
        segments, *seen = reads
        if not c.inputs_joined:
            x = c.norm(parts.embed_tokens(c, tokens, segments, c.d_model), PREFIX + "LayerNorm")
            for table in c.look_up(seen):
                x = x + table
            return ops.scale_by(x, 1 / (1 + len(seen)), "mean")
        x = ops.lookup(tokens, PREFIX + "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
        for table in c.look_up(seen):
            x = ops.join(x, table)
        x = ops.linear(x, PREFIX + "map_inputs_layer", "other", c.d_model, bias=True)
        x = x + ops.lookup(
            segments, PREFIX + "token_type_embeddings.weight", "other_embedding", c.n_token_types, c.d_model
        )
        name = PREFIX + "position_embeddings.weight"
        x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model)
        return c.norm(x, PREFIX + "LayerNorm")

    def look_up(c, seen: Sequence[Data]) -> list[Data]:
        """The embeddings of shapes and sounds, if they are switched on."""
        found = []
        if c.shapes:
            found.append(ops.lookup(seen[0], PREFIX + "shape_embed.weight", "other_embedding", c.n_shapes, c.d_shape))
        if c.sounds:
            name = PREFIX + "pronunciation_embed.weight"
            found.append(ops.lookup(seen[-1], name, "other_embedding", c.n_sounds, c.d_sound))
        return found
