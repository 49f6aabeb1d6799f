"""Names of weights and components as people say them: "queries" rather than "self_attn.q_proj.weight"."""

from __future__ import annotations

import re
from collections.abc import Sequence

# {component: name of its weights}. Other components are called by their own name.
COMPONENTS = {
    "embedding": "token embedding", "position": "position embedding", "lm_head": "LM head",
    "output_projection": "output projection",
    "qkv.q": "queries", "qkv.k": "keys", "qkv.v": "values", "qkv.gate": "gate", "qkv.q_down": "compressed query latent",
    "qkv.q_up": "queries", "qkv.kv": "shared KV", "qkv.kv_down": "compressed KV latent",
    "qkv.kv_up": "keys and values", "qkv.relative": "relative position queries",
    "mlp.gate": "gate", "mlp.up": "up", "mlp.down": "down", "experts.gate": "gate", "experts.up": "up",
    "experts.down": "down", "shared_experts.gate": "shared gate", "shared_experts.up": "shared up",
    "shared_experts.down": "shared down",
    "mixer.q": "queries", "mixer.k": "keys", "mixer.v": "values", "mixer.x": "input", "mixer.gate": "gate",
    "mixer.step": "time step", "mixer.b": "B", "mixer.c": "C", "mixer.xbc": "input, B and C", "mixer.beta": "beta",
    "mixer.out": "output projection", "mixer.convolution": "convolution",
}  # fmt: skip
# {component: its name over all of its weights}
GROUPS = {
    "embedding": "token embedding", "other_embedding": "other embeddings", "position": "position embedding",
    "qkv": "attention: q, k, v", "output_projection": "attention: output", "mlp": "MLP",
    "router": "router", "experts": "experts", "shared_experts": "shared experts", "mixer": "mixer", "norm": "norms",
    "lm_head": "LM head", "other": "other weights", "vision": "vision encoder", "audio": "audio encoder",
    "projector": "projector",
}  # fmt: skip
# {part of a model: its name}
PARTS = {
    "vision": "vision encoder", "audio": "audio encoder", "cross_attention": "cross-attention", "mtp": "MTP layers",
}  # fmt: skip
# {component: the block of a layer that its weights are in}
BLOCKS = {
    "qkv": "attention", "output_projection": "attention", "mlp": "MLP", "experts": "expert",
    "shared_experts": "shared expert", "mixer": "mixer", "router": "router",
}  # fmt: skip
UNNAMED = ("norm", "other", "mixer", "mixer.state", "other_embedding", "projector")  # the module says more
# {the part of a component of an encoder: its embedding without a lookup}
ENCODERS = {"vision": "patch embedding", "audio": "audio embedding", "projector": "embedding"}
# Words of module names
WORDS = {
    "layernorm": "norm", "layrnorm": "norm", "ln": "norm", "layer_norm": "norm", "rmsnorm": "norm", "f": "final",
    "q": "query", "k": "key", "v": "value", "proj": "projection", "emb": "embedding", "pos": "position",
    "attn": "attention", "self": "", "conv": "convolution", "conv1d": "convolution", "dt": "time step",
    "norms": "norm", "mlp": "MLP", "ffn": "MLP", "ff": "MLP", "kv": "KV", "fc": "", "embed": "embedding",
    "bn": "batch norm", "convs": "convolution", "embeddings": "embedding",
}  # fmt: skip


def name_part(part: str) -> str:
    """A part of a model as a heading.

    >>> name_part("vision"), name_part("cross_attention")
    ('vision encoder', 'cross-attention')
    """
    return PARTS.get(part, part.replace("_", " "))


def name_group(component: str) -> str:
    """A component as a heading.

    >>> name_group("lm_head"), name_group("qkv")
    ('LM head', 'attention: q, k, v')
    """
    return GROUPS.get(component, component.replace("_", " "))


def name_block(component: str) -> str:
    """The block of a layer that a component belongs to; "" if its own name says it.

    >>> name_block("qkv.q"), name_block("norm")
    ('attention', '')
    """
    return BLOCKS.get(component.partition(".")[0], "")


def name_tensor(name: str, components: Sequence[str], part: str = "") -> str:
    """A tensor as people call it.

    Args:
        name: In the checkpoint.
        components: Of its parts: several if it is fused.
        part: Of the model.

    >>> name_tensor("h.{layer}.attn.c_attn.bias", ["qkv.q", "qkv.k", "qkv.v"])
    'queries, keys and values (bias)'
    >>> name_tensor("h.{layer}.ln_1.weight", ["norm"]), name_tensor("ln_f.bias", ["norm"])
    ('norm 1', 'final norm (bias)')
    """
    words = list(dict.fromkeys(name_component(component, name) for component in components))
    text = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    is_bias = re.search(r"(^|[._])bias$", name) is not None and "bias" not in text
    is_cross = part == "cross_attention" and "attention" not in text
    return ("cross-attention " if is_cross else "") + text + (" (bias)" if is_bias else "")


def name_component(component: str, name: str) -> str:
    part, _, inner = component.partition(".")
    if part in ENCODERS and inner:
        component = inner
        if inner == "embedding":
            return "class token" if "class" in name or "cls" in name else ENCODERS[part]
    if component == "router":
        return "shared expert gate" if "shared" in name else "router"
    if component in UNNAMED:
        return name_module(name) or component
    return COMPONENTS.get(component, component.rpartition(".")[2].replace("_", " "))


def name_module(name: str) -> str:
    """The words of the last module of a tensor's name.

    >>> name_module("layers.{layer}.input_layernorm.weight"), name_module("layers.{layer}.self_attn.q_norm.weight")
    ('input norm', 'query norm')
    >>> name_module("layers.{layer}.mixer.A_log"), name_module("encoder.layer.{layer}.output.LayerNorm.weight")
    ('A (log)', 'output norm')
    """
    modules = re.sub(r"[._](weight|bias)$", "", name).split(".")
    named = [module for module in modules if not re.fullmatch(r"[0-9]+|\{.*\}", module)]
    last = named[-1] if named else name
    if latent := re.fullmatch("(q|kv)_a_(layer)?norm", last):  # of multi-head latent attention
        return f"compressed {'query' if latent[1] == 'q' else 'KV'} latent norm"
    if re.fullmatch("[A-Z](_log)?", last):  # of a state space model
        return f"{last[0]} (log)" if last.endswith("_log") else last
    if last.casefold() in ("layernorm", "layer_norm") and len(named) > 1:
        is_named = named[-2] not in ("layer", "block", "layers") and "norm" not in named[-2]
        last = f"{named[-2]}_norm" if is_named else "norm"
    text = re.sub("([a-z])([A-Z])", r"\1_\2", last).replace("layer_norm", "layernorm").casefold()
    words = [WORDS.get(word, word) for word in re.split("_|(?<=[a-z])(?=[0-9]$)", text)]
    if words[-1] == "final":  # ln_f, norm_f
        words = ["final", *words[:-1]]
    return " ".join(filter(None, words)) or last
