"""What operations and weights are called, and which operations are not described yet."""

from __future__ import annotations

from paramcount.flow import Data
from paramcount.parts.state_space import Recurring

# What a weight is called: {component: name}. Components without an entry are called by their own name.
COMPONENTS = {
    "embedding": "token embedding", "position": "position embedding", "other_embedding": "other embedding", "lm_head": "LM head",
    "output_projection": "output projection", "qkv.q": "queries", "qkv.k": "keys", "qkv.v": "values", "qkv.gate": "gate",
    "qkv.q_down": "compressed query latent", "qkv.q_up": "queries", "qkv.kv_down": "compressed KV latent", "qkv.kv_up": "keys and values",
    "mlp.gate": "gate", "mlp.up": "up", "mlp.down": "down",
    "experts.gate": "gate", "experts.up": "up", "experts.down": "down", "shared_experts.gate": "shared gate",
    "shared_experts.up": "shared up", "shared_experts.down": "shared down",
    "mixer.q": "queries", "mixer.k": "keys", "mixer.v": "values", "mixer.x": "input", "mixer.gate": "gate", "mixer.step": "step",
    "mixer.b": "B", "mixer.c": "C", "mixer.xbc": "input, B and C", "mixer.beta": "beta", "mixer.out": "output projection", "mixer.convolution": "convolution",
}  # fmt: skip
# Embeddings that are no lookup of tokens: {part: name}
EMBEDDINGS = {"vision": "patch embedding", "audio": "audio embedding"}
# Operations that are called otherwise than in code
TEXTS = {"tokens": "token ids", "last row": "last position", "add positions": "fixed positions", "correct": "routing bias"}

# What each operation does with its input: an operation that is not here prints "not traced".
OPERATIONS = {
    "lookup": "row lookup",
    "linear": "",
    "linear by head": "one matrix per head",
    "grouped linear": "one matrix per group",
    "norm": "",
    "l2 norm": "each head scaled to length 1",
    "add": "",
    "subtract": "",
    "difference": "first half minus second half",
    "multiply": "element-wise",
    "scale": "scaled per token",
    "split": "",
    "join": "concatenated",
    "rope": "rotated by position",
    "silu": "", "gelu": "", "relu": "", "relu²": "", "relu2": "", "sigmoid": "", "tanh": "", "softplus": "", "exp": "", "softmax": "", "xielu": "",
    "swiglu-oai": "",
    "convolve": "over neighbouring positions",
    "scan": "recurrent state, updated per token",
    "delta rule": "recurrent state, updated per token by the delta rule",
    "to heads": "reshape to heads",
    "to every head": "the same for every head",
    "to groups": "reshape to groups",
    "reshape": "", "flatten": "",
    "correct": "changes which experts are chosen, not their weights",
    "add bias": "",
    "bias": "",
    "alibi": "attention scores fall with the distance",
    "relative bias": "one bias per distance, added to the attention scores",
    "gate": "times a learned value",
    "insert": "in place of the placeholder tokens",
    "clip": "",
    "append": "",
    "token before": "",
    "add positions": "one fixed vector per position, added",
    "sines of places": "not learned",
    "times √d_model": "", "times ½": "", "times 1/√2": "", "times 1/√d_model": "", "times √d_per_layer": "", "times scale_emb": "",
    "times scale_depth / √n_layers": "", "times dim_model_base / d_model": "", "times embedding_scale": "", "times a number for each position": "",
    "times a number": "", "depth scale": "times a constant", "routed scale": "times a constant", "half": "times ½", "shift": "plus a learned vector",
    "weigh": "times a learned vector", "soft cap": "bounded smoothly", "activation": "", "gelu of the largest": "all others become 0",
    "first token": "", "of the token before": "",
    "pooled": "", "last position": "", "one position": "", "mean of all": "", "state at the start": "", "weighted sum of layers": "learned weights",
    "choose": "attends to the chosen tokens only",
    "choose tokens": "the largest scores",
    "keep": "attends to the kept tokens only",
    "spread": "",
    "pool": "neighbours are merged into one",
    "merge": "neighbours are merged into one",
    "pixel shuffle": "neighbours are merged into one",
    "class token": "prepended",
    "positions": "one learned vector per position, added", "distances": "of each pair of tokens", "relative positions": "of each pair of positions",
    "distances and segments": "of each pair of tokens",
    "query": "learned", "start": "learned", "bytes": "", "patches": "", "views": "", "ends of rows": "learned", "between images": "learned",
    "beside": "concatenated", "one of": "one of its inputs",
    "streams": "concatenated", "heads": "concatenated", "to every stream": "", "of this layer": "", "active stream": "",
    "as long as the first": "every stream scaled to the length of the first", "mixing weights": "the weights by which streams are mixed",
    "collapse": "weighted sum of the streams", "mix streams": "each a weighted sum of all", "correct streams": "to each its share of the update",
    "add to all streams but the first": "", "mean of the streams": "", "mix": "learned interpolation with the previous token",
    "mix profiles": "one value per distance", "beside a sink": "plus one score for the attention sink",
    "attend to blocks": "a learned query attends to earlier blocks and to itself", "the input": "passed on by the previous layer",
    "the input of q": "passed on by the previous layer", "the input of k": "passed on by the previous layer",
    "the input of v": "passed on by the previous layer",
    "a part for each expert": "the part that each expert's queries selected", "pairs of heads, twice": "each head of the first half with one of the second",
    "scale heads": "scaled per head", "remember": "cached for later tokens",
    "mean with its key": "half the query, half its key", "mean of its queries": "of those that share the key",
    "largest of each patch": "element-wise", "compress": "a block of tokens becomes one vector",
    "positions in the block": "one learned vector per position, added",
    "choose blocks": "those with the largest scores", "mask token": "replaces hidden patches", "sines of the distance": "not learned",
    "hidden state of an inner layer": "after the layer that is read", "states of a layer": "after the layer that is read",
    "add view": "at the positions of the image", "hide what is predicted": "replaced by a learned vector",
    "tuple": "",
    "cache": "earlier tokens from the cache, then the new ones",
    "pad": "padded with rows of zeros",
    "last row": "predicts the next token",
    "sum of experts": "weighted by the router",
    "QKᵀ": "", "mask": "", "· V": "",
}  # fmt: skip


