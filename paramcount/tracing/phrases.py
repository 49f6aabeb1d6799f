"""Names and explanations of operations, weights and layers, as tables and drawings show them."""

from __future__ import annotations

from paramcount.flow import Data

# {component: name of its weights}. Other components are called by their own name.
COMPONENTS = {
    "embedding": "token embedding", "position": "position embedding", "other_embedding": "other embedding",
    "lm_head": "LM head", "output_projection": "output projection",
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
EMBEDDINGS = {"vision": "patch embedding", "audio": "audio embedding"}  # {part: name of an embedding without a lookup}
UNCHANGED_NAMES = (  # operations whose name needs no explanation
    "activation", "silu", "gelu", "relu", "relu²", "relu2", "sigmoid", "tanh", "softplus", "exp", "xielu",
    "swiglu-oai", "times √d_model", "times √(d_model / rank)", "times ½", "times 1/√2", "times 1/√d_model",
    "times √d_per_layer", "times scale_emb", "times scale_depth / √n_layers", "times dim_model_base / d_model",
    "times embedding_scale",
)  # fmt: skip

NOT_DESCRIBED = "details not modelled"

# {operation: (name, explanation)}. An operation without an entry is shown as NOT_DESCRIBED.
OPERATIONS = {
    # inputs
    "tokens": ("token ids", ""),
    "bytes": ("bytes", ""),
    "patches": ("patches", ""),
    "views": ("image crops", ""),
    "query": ("query", "learned"),
    "start": ("initial state", "learned"),
    "ends of rows": ("row separators", "learned"),
    "between images": ("image separator", "learned"),
    "the input": ("layer input", "from the previous layer"),
    "the input of q": ("query convolution input", "from the previous layer"),
    "the input of k": ("key convolution input", "from the previous layer"),
    "the input of v": ("value convolution input", "from the previous layer"),
    # embeddings and positions
    "lookup": ("lookup", "row lookup"),
    "positions": ("position embedding", "one learned vector per position, added"),
    "positions in the block": ("block positions", "one learned vector per position in the block, added"),
    "sinusoids": ("sinusoidal positions", "fixed"),
    "sines of the distance": ("sinusoidal distances", "fixed"),
    "rope": ("rope", "rotary position embedding"),
    "distances": ("relative positions", "for each pair of tokens"),
    "relative positions": ("relative positions", "for each pair of positions"),
    "distances and segments": ("relative positions and segments", "for each pair of tokens"),
    "class token": ("class token", "prepended"),
    "mask token": ("mask token", "replaces masked patches"),
    "insert": ("insert", "replaces the placeholder tokens"),
    "add view": ("add image features", "at the positions of the image"),
    # matrices and vectors
    "linear": ("linear", ""),
    "linear by head": ("linear per head", "one matrix per head"),
    "grouped linear": ("grouped linear", "one matrix per group"),
    "norm": ("norm", ""),
    "l2 norm": ("L2 norm", "scales each head to length 1"),
    "bias": ("bias", ""),
    "add bias": ("add bias", ""),
    "shift": ("shift", "adds a learned vector"),
    "gate": ("gate", "times a learned scalar"),
    "weigh": ("scale", "times a learned vector"),
    "convolve": ("convolution", "over adjacent positions"),
    "mix": ("token shift", "learned interpolation with the previous token"),
    # element-wise
    "add": ("add", ""),
    "subtract": ("subtract", ""),
    "multiply": ("multiply", "element-wise"),
    "difference": ("difference", "first half minus second half"),
    "scale": ("scale", "scaled per token"),
    "depth scale": ("depth scale", "times a constant"),
    "routed scale": ("routed scale", "times a constant"),
    "half": ("half", "times ½"),
    "clip": ("clip", ""),
    "plus 1": ("add 1", ""),
    "soft cap": ("soft cap", "smooth limit on the magnitude"),
    "largest of each patch": ("max pooling", "element-wise maximum over each patch"),
    "gelu of the largest": ("sparse gelu", "sets all but the largest values to 0"),
    **{name: (name, "") for name in UNCHANGED_NAMES},
    "times a number": ("scale", "times a constant"),
    "times a number for each position": ("scale", "times a constant per position"),
    # shapes
    "split": ("split", ""),
    "join": ("concat", ""),
    "append": ("append", ""),
    "beside": ("concat", ""),
    "and blocks": ("add compressed blocks", NOT_DESCRIBED),
    "heads": ("concat heads", ""),
    "to heads": ("reshape to heads", ""),
    "to every head": ("expand to heads", "shared by all heads"),
    "to groups": ("reshape to groups", ""),
    "reshape": ("reshape", ""),
    "flatten": ("flatten", ""),
    "pad": ("pad", "with zeros"),
    "spread": ("expand", ""),
    "sums of blocks": ("block sums", ""),
    "pool": ("pool", "merges adjacent patches"),
    "merge": ("merge", "merges adjacent patches"),
    "pixel shuffle": ("pixel shuffle", "merges adjacent patches"),
    "pairs of heads, twice": ("pair heads", "each head of the first half with one of the second"),
    "one of": ("select", "one of its inputs"),
    # attention
    "QKᵀ": ("QKᵀ", "attention scores"),
    "mask": ("mask", ""),
    "softmax": ("softmax", ""),
    "· V": ("· V", "weighted sum of values"),
    "cache": ("KV cache", "cached tokens, then the new ones"),
    "remember": ("cache", "for later tokens"),
    "same segment": ("segment scores", NOT_DESCRIBED),
    "sum of scores": ("sum of scores", NOT_DESCRIBED),
    "prompt in front": ("prepend prompt", NOT_DESCRIBED),
    "with distances": ("relative position scores", NOT_DESCRIBED),
    "alibi": ("ALiBi", "bias on the attention scores, proportional to the distance"),
    "relative bias": ("relative position bias", "added to the attention scores"),
    "mix profiles": ("mix profiles", "one value per distance"),
    "beside a sink": ("attention sink", "one more score per head"),
    "choose": ("select tokens", "attends only to the selected tokens"),
    "choose tokens": ("top-k tokens", "by index score"),
    "choose blocks": ("top-k blocks", "by index score"),
    "compress": ("compress", "one vector per block of tokens"),
    "attend to blocks": ("attend to blocks", "a learned query attends to earlier blocks and to itself"),
    "mean with its key": ("average with key", "mean of the query and its key"),
    "mean of its queries": ("average of queries", "mean of the queries that share the key"),
    "hide what is predicted": ("mask predicted tokens", "replaced by a learned vector"),
    # recurrence
    "scan": ("scan", "recurrent state, updated per token"),
    "delta rule": ("delta rule", "recurrent state, updated per token by the delta rule"),
    "token before": ("previous token", ""),
    "of the token before": ("previous token", ""),
    "state at the start": ("initial state", ""),
    # experts
    "correct": ("routing bias", "affects which experts are selected, not their weights"),
    "sum of experts": ("sum of experts", "weighted by the router"),
    "a part for each expert": ("split by expert", "the input of each selected expert"),
    # layers and streams
    "last row": ("last position", "predicts the next token"),
    "last position": ("last position", ""),
    "first token": ("first token", ""),
    "one position": ("one position", ""),
    "pooled": ("pooled", ""),
    "mean of all": ("mean", "over all positions"),
    "weighted sum of layers": ("weighted sum of layers", "learned weights"),
    "hidden state of an inner layer": ("hidden state", "of an intermediate layer"),
    "states of a layer": ("hidden state", "of an intermediate layer"),
    "of this layer": ("select layer", ""),
    "streams": ("streams", "concatenated"),
    "to every stream": ("expand to streams", ""),
    "active stream": ("active stream", ""),
    "as long as the first": ("rescale streams", "to the magnitude of the first"),
    "mixing weights": ("mixing weights", "determine how the streams are mixed"),
    "mix streams": ("mix streams", "each stream becomes a weighted sum of all"),
    "collapse": ("collapse", "weighted sum of the streams"),
    "correct streams": ("update streams", "each stream gets its share of the update"),
    "add to all streams but the first": ("add to the other streams", ""),
    "mean of the streams": ("mean of streams", ""),
    "tuple": ("tuple", ""),
}  # fmt: skip


def name_operation(data: Data, components: tuple[str, ...], part: str) -> str:
    """The name of an operation: that of its weights, or if it has none, its own."""
    op = data.op
    if op in ("linear", "split", "lookup", "convolve", "linear by head", "grouped linear") and components:
        names = list(dict.fromkeys(name_component(name, data, part) for name in components))
        return "q, k and v" if names == ["queries", "keys", "values"] else ", ".join(names)
    return name_step(op)


def name_component(component: str, data: Data, part: str) -> str:
    """The name of the weights of a component in an operation."""
    if component == "embedding" and data.op != "lookup":
        return EMBEDDINGS.get(part, "embedding projection")
    if data.op == "convolve" and component == "mixer":
        return "convolution"
    if component == "other" and data.op == "linear":
        return "linear"
    if component == "router" and any("shared" in weight.name for weight in data.weights):
        return "shared expert gate"
    if component == "position" and data.op == "lookup" and is_pairwise_bias(data):
        return "relative position bias"
    return COMPONENTS.get(component, component.rpartition(".")[2].replace("_", " "))


def is_pairwise_bias(data: Data) -> bool:
    """Whether a lookup returns one value per head for each pair of tokens: [n, n] becomes [n, n, heads]."""
    indices = data.inputs[0].shape if data.inputs else ()
    return len(indices) == 2 and len(data.shape) == 3


def name_step(op: str) -> str:
    """The name of an operation without weights."""
    return OPERATIONS[op][0] if op in OPERATIONS else op


def describe_operation(op: str) -> str:
    """The explanation of an operation; "" if its name is enough."""
    return OPERATIONS[op][1] if op in OPERATIONS else NOT_DESCRIBED


def describe_data(data: Data) -> str:
    """The explanation of an operation, which may depend on its weights and shapes."""
    if not data.inputs:
        return ""
    shape = data.weights[0].shape if data.weights else ()
    if data.op == "scale" and (shape or data.inputs[1].shape[-1] != 1):
        return "times a learned vector" if shape else "scaled per head"
    if data.op == "convolve" and data.operation.state_shapes:
        return "causal, depthwise" if shape[1] == 1 else "causal"
    if data.op == "lookup" and data.weights[0].component == "position" and len(data.shape) == 2:
        return "position lookup"
    note = data.operation.describe()
    if not note or note == data.op:  # an operation that is known by its name alone
        note = describe_operation(data.op)
    return "" if note.casefold() == name_step(data.op).casefold() else note
