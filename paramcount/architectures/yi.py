"""Yi as first released: Llama's layers with its own names for the norms."""

from paramcount.declare import Data, parts, sizes


class Yi(parts.EqualHeads, parts.AttentionDecoder):
    """Source: arXiv:2403.04652; configuration_yi.py and modeling_yi.py of 01-ai/Yi-34B."""

    reference = "YiForCausalLM of 01-ai/Yi-34B"
    model_types = ("Yi",)
    conditions = (sizes.padding_in_table(0),)
    defaults = {"vocab_size": 64000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: sizes.Positive = sizes.hf(absent=4, null=sizes.equal_to("n_heads"))
    d_ff: sizes.Natural = sizes.hf(absent=11008)

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.rotary(5_000_000, positions=4096)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "ln1"))
        return x + c.gated_mlp(c.norm(x, "ln2"))
