"""P-EAGLE: EAGLE-3's layer and plain ones behind it, which draft several tokens at once."""

from paramcount.architectures.eagle3 import N_STATES, Eagle3
from paramcount.declare import Data, ops, sizes


class PEagle(Eagle3):
    """A learned vector stands for the target's hidden states of tokens that are not there yet.

    Source: PEagleDraftModel of SpecForge, peagle.py.
    """

    reference = "PEagleDraftModel of sgl-project/SpecForge"
    conditions = (sizes.padding_in_table(None),)

    n_layers: sizes.Positive = sizes.hf()
    fc_norm = sizes.constant(False)

    def join_states(c, states: Data) -> Data:
        later = ops.to_every_token(states, "mask_hidden", "other", 1, 1, N_STATES * c.d_target)
        return super().join_states(ops.select(ops.given("masked tokens", "tokens", default=0), states, later))

    def draft(c, x: Data, embedded: Data) -> Data:
        kinds = [("first", 1), ("layer", c.n_layers - 1)]
        return ops.layers(x, "layers.{layer}.", kinds, c.layer, reads=(embedded,))

    def layer(c, kind: str, x: Data, embedded: Data) -> Data:
        if kind == "first":
            return c.first_layer(x, embedded)
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
