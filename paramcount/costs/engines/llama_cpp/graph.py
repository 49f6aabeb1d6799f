"""The compute buffers of llama.cpp: its graph for one micro-batch, built from the tensors of a GGUF file.

The blocks that most architectures share are exact. Recurrent layers are simplified.

Source: llama.cpp, commit 0c1e57098: src/llama-graph.cpp (build_attn, build_ffn, build_moe_ffn), src/models/*.cpp, and
llama_context::graph_reserve of src/llama-context.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from paramcount.costs.engines.llama_cpp.ggml_graph import Graph, Node

F32, F16, I64 = 4, 2, 8  # bytes


class GraphWeight(NamedTuple):
    """A tensor of a GGUF file."""

    shape: tuple[int, ...]
    bytes: int


class GraphLayer(NamedTuple):
    """A layer of the model."""

    device: int
    tensors: Mapping[str, GraphWeight]  # by their names without "blk.N."
    cells: int = 0  # of each stream, that one token sees
    cache_bytes: int = 0  # keys and values, of all streams
    cache_device: int = 0
    experts_device: int = 0


class GraphModel(NamedTuple):
    """What a graph depends on."""

    layers: Sequence[GraphLayer]
    devices: int  # the CPU, which is the last one, included
    output_device: int
    output: GraphWeight  # the LM head, which may be the token embedding
    d_model: int
    n_heads: int
    experts_per_token: int
    tokens: int  # of a micro-batch
    outputs: int  # tokens whose logits are computed
    copies: int = 1  # of each input, so that GPUs work on several micro-batches
    flash_attn: bool = True
    has_embeddings: bool = True  # whether embeddings may be given instead of tokens
    offloads: bool = True  # whether a GPU computes with copies of weights on the CPU
    mask_bytes: int = F16  # of one value of the mask


class AttentionInputs(NamedTuple):
    """The inputs of all layers whose caches are alike."""

    mask: Node
    keys: Node  # the cells that are written
    values: Node


class GraphBuilder:
    """Builds the graph of a model. [n] stands for the tokens of a micro-batch."""

    def __init__(self, model: GraphModel) -> None:
        self.model, self.graph, self.n = (
            model,
            Graph(model.devices, copies=model.copies, offloads=model.offloads),
            model.tokens,
        )
        self.position = self.graph.input(self.n * 4)
        self.inputs: dict[int, AttentionInputs] = {}

    def build(self) -> Graph:
        model, graph = self.model, self.graph
        size = self.n * model.d_model * F32
        x = Node("get_rows", size, [graph.weight(0, graph.cpu), graph.input(self.n * 4)], rows=self.n)
        if model.has_embeddings:
            graph.expand(x)
            graph.expand(graph.input(size))
        chosen = graph.input(model.outputs * 4)
        for i, layer in enumerate(model.layers):
            part = LayerBuilder(self, layer)
            is_last = i == len(model.layers) - 1
            x = part.build(x, chosen if is_last else None)
            graph.expand(x)  # changes nothing but the depth of the recursion
        x = self.norm(x, model.output_device)
        x.is_output = True
        head = graph.weight(model.output.bytes, model.output_device)
        logits = Node("mul_mat", model.output.shape[0] * model.outputs * F32, [head, x], rows=model.outputs)
        logits.is_output = True
        graph.expand(logits)
        return graph

    def norm(self, x: Node, device: int) -> Node:
        rows = max(x.rows, 1)
        return Node("mul", x.size, [Node("rms_norm", x.size, [x], rows=rows), self.graph.weight(4, device)], rows=rows)

    def find_inputs(self, cells: int) -> AttentionInputs:
        """The mask and the indices of the cells that are written."""
        if cells not in self.inputs:
            model, graph = self.model, self.graph
            size = model.mask_bytes if model.flash_attn else F32
            mask = graph.input(cells * self.n * size)
            if model.flash_attn and size == F32:
                mask = Node("cast", cells * self.n * F16, [mask])
            self.inputs[cells] = AttentionInputs(mask, graph.input(self.n * I64), graph.input(self.n * I64))
        return self.inputs[cells]


class LayerBuilder:
    """Adds one layer to a graph."""

    def __init__(self, builder: GraphBuilder, layer: GraphLayer) -> None:
        self.builder, self.layer, self.graph, self.model = builder, layer, builder.graph, builder.model
        self.n = builder.n  # tokens; the outputs alone behind the attention of the last layer

    def has(self, *names: str) -> bool:
        return all(f"{name}.weight" in self.layer.tensors for name in names)

    def build(self, x: Node, chosen: Node | None) -> Node:
        normed = self.norm(x) if self.has("attn_norm") else x
        if self.has("attn_kv_a_mqa"):
            mixed = self.attend_to_latent(normed)
        elif self.has("attn_k") or (self.has("attn_qkv") and not self.has("ssm_out")):
            mixed = self.attend(normed)
        elif self.has("ssm_out") or self.has("shortconv.out_proj"):
            mixed = self.recur(normed)
        else:
            mixed = normed
        is_parallel = not self.has("ffn_norm") and not self.has("post_attention_norm")
        if self.has("post_attention_norm", "ffn_norm"):
            mixed = self.norm(mixed)
        if chosen is not None:
            self.n = self.model.outputs
            size = self.n * self.model.d_model * F32
            mixed, x = (Node("get_rows", size, [node, chosen], rows=self.n) for node in (mixed, x))
            normed = Node("get_rows", size, [normed, chosen], rows=self.n) if is_parallel else normed
        if not any(name.startswith("ffn_down") for name in self.layer.tensors):
            return self.add(mixed, x)
        if is_parallel:
            return self.add(self.add(self.feed_forward(normed), mixed), x)
        x = self.add(mixed, x)
        out = self.feed_forward(self.norm(x))
        return self.add(self.norm(out) if self.has("post_ffw_norm") else out, x)

    def norm(self, x: Node) -> Node:
        return self.builder.norm(x, self.layer.device)

    def add(self, a: Node, b: Node) -> Node:
        return Node("add", a.size, [a, b], rows=self.n)

    def multiply(self, name: str, x: Node, copies: int = 1, top: Node | None = None) -> Node:
        """[rows of the matrix, n], with its bias; for `copies` experts of each token."""
        weight = self.layer.tensors[f"{name}.weight"]
        device = self.layer.experts_device if name.endswith("_exps") else self.layer.device
        matrix = self.graph.weight(weight.bytes, device)
        size = weight.shape[-2] * copies * self.n * F32
        sources, kind, bias = [matrix, x], "mul_mat", "add"
        if top is not None:
            sources, kind, bias = [matrix, x, top], "mul_mat_id", "add_id"
        out = Node(kind, size, sources, rows=self.n)
        if f"{name}.bias" in self.layer.tensors:
            out = Node(bias, size, [out, self.graph.weight(4, self.layer.device)], rows=self.n)
        return out

    def attend(self, x: Node) -> Node:
        """Queries, keys and values, in one matrix or in three."""
        d_heads = self.layer.tensors["attn_output.weight"].shape[-1] * self.n * F32
        if self.has("attn_qkv"):
            qkv = self.multiply("attn_qkv", x)
            d_keys = (qkv.size - d_heads) // 2
            q, k, v = (self.graph.view(qkv, size) for size in (d_heads, d_keys, d_keys))
        else:
            q, k = (self.graph.view(self.multiply(name, x)) for name in ("attn_q", "attn_k"))
            v = self.graph.view(self.multiply("attn_v", x)) if self.has("attn_v") else k
        gate = self.graph.view(q, d_heads) if q.size > d_heads else None  # beside the queries, in one matrix
        q = self.graph.view(q, d_heads)
        if self.has("attn_q_norm"):
            q, k = self.norm(q), self.norm(k)
        q, k = (Node("rope", node.size, [node, self.builder.position], rows=self.n) for node in (q, k))
        out = self.look_up(q, k, v, d_heads)
        if gate is not None:
            out = Node("mul", out.size, [out, Node("unary", out.size, [Node("cont", out.size, [gate])])], rows=self.n)
        return self.multiply("attn_output", out)

    def look_up(self, q: Node, k: Node, v: Node | None, d_out: int) -> Node:
        """Write keys and values into the cache, and attend to it."""
        graph, layer = self.graph, self.layer
        inputs = self.builder.find_inputs(layer.cells)
        for node in (q, v, k):
            if node is not None:
                graph.expand(node)
        shares = 1 if v is None else 2
        caches = []
        for node, cells in ((k, inputs.keys), (v, inputs.values)):
            if node is not None:
                cache = graph.weight(layer.cache_bytes // shares, layer.cache_device)
                written = Node("set_rows", cache.size, [node, cells, cache], rows=self.n)
                written.view_of = cache
                graph.expand(written)
                caches.append(graph.view(cache))
        keys, values = caches[0], caches[-1]
        if self.model.flash_attn:
            out = graph.view(Node("flash_attn", d_out, [graph.view(q), keys, values, inputs.mask], rows=self.n))
        else:
            scores = layer.cells * self.n * self.model.n_heads * F32
            kq = Node("mul_mat", scores, [keys, graph.view(q)], rows=self.n)
            kq = Node("soft_max", scores, [kq, inputs.mask], rows=self.n)
            kqv = Node("mul_mat", d_out, [values, kq], rows=self.n)
            out = Node("cont", d_out, [graph.view(kqv)], rows=self.n)
        graph.expand(out)
        return out

    def attend_to_latent(self, x: Node) -> Node:
        """MLA with absorbed matrices: one head of keys, which are the values as well."""
        compressed = self.multiply("attn_kv_a_mqa", x)  # [latent + rotary, n]
        latent = self.layer.tensors["attn_kv_a_norm.weight"].shape[-1] * self.n * F32
        if self.has("attn_q_a"):
            q = self.multiply("attn_q_b", self.norm(self.multiply("attn_q_a", x)))
        else:
            q = self.multiply("attn_q", x)
        rotary = (compressed.size - latent) * self.model.n_heads
        position = self.builder.position
        q_rope = Node("rope", rotary, [self.graph.view(q, rotary), position], rows=self.n)
        k_rope = Node("rope", compressed.size - latent, [self.graph.view(compressed), position], rows=self.n)
        k = Node("concat", compressed.size, [k_rope, self.norm(self.graph.view(compressed, latent))], rows=self.n)
        absorbed = Node("mul_mat", latent * self.model.n_heads, [self.graph.view(q)], rows=self.n)
        q = Node("concat", absorbed.size + rotary, [q_rope, self.graph.view(absorbed)], rows=self.n)
        out = self.look_up(q, k, None, absorbed.size)
        d_heads = self.layer.tensors["attn_output.weight"].shape[-1] * self.n * F32
        values = Node("mul_mat", d_heads, [out], rows=self.n)
        return self.multiply("attn_output", Node("cont", d_heads, [self.graph.view(values)], rows=self.n))

    def recur(self, x: Node) -> Node:
        """A convolution and a recurrence: their inputs, and their outputs twice."""
        out = "ssm_out" if self.has("ssm_out") else "shortconv.out_proj"
        names = [name for name in ("attn_qkv", "attn_gate", "ssm_in", "shortconv.in_proj") if self.has(name)]
        parts = [self.multiply(name, x) for name in names]
        convolved = Node("concat", parts[0].size, [parts[0]], rows=self.n)
        convolved = Node("unary", convolved.size, [Node("conv", convolved.size, [convolved])], rows=self.n)
        size = self.layer.tensors[f"{out}.weight"].shape[-1] * self.n * F32
        y = Node("scan", 2 * size, [self.graph.view(convolved)], rows=self.n)
        y = Node("mul", size, [Node("cont", size, [self.graph.view(y)]), *parts[1:]], rows=self.n)
        return self.multiply(out, y)

    def feed_forward(self, x: Node) -> Node:
        if not self.has("ffn_down_exps"):
            return self.activate(x, "ffn_gate", "ffn_up", "ffn_down")
        out = self.route(x)
        if self.has("ffn_down_shexp"):
            shared = self.activate(x, "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp")
            if self.has("ffn_gate_inp_shexp"):
                gate = Node("unary", self.n * F32, [Node("mul_mat", self.n * F32, [x], rows=self.n)])
                shared = Node("mul", shared.size, [shared, gate], rows=self.n)
            out = self.add(out, shared)
        if self.has("ffn_down"):
            out = self.add(out, self.activate(x, "ffn_gate", "ffn_up", "ffn_down"))
        return out

    def activate(self, x: Node, gate: str, up: str, down: str) -> Node:
        hidden = self.multiply(up, x)
        size = self.layer.tensors[f"{down}.weight"].shape[-1] * self.n * F32
        if self.has(gate):
            hidden = Node("glu", size, [self.multiply(gate, x), hidden], rows=self.n)
        elif hidden.size > size:
            hidden = Node("glu", size, [hidden], rows=self.n)
        else:
            hidden = Node("unary", size, [hidden], rows=self.n)
        return self.multiply(down, hidden)

    def route(self, x: Node) -> Node:
        """The experts of each token, and their weighted sum."""
        graph, k = self.graph, self.model.experts_per_token
        view: Callable[..., Node] = graph.view
        scores = self.multiply("ffn_gate_inp", x)
        scores = Node("soft_max", scores.size, [scores], rows=self.n)
        top = view(Node("argsort", scores.size, [scores], rows=self.n))
        weights = Node("get_rows", k * self.n * F32, [view(scores), top], rows=self.n)
        total = Node("sum_rows", self.n * F32, [view(weights)], rows=self.n)
        weights = view(Node("div", weights.size, [view(weights), total], rows=self.n))
        graph.expand(weights)
        x = view(x)
        d_hidden = self.layer.tensors["ffn_down_exps.weight"].shape[-1] * k * self.n * F32
        if self.has("ffn_gate_up_exps"):
            both = self.multiply("ffn_gate_up_exps", x, k, top)
            hidden = Node("glu", d_hidden, [view(both), view(both)], rows=self.n)
        elif self.has("ffn_gate_exps"):
            up, gate = (self.multiply(name, x, k, top) for name in ("ffn_up_exps", "ffn_gate_exps"))
            hidden = Node("glu", d_hidden, [gate, up], rows=self.n)
        else:
            hidden = Node("unary", d_hidden, [self.multiply("ffn_up_exps", x, k, top)], rows=self.n)
        out = self.multiply("ffn_down_exps", hidden, k, top)
        out = Node("mul", out.size, [out, weights], rows=self.n)
        graph.expand(out)
        shares = [view(out, out.size // k) for _ in range(k)]
        for share in shares:
            graph.expand(share)
        combined = shares[0]
        for share in shares[1:]:
            combined = self.add(combined, share)
            graph.expand(combined)
        return combined if k > 1 else Node("cont", combined.size, [combined], rows=self.n)
