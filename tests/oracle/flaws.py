"""Parameters that the reference implementation allocates though no forward pass can reach them: our totals leave them out.

Each entry says which of the saved names these are and why nothing reads them; `poison` makes them no numbers in a built model, after
which its logits must still be finite: the differential test does that to every model that it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Flaw(NamedTuple):
    name: re.Pattern[str]  # of saved tensors, without the model's own prefix
    unreached: Callable[[Any, re.Match[str]], bool]  # (the reference's config, what was matched)
    poison: Callable[[Any], None]
    proof: str


def poison_identity_experts(model: Any) -> None:
    for layer in model.model.layers:
        layer.mlp.experts.gate_up_proj.data[model.config.n_routed_experts :] = float("nan")
        layer.mlp.router.e_score_correction_bias.data[model.config.n_routed_experts :] = 2.0  # scores are at most 1: they are chosen


def poison_router_bias(model: Any) -> None:
    for layer in model.model.layers:
        if layer.mlp.router.classifier.bias is not None:
            layer.mlp.router.classifier.bias.data.fill_(float("nan"))


def poison_output_scales(model: Any) -> None:
    if not model.config.altup_correct_scale:
        for layer in model.model.layers:
            layer.altup.correct_output_scale.data.fill_(float("nan"))


def reads_adapter(config: Any, i: int, place: int) -> bool:
    """Whether layer i, or one that its block is shared with, reads the adapters of that place in Zamba2's block."""
    places = {layer: place for place, layer in enumerate(config.hybrid_layer_ids)}
    hybrid = [j for j, word in enumerate(config.layers_block_type) if word == "hybrid"]
    n = config.num_mem_blocks
    users = [j for use, j in enumerate(hybrid) if use % n == hybrid.index(i) % n] if config.tie_word_embeddings else [i]
    return place in [places[j] for j in users]


def poison_adapters_of_other_uses(model: Any) -> None:
    for i, word in enumerate(model.config.layers_block_type):
        for name, weight in model.model.layers[i].shared_transformer.named_parameters() if word == "hybrid" else ():
            found = re.search(r"_adapter_list\.(\d+)\.", name)
            if found and not reads_adapter(model.config, i, int(found[1])):
                weight.data.fill_(float("nan"))


FLAWS: dict[str, tuple[Flaw, ...]] = {
    "gemma3n_text": (
        Flaw(
            re.compile(r"layers\.\d+\.altup\.correct_output_scale"),
            lambda config, found: not config.altup_correct_scale,
            poison_output_scales,
            "Gemma3nTextAltUp makes correct_output_scale always; the only call of scale_corrected_output, in Gemma3nTextDecoderLayer.forward, "
            "stands behind `if self.config.altup_correct_scale`. Left out where that is false: num_hidden_layers x hidden_size.",
        ),
    ),
    "longcat_flash": (
        Flaw(
            re.compile(r"layers\.\d+\.mlp\.experts\.(\d+)\.(?:gate|up)_proj\.weight"),
            lambda config, found: int(found[1]) >= config.n_routed_experts,
            poison_identity_experts,
            "LongcatFlashExperts.__init__ makes gate_up_proj for total_experts = n_routed_experts + zero_expert_num, down_proj for "
            "n_routed_experts alone. Its forward indexes gate_up_proj in one place, behind `if expert_idx >= self.num_routed_experts: "
            "identity_expert(...) else:`, so only below n_routed_experts; no kernel replaces this forward (the class is not decorated with "
            "use_experts_implementation). Left out: num_layers x zero_expert_num x 2 x expert_ffn_hidden_size x hidden_size, at the default "
            "sizes 28 x 256 x 2 x 2048 x 6144 = 180,388,626,432.",
        ),
        Flaw(
            re.compile(r"layers\.\d+\.mlp\.router\.classifier\.bias"),
            lambda config, found: True,
            poison_router_bias,
            "LongcatFlashTopkRouter makes classifier with a bias where the config says router_bias = true; its forward computes "
            "F.linear(hidden_states, self.classifier.weight) and never calls the module, so the bias is not read.",
        ),
    ),
    "zamba2": (
        Flaw(
            re.compile(r"layers\.(\d+)\.shared_transformer\.\w+\.\w+_adapter_list\.(\d+)\.[01]\.weight"),
            lambda config, found: not reads_adapter(config, int(found[1]), int(found[2])),
            poison_adapters_of_other_uses,
            "Zamba2Attention and Zamba2MLP make adapters for every entry of hybrid_layer_ids that their block's number fits; their forward "
            "passes index the lists in one place, by layer_dic[layer_idx], the place of the layer in hybrid_layer_ids. No layer reads the "
            "others: those of entries that are no hybrid layer, and, with tie_word_embeddings = false, where no weight is tied, the shared "
            "blocks no more than the head, those of the other uses of each layer's block.",
        ),
    ),
}


OF_DEFAULT_CONFIGS = {"longcat_flash": 180_388_626_432}  # how many parameters of a line of truth are left out


def left_out(model: Any, name: str) -> bool:
    """Whether a tensor, by its saved name without the model's prefix, is one that no forward pass can reach."""
    flaws = FLAWS.get(model.config.model_type, ())
    return any((found := flaw.name.fullmatch(name)) is not None and flaw.unreached(model.config, found) for flaw in flaws)


def known(model: Any) -> bool:
    return model.config.model_type in FLAWS


def poison(model: Any) -> None:
    """Make what cannot be reached no numbers."""
    for flaw in FLAWS.get(model.config.model_type, ()):
        flaw.poison(model)


def mended(model: Any, saved: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes that the reference saves wrongly, as they are in released files and as it reads them.

    OLMo Hybrid: it joins the convolutions of q, k and v when it loads them and cuts them into three equal parts when it saves them,
    though v is wider: what it saves it cannot load as what it was.
    """
    if model.config.model_type != "olmo_hybrid":
        return saved
    c = model.config
    widths = {"q": c.linear_num_key_heads * c.linear_key_head_dim, "v": c.linear_num_value_heads * c.linear_value_head_dim}
    found = dict(saved)
    for name, shape in saved.items():
        if stream := re.search(r"linear_attn\.([qkv])_conv1d\.weight$", name):
            found[name] = (widths["v" if stream[1] == "v" else "q"], *shape[1:])
    return found
