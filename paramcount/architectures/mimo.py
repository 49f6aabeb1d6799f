"""MiMo: Qwen 2's layers, and layers that predict one token more from the last hidden state and the next token."""

from paramcount.architectures.qwen2 import Qwen2
from paramcount.flow import Data, given, join, layers, linear
from paramcount.sizes import Natural, hf


class MiMo(Qwen2):
    """Source: arXiv:2505.07608, section 2."""

    reference = "MiMoForCausalLM of XiaomiMiMo/MiMo-7B-Base"

    n_mtp_layers: Natural = hf("num_nextn_predict_layers", absent=0)

    def mtp(c, tokens: Data) -> Data:
        hidden, token = given("hidden", "tokens", c.d_model), given("next token", "tokens", c.d_model)
        return layers(
            hidden,
            "model.mtp_layers.{layer}.",
            [("mtp", c.n_mtp_layers)],
            lambda kind, x, t: predict(c, x, t),
            reads=(token,),
        )


def predict(c: MiMo, x: Data, token: Data) -> Data:
    """The model's own table and head stand before and behind it."""
    x = linear(join(c.norm(x, "hidden_layernorm"), c.norm(token, "token_layernorm")), "input_proj", "other", c.d_model)
    return c.norm(c.layer(x), "final_layernorm")
