"""Mixtures of experts: routers, routed and shared experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

Choose = Callable[[Data], Data]  # router logits [n, experts] to the weight of each expert, 0 if it is not chosen


def mixture(
    c: Any,
    x: Data,
    prefix: str,
    *,
    choose: Choose | None = None,
    names: tuple[str, str, str] = parts.GATED,
    bias: bool = False,
    router: str = "gate",
    router_bias: bool = False,
) -> Data:
    """A router and its gated experts, stored one by one, with n_routed_experts, n_active_experts and d_expert of c.

    `choose`: the routing rule.
    """
    scores = ops.linear(x, prefix + router, "router", c.n_routed_experts, bias=router_bias)  # [n, experts]
    activation = parts.get_setting(c, "activation")
    return ops.experts(
        x,
        choose(scores) if choose else scores,
        prefix + "experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts,
        lambda x: parts.gated_mlp(x, "", "experts", c.d_expert, names=names, activation=activation, bias=bias),
    )


def shared_experts(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """The experts that every token uses, stored as one gated MLP that is n_shared_experts times as wide."""
    width, activation = c.n_shared_experts * c.d_expert, parts.get_setting(c, "activation")
    return parts.gated_mlp(x, prefix + "shared_experts.", "shared_experts", width, activation=activation, bias=bias)


def shared_mixture(
    c: Any,
    x: Data,
    prefix: str,
    *,
    choose: Choose | None = None,
    names: tuple[str, str, str] = parts.GATED,
    router: str = "gate",
    shared_bias: bool = False,
) -> Data:
    """A mixture of experts plus shared experts. Source: arXiv:2401.06066, section 3."""
    routed = mixture(c, x, prefix, choose=choose, names=names, router=router)
    return routed + shared_experts(c, x, prefix, bias=shared_bias)


def routing_bias(c: Any, name: str, *, role: str = "buffer") -> ops.Weight:
    """One value per expert, learned outside the loss: it affects which experts are chosen but not their weights.

    Source: arXiv:2412.19437, section 2.1.2.
    """
    return ops.Weight(name, "router", (c.n_routed_experts,), role=role)


def choose_in_groups(
    c: Any,
    logits: Data,
    bias: ops.Weight | None = None,
    *,
    scoring: str | ops.Unknown = "sigmoid",
    by: Literal["max", "top 2"] = "top 2",
    excluded: float = float("-inf"),
    normalise: bool | ops.Unknown | None = None,
) -> Data:
    """The weights of the experts that are chosen from the best groups, with n_active_experts and the settings n_groups,
    n_active_groups, norm_topk_prob (unless `normalise` is given) and routed_scale of c.

    Source: arXiv:2405.04434, section 2.2.2; with a routing bias arXiv:2412.19437, section 2.1.2.
    """
    scores = ops.activate(logits, scoring)  # [n, experts]
    merit = ops.limit_to_groups(
        ops.add_routing_bias(scores, bias), c.n_groups, c.n_active_groups, by, excluded=excluded
    )
    weights = ops.top_k(scores, c.n_active_experts, merit)  # [n, experts], 0 for those not chosen
    weights = ops.normalise_weights(weights, c.norm_topk_prob if normalise is None else normalise, least_sum=1e-20)
    return ops.scale_by(weights, c.routed_scale)
