"""DeepSeek-V2: latent attention, fine-grained experts beside shared ones."""

from collections.abc import Callable, Mapping
from typing import Any

from paramcount.declare import Data, parts, sizes


def in_groups(key: str) -> Callable[[Mapping[str, Any], Any], Any]:
    """A number of groups, of which topk_method makes use or not."""
    return lambda js, c: js[key] if js.get("topk_method") == "group_limited_greedy" else 1


class DeepseekV2(parts.LatentMixture):
    """Source: arXiv:2405.04434, section 2; DeepseekV2DecoderLayer. `d_q_lora` is null if queries have no latent."""

    reference = "DeepseekV2ForCausalLM"
    gguf = "deepseek2"
    task_heads = "SCORED"
    copied_modules = ("modeling_deepseek",)
    conditions = (sizes.groups_by_method(None), sizes.latent_heads_stay_whole(None), sizes.padding_in_table(None))

    n_dense_layers: sizes.Natural = sizes.hf(at_most="n_layers")
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "n_routed_experts")
    n_active_experts: sizes.Natural = sizes.hf(absent=sizes.unvisited, null=sizes.ABSENT, late=True)
    n_shared_experts: sizes.Natural = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()

    pairing = sizes.setting(default="interleaved")
    n_groups = sizes.setting(default=in_groups("n_group"))
    n_active_groups = sizes.setting(default=in_groups("topk_group"))
    kinds = parts.dense_first

    def moe(c, x: Data) -> Data:
        return parts.shared_mixture(c, x, "mlp.", choose=c.choose, shared_bias=c.mlp_bias)

    def mlp(c, x: Data) -> Data:
        return c.gated_mlp(x, bias=c.mlp_bias)

    def choose(c, logits: Data) -> Data:
        """Source: arXiv:2405.04434, section 2.2.2."""
        return parts.choose_in_groups(c, logits, scoring="softmax", by="max", normalise=False)

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_rope")
        sizes.check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model
