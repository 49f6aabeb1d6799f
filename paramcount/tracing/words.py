"""What operations and weights are called for people, and which operations are not described yet."""

from __future__ import annotations

# Of what a matrix, table or fused matrix holds: {component: words}
COMPONENTS = {
    "embedding": "token table", "position": "position table", "other_embedding": "table", "lm_head": "output head", "router": "router",
    "output_projection": "output projection", "qkv.q": "queries", "qkv.k": "keys", "qkv.v": "values", "qkv.gate": "gate", "qkv.q_down": "query latent",
    "qkv.q_up": "queries", "qkv.kv_down": "key-value latent", "qkv.kv_up": "keys and values", "mlp.gate": "gate", "mlp.up": "up", "mlp.down": "down",
    "experts.gate": "gate", "experts.up": "up", "experts.down": "down", "shared_experts.gate": "shared gate", "shared_experts.up": "shared up", "shared_experts.down": "shared down",
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
    "convolve": "each channel over the last tokens by itself",
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
    "mean": "over the text",
    "clip": "",
    "append": "",
    "token before": "",
    "add positions": "a fixed number for each place",
    "sines of places": "not learned",
    "times √d_model": "", "times ½": "", "times 1/√2": "", "times 1/√d_model": "", "times √d_per_layer": "", "times scale_emb": "",
    "times scale_depth / √n_layers": "", "times dim_model_base / d_model": "", "times embedding_scale": "", "times a number for each position": "",
    "first token": "",
    "choose": "only the chosen tokens count",
    "choose tokens": "the largest scores",
    "keep": "only what the scores keep counts",
    "spread": "",
    "pool": "neighbours become one",
    "merge": "neighbours become one",
    "pixel shuffle": "neighbours become one",
    "class token": "in front",
    "positions": "0, 1, 2, …", "distances": "of each two tokens", "relative positions": "of each two places", "distances and segments": "of each two tokens",
    "query": "learned", "start": "learned", "bytes": "", "patches": "", "views": "", "ends of rows": "learned", "between images": "learned",
    "beside": "side by side", "one of": "either",
    "streams": "", "to every stream": "", "of this layer": "", "active stream": "",
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
