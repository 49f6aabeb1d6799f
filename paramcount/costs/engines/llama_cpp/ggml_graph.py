"""A graph of ggml: which device computes each node, and what is copied between devices.

Source: llama.cpp, commit 0c1e57098: ggml/src/ggml-backend.cpp, ggml_backend_sched_split_graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

OFFLOADED_ROWS = 32  # a batch of at least so many rows is worth copying weights to a GPU


class Node:
    """A tensor of a graph: a weight or cache that is there already, an input, a view, or the result of an operation."""

    __slots__ = (
        "allocated", "children", "device", "is_input", "is_output", "is_weight", "kind", "offset", "rows", "size",
        "sources", "view_of", "views",
    )  # fmt: skip

    def __init__(self, kind: str, size: int, sources: Iterable[Node] = (), *, rows: int = 1) -> None:
        self.kind, self.size, self.rows = kind, size, rows
        self.sources = list(sources)
        self.view_of: Node | None = None
        self.device = -1
        self.is_input = self.is_output = self.is_weight = self.allocated = False
        self.children = self.views = self.offset = 0

    @property
    def is_stored(self) -> bool:
        """Whether it, or what it shows, is a weight or a cache."""
        return self.is_weight or (self.view_of is not None and self.view_of.is_weight)

    @property
    def has_rows(self) -> bool:
        """Whether it is computed: neither given nor a view."""
        return self.kind not in ("leaf", "view")


class Graph:
    """Nodes in the order in which they are computed. The last device is the CPU."""

    def __init__(self, n_devices: int, *, copies: int = 1, offloads: bool = True) -> None:
        self.n_devices, self.copies, self.offloads = n_devices, copies, offloads
        self.nodes: list[Node] = []
        self.leafs: list[Node] = []
        self.visited: set[int] = set()

    @property
    def cpu(self) -> int:
        return self.n_devices - 1

    def weight(self, size: int, device: int) -> Node:
        """A weight or a cache, which is on a device already."""
        node = Node("leaf", size)
        node.is_weight, node.device = True, device
        return node

    def input(self, size: int) -> Node:
        node = Node("leaf", size)
        node.is_input, node.device = True, self.cpu
        return node

    def view(self, source: Node, size: int | None = None) -> Node:
        """The memory of a tensor, or a part of it."""
        node = Node("view", source.size if size is None else size, [source], rows=source.rows)
        node.view_of = source.view_of or source
        return node

    def expand(self, node: Node) -> None:
        """Add what a node needs, and the node, if they are not there yet."""
        if id(node) in self.visited:
            return
        self.visited.add(id(node))
        for source in node.sources:
            self.expand(source)
        (self.leafs if node.kind == "leaf" else self.nodes).append(node)


def assign_devices(graph: Graph) -> None:
    """Nodes run where their weights are, or on the first GPU if that pays; others where their neighbours do."""
    for node in graph.nodes:
        root = node.view_of
        if root is not None and root.is_weight:
            node.device = root.device
            continue
        if node.device >= 0 or node.kind in ("rope", "flash_attn"):
            continue
        weight = next((source for source in node.sources if source.is_weight), None)
        if weight is not None:
            is_large = graph.offloads and node.rows >= OFFLOADED_ROWS and node.kind != "get_rows"
            node.device = 0 if is_large and weight.device == graph.cpu else weight.device
    computed = [node for node in graph.nodes if node.has_rows]
    for nodes, skips_cpu in ((computed, True), (computed[::-1], True), (computed, False), (computed[::-1], False)):
        current = -1
        for node in nodes:
            if node.device >= 0:
                current = -1 if skips_cpu and node.device == graph.cpu else node.device
            elif current >= 0:
                node.device = current
    for node in graph.nodes:
        if node.device < 0:
            node.device = (node.view_of or node.sources[0]).device


def list_allocations(graph: Graph) -> tuple[list[Node], list[Node]]:
    """(nodes with the copies that devices need of each other's tensors, in order; further copies that stay)."""
    order: list[Node] = []
    kept: list[Node] = []
    copies: dict[tuple[int, int], Node] = {}
    starts = list(find_splits(graph))
    for start, stop in pairwise([*starts, len(graph.nodes)]):
        nodes = graph.nodes[start:stop]
        device = next(node.device for node in nodes if node.has_rows)
        inputs = []
        for node in nodes:
            if not node.has_rows:
                continue
            for j, source in enumerate(node.sources):
                if find_home(source) == device:
                    continue
                key = (id(source), device)
                if key not in copies:
                    copy = Node("leaf", source.size)
                    copy.device = device
                    copies[key] = copy
                    inputs.append((source, copy))
                node.sources[j] = copies[key]
        for source, copy in inputs:
            dependency = Node("dependency", 0, [source])
            dependency.view_of = source.view_of or source
            order += [dependency, copy]
            if graph.copies > 1:
                copy.is_input = copy.is_output = True
                kept.append(copy)
                for _ in range(graph.copies - 1):
                    other = Node("leaf", copy.size)
                    other.device, other.is_input, other.is_output = copy.device, True, True
                    kept.append(other)
        order += nodes
    return order, kept


def find_home(node: Node) -> int:
    return (node.view_of or node).device if node.is_stored else node.device


def find_splits(graph: Graph) -> Iterator[int]:
    """The first node of each run that one device computes. A further weight from another device begins a new one."""
    current, inputs = -1, 0
    seen: set[tuple[int, int]] = set()
    for i, node in enumerate(graph.nodes):
        if not node.has_rows:
            continue
        foreign = [source for source in node.sources if find_home(source) != node.device]
        is_new = node.device != current
        if not is_new and inputs and any(source.is_weight for source in foreign):
            is_new = True
        if is_new:
            yield 0 if current < 0 else i
            current, inputs = node.device, 0
        for source in foreign:
            if (id(source), current) not in seen:
                seen.add((id(source), current))
                inputs += 1
