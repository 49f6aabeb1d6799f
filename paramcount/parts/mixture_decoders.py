"""Decoders with experts: their sizes and settings, and how they choose experts."""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder, Decoder
from paramcount.parts.mixtures import choose_in_groups, routing_bias
from paramcount.sizes import Natural, Positive, constant, hf, setting


class RoutedExperts(Decoder):
    """A decoder with experts, of which a router chooses the best."""

    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()


class MixtureDecoder(RoutedExperts, AttentionDecoder):
    """A decoder whose layers all have experts."""

    d_expert: Natural = hf("intermediate_size")
    d_ff = constant(None)


class SoftmaxExperts(RoutedExperts):
    """A decoder whose experts are weighted by a softmax over all of them."""

    norm_topk_prob: ClassVar = setting("norm_topk_prob")

    def choose(c, logits: Data) -> Data:
        """The weights of all experts, 0 for those not chosen."""
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)


class GroupedExperts(RoutedExperts):
    """A decoder whose experts are chosen as in DeepSeek-V3: from the best groups, after a bias was added."""

    adapts_experts = True
    routing_bias: ClassVar[str] = "mlp.gate.e_score_correction_bias"

    norm_topk_prob: ClassVar = setting("norm_topk_prob", usual=True)
    routed_scale: ClassVar = setting("routed_scaling_factor", usual=2.5)
    n_groups: ClassVar = setting("n_group", usual=1)
    n_active_groups: ClassVar = setting("topk_group", usual=1)

    def choose(c, logits: Data) -> Data:
        """Source: arXiv:2412.19437, section 2.1.2."""
        return choose_in_groups(c, logits, routing_bias(c, c.routing_bias))
