"""Decoders with experts: their sizes and settings, and how they choose experts."""

from __future__ import annotations

from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


class RoutedExperts(parts.Decoder):
    """A decoder with experts, of which a router chooses the best."""

    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_experts")
    n_active_experts: sizes.Natural = sizes.hf()


class MixtureDecoder(RoutedExperts, parts.AttentionDecoder):
    """A decoder whose layers all have experts."""

    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    d_ff = sizes.constant(None)


class SoftmaxExperts(RoutedExperts):
    """A decoder whose experts are weighted by a softmax over all of them."""

    norm_topk_prob: ClassVar = sizes.setting("norm_topk_prob")

    def choose(c, logits: Data) -> Data:
        """The weights of all experts, 0 for those not chosen."""
        return ops.route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)


class GroupedExperts(RoutedExperts):
    """A decoder whose experts are chosen as in DeepSeek-V3: from the best groups, after a bias was added."""

    adapts_experts = True
    routing_bias: ClassVar[str] = "mlp.gate.e_score_correction_bias"

    norm_topk_prob: ClassVar = sizes.setting("norm_topk_prob", usual=True)
    routed_scale: ClassVar = sizes.setting("routed_scaling_factor", usual=2.5)
    n_groups: ClassVar = sizes.setting("n_group", usual=1)
    n_active_groups: ClassVar = sizes.setting("topk_group", usual=1)

    def choose(c, logits: Data) -> Data:
        """Source: arXiv:2412.19437, section 2.1.2."""
        return parts.choose_in_groups(c, logits, parts.routing_bias(c, c.routing_bias))
