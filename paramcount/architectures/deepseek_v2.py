"""DeepSeek-V2: latent attention, fine-grained experts beside shared ones."""

from collections.abc import Callable, Mapping
from typing import Any

from paramcount.flow import Data, route
from paramcount.parts.decoders import dense_first
from paramcount.parts.feed_forward import shared_mixture
from paramcount.parts.latent_decoder import LatentMixture
from paramcount.sizes import ABSENT, Flag, Natural, Positive, hf, setting, unvisited
from paramcount.sizes.conditions import groups_by_method, latent_heads_stay_whole, padding_in_table
from paramcount.sizes.rules import check_divides, check_rotated_in_pairs


def in_groups(key: str) -> Callable[[Mapping[str, Any], Any], Any]:
    """A number of groups, of which topk_method makes use or not."""
    return lambda js, c: js[key] if js.get("topk_method") == "group_limited_greedy" else 1


class DeepseekV2(LatentMixture):
    """Source: arXiv:2405.04434, section 2; DeepseekV2DecoderLayer. `d_q_lora` is null if queries have no latent."""

    reference = "DeepseekV2ForCausalLM"
    gguf = "deepseek2"
    is_section_type = True
    task_heads = "SCORED"
    copied_modules = ("modeling_deepseek",)
    adapts_experts = True
    rotated = "d_rope"
    conditions = (groups_by_method(None), latent_heads_stay_whole(None), padding_in_table(None))

    n_heads: Positive = hf()
    d_q_lora: Positive | None = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf()
    d_v: Positive = hf()
    d_ff: Natural = hf()
    n_dense_layers: Natural = hf(at_most="n_layers")
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts", "n_routed_experts")
    n_active_experts: Natural = hf(absent=unvisited, null=ABSENT)
    n_shared_experts: Natural = hf()
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    pairing = setting(default="interleaved")
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_groups = setting(default=in_groups("n_group"))
    n_active_groups = setting(default=in_groups("topk_group"))
    kinds = dense_first

    def moe(c, x: Data) -> Data:
        return shared_mixture(c, x, "mlp.", choose=c.choose, shared_bias=c.mlp_bias)

    def mlp(c, x: Data) -> Data:
        return c.gated_mlp(x, bias=c.mlp_bias)

    def choose(c, logits: Data) -> Data:
        """Source: arXiv:2405.04434, section 2.2.2."""
        groups = {"n_groups": c.n_groups, "n_active_groups": c.n_active_groups}
        return route(logits, c.n_active_experts, "softmax", factor=c.routed_scale, **groups)

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")
        check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model
