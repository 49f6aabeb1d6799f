"""What operations and weights are called for people, and which operations are not described yet."""

from __future__ import annotations

from paramcount.flow import Data
from paramcount.parts.state_space import Recurring

# Of what a matrix, table or fused matrix holds: {component: words}
COMPONENTS = {
    "embedding": "token table", "position": "position table", "other_embedding": "table", "lm_head": "output head", "router": "router",
    "output_projection": "output projection", "qkv.q": "queries", "qkv.k": "keys", "qkv.v": "values", "qkv.gate": "gate", "qkv.q_down": "query latent",
    "qkv.q_up": "queries", "qkv.kv_down": "key-value latent", "qkv.kv_up": "keys and values", "mlp.gate": "gate", "mlp.up": "up", "mlp.down": "down",
    "experts.gate": "gate", "experts.up": "up", "experts.down": "down", "shared_experts.gate": "shared gate",
    "shared_experts.up": "shared up", "shared_experts.down": "shared down",
    "mixer.q": "queries", "mixer.k": "keys", "mixer.v": "values", "mixer.x": "input", "mixer.gate": "gate", "mixer.step": "step",
    "mixer.b": "B", "mixer.c": "C", "mixer.xbc": "input, B and C", "mixer.beta": "beta", "mixer.out": "output projection", "mixer.convolution": "convolution",
}  # fmt: skip

# What each operation does with its input: an operation that is not here prints "not traced".
OPERATIONS = {
    "lookup": "a row for each number",
    "linear": "",
    "linear by head": "a matrix for each head",
    "grouped linear": "a matrix for each group",
    "norm": "",
    "l2 norm": "each head to length 1",
    "add": "",
    "subtract": "",
    "difference": "one half less the other",
    "multiply": "number by number",
    "scale": "times one number a row",
    "split": "",
    "join": "side by side",
    "rope": "rotated by position",
    "silu": "", "gelu": "", "relu": "", "relu²": "", "relu2": "", "sigmoid": "", "tanh": "", "softplus": "", "exp": "", "softmax": "", "xielu": "",
    "swiglu-oai": "",
    "convolve": "over neighbours",
    "scan": "a state is carried from token to token",
    "delta rule": "a state takes in what it does not hold yet",
    "to heads": "cut into heads",
    "to every head": "the same for every head",
    "to groups": "cut into groups",
    "reshape": "", "flatten": "",
    "correct": "a number for each expert, for the choice alone",
    "add bias": "",
    "bias": "",
    "alibi": "scores fall with the distance",
    "relative bias": "a bias for each distance",
    "gate": "times a learned number",
    "insert": "where the text has places for them",
    "clip": "",
    "append": "",
    "token before": "",
    "add positions": "a fixed number for each place",
    "sines of places": "not learned",
    "times √d_model": "", "times ½": "", "times 1/√2": "", "times 1/√d_model": "", "times √d_per_layer": "", "times scale_emb": "",
    "times scale_depth / √n_layers": "", "times dim_model_base / d_model": "", "times embedding_scale": "", "times a number for each position": "",
    "times a number": "", "depth scale": "times a number", "routed scale": "times a number", "half": "times ½", "shift": "a learned number added",
    "weigh": "times learned numbers", "soft cap": "bent so that no number passes a bound", "activation": "", "gelu of the largest": "the others become 0",
    "first token": "", "of the token before": "",
    "pooled": "", "last position": "", "one position": "", "mean of all": "", "state at the start": "", "weighted sum of layers": "learned weights",
    "choose": "only the chosen tokens count",
    "choose tokens": "the largest scores",
    "keep": "only what the scores keep counts",
    "spread": "",
    "pool": "neighbours become one",
    "merge": "neighbours become one",
    "pixel shuffle": "neighbours become one",
    "class token": "in front",
    "positions": "a learned row for each place, added", "distances": "of each two tokens", "relative positions": "of each two places",
    "distances and segments": "of each two tokens",
    "query": "learned", "start": "learned", "bytes": "", "patches": "", "views": "", "ends of rows": "learned", "between images": "learned",
    "beside": "side by side", "one of": "either",
    "streams": "side by side", "heads": "side by side", "to every stream": "", "of this layer": "", "active stream": "",
    "as long as the first": "every stream stretched to the length of the first", "mixing weights": "the numbers by which streams are mixed",
    "collapse": "the streams' weighted sum", "mix streams": "each a weighted sum of all", "correct streams": "to each its share of what is new",
    "add to all streams but the first": "", "mean of the streams": "", "mix": "a learned share of this token, the rest of the one before",
    "mix profiles": "a number for each distance", "beside a sink": "and a score for no token",
    "attend to blocks": "a learned query looks at earlier blocks and at itself", "the input": "handed on by the layer before",
    "the input of q": "handed on by the layer before", "the input of k": "handed on by the layer before", "the input of v": "handed on by the layer before",
    "a part for each expert": "the part that each expert's queries asked for", "pairs of heads, twice": "a head of the first half beside one of the second",
    "scale heads": "times one number a head", "remember": "kept as they are for later tokens",
    "mean with its key": "half the query, half its key", "mean of its queries": "of those that share the key",
    "largest of each patch": "number by number", "compress": "a block of tokens becomes one vector",
    "positions in the block": "a learned row for each place, added",
    "choose blocks": "those with the largest scores", "mask token": "in the place of hidden patches", "sines of the distance": "not learned",
    "hidden state of an inner layer": "behind the layer that is read", "states of a layer": "behind the layer that is read",
    "add view": "in the places of the picture", "hide what is predicted": "a learned vector in its place",
    "hand on": "",
    "cache": "what earlier tokens left, and this one",
    "pad": "rows of zeros",
    "last row": "the one that says what comes next",
    "sum of experts": "each weighed with its score",
    "QKᵀ": "", "mask": "", "· V": "",
}  # fmt: skip


def what(op: str, components: tuple[str, ...]) -> str:
    """An operation for people, by what its weights hold."""
    if op in ("linear", "split", "lookup", "convolve", "linear by head", "grouped linear") and components:
        named = list(dict.fromkeys(COMPONENTS.get(name, name.rpartition(".")[2].replace("_", " ")) for name in components))
        return "q, k and v" if named == ["queries", "keys", "values"] else ", ".join(named)
    return "token ids" if op == "tokens" else op


def note_of(op: str) -> str:
    return OPERATIONS.get(op, "not traced")


def note_on(data: Data) -> str:
    """What an operation does, where that depends on more than its name."""
    if not data.inputs:
        return ""
    shape = data.weights[0].shape if data.weights else ()
    if data.op == "scale" and (shape or data.inputs[1].shape[-1] != 1):
        return "times learned numbers" if shape else "times one number a head"
    if data.op == "convolve" and isinstance(data.detail, Recurring):
        return "each channel over the last tokens by itself" if shape[1] == 1 else "over the last tokens"
    if data.op == "lookup" and data.weights[0].component == "position" and len(data.shape) == 2:
        return "a row for each place"
    return note_of(data.op)