def name_operation(data: Data, components: tuple[str, ...], part: str) -> str:
    """What an operation is called, by what its weights hold and the part of the model it stands in."""
    op = data.op
    if op in ("linear", "split", "lookup", "convolve", "linear by head", "grouped linear") and components:
        names = list(dict.fromkeys(name_component(name, data, part) for name in components))
        return "q, k and v" if names == ["queries", "keys", "values"] else ", ".join(names)
    return TEXTS.get(op, op)


def name_component(component: str, data: Data, part: str) -> str:
    if component == "embedding" and data.op != "lookup":
        return EMBEDDINGS.get(part, "embedding projection")
    if component == "position" and data.op == "lookup" and is_bias_of_pairs(data):
        return "relative position bias"
    return COMPONENTS.get(component, component.rpartition(".")[2].replace("_", " "))


def is_bias_of_pairs(data: Data) -> bool:
    """Whether a lookup gives a value per head for each pair of tokens: [tokens, tokens] in, [tokens, tokens, heads] out."""
    given = data.inputs[0].shape if data.inputs else ()
    return len(given) == 2 and len(data.shape) == 3


def note_of(op: str) -> str:
    return OPERATIONS.get(op, "not traced")


def note_on(data: Data) -> str:
    """What an operation does, where that depends on more than its name."""
    if not data.inputs:
        return ""
    shape = data.weights[0].shape if data.weights else ()
    if data.op == "scale" and (shape or data.inputs[1].shape[-1] != 1):
        return "times a learned vector" if shape else "scaled per head"
    if data.op == "convolve" and isinstance(data.detail, Recurring):
        return "per channel, over the last tokens" if shape[1] == 1 else "over the last tokens"
    if data.op == "lookup" and data.weights[0].component == "position" and len(data.shape) == 2:
        return "position lookup"
    return note_of(data.op)
