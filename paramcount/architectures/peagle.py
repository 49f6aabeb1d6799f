"""P-EAGLE: EAGLE-3's layer and plain ones behind it, which draft several tokens at once."""

from paramcount.architectures.eagle3 import Eagle3Layers
from paramcount.declare import Data, ops, sizes


class PEagle(Eagle3Layers):
    """A learned vector stands for the target's hidden states of tokens that are not there yet.

    Source: PEagleDraftModel of SpecForge, peagle.py.
    """

    reference = "PEagleDraftModel of sgl-project/SpecForge"
    equivalent_classes = ()
    attention_bias = sizes.constant(False)  # whatever the key says

    def join_states(c, states: Data) -> Data:
        later = ops.to_every_token(states, "mask_hidden", "other", 1, 1, c.n_states * c.d_target)
        return super().join_states(ops.select(ops.given("masked tokens", "tokens", default=0), states, later))
