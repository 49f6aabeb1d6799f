"""EXAONE 3.0, 3.5 and Deep: Llama's layers under the names of GPT-2."""

from paramcount.declare import Data, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def heads_share_d_model(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The published code divides d_model by the heads whatever head_dim says; other implementations read it."""
    if js.get("head_dim", c["d_head"]) != c["d_head"]:
        raise ParamcountError(
            f"= {describe_value(js['head_dim'])} is not supported",
            where="head_dim",
            expected=f"{c['d_head']}, or no such key",
        )


class Exaone(parts.EqualHeads, parts.AttentionDecoder):
    """Source: arXiv:2408.03541.

    configuration_exaone.py and modeling_exaone.py of LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct.
    """

    reference = "ExaoneForCausalLM of LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct"
    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    o_name = "out_proj"
    conditions = (heads_share_d_model,)
    defaults = {"vocab_size": 102400, "d_model": 2048, "n_heads": 32}

    n_layers: sizes.Natural = sizes.hf("num_layers", "num_hidden_layers", absent=32)
    d_ff: sizes.Natural = sizes.hf(absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=True)

    activation = sizes.setting("activation_function", default="silu")
    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "ln_1"), "attn.attention.")
        h, names = c.norm(x, "ln_2"), ("c_fc_0", "c_fc_1", "c_proj")
        return x + c.gated_mlp(h, names=names)
