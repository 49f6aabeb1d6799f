"""How ggml reserves the memory of a graph: where each tensor lies in the buffer of its device.

Source: llama.cpp, commit 0c1e57098: ggml/src/ggml-alloc.c, ggml_gallocr_alloc_graph_impl and ggml_dyn_tallocr_alloc.
"""

from __future__ import annotations

from paramcount.costs.engines.llama_cpp.ggml_graph import Graph, Node, assign_devices, list_allocations

ALIGNMENT = 128  # bytes; 32 on the CPU
INPLACE = frozenset(("add", "mul", "div", "unary", "rope", "rms_norm", "scale", "soft_max", "clamp", "add_id", "fill"))
ENDLESS = 1 << 60


def reserve(graph: Graph) -> list[int]:
    """The bytes of the buffer of each device."""
    assign_devices(graph)
    order, copies = list_allocations(graph)
    return allocate(graph, order, copies)


class FreeBlocks:
    """The free blocks of a buffer, by offset; the last one has no end."""

    def __init__(self) -> None:
        self.blocks: list[list[int]] = [[0, ENDLESS]]
        self.size = 0

    def take(self, size: int) -> int:
        """The offset of the smallest block that is large enough; of the last one if no other is."""
        fitting = [block for block in self.blocks[:-1] if block[1] >= size]
        block = min(reversed(fitting), key=lambda b: b[1]) if fitting else self.blocks[-1]
        offset = block[0]
        block[0] += size
        block[1] -= size
        if not block[1]:
            self.blocks.remove(block)
        self.size = max(self.size, offset + size)
        return offset

    def free(self, offset: int, size: int) -> None:
        if not size:
            return
        self.blocks.append([offset, size])
        self.blocks.sort()
        merged = [self.blocks[0]]
        for block in self.blocks[1:]:
            if sum(merged[-1]) == block[0]:
                merged[-1][1] += block[1]
            else:
                merged.append(block)
        self.blocks = merged


def align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def allocate(graph: Graph, order: list[Node], kept: list[Node]) -> list[int]:
    """Give each node memory when it is computed, and take it back when its last reader is."""
    memories = [FreeBlocks() for _ in range(graph.n_devices)]

    def place(node: Node) -> None:
        if node.is_weight or node.allocated or node.view_of is not None:
            return
        node.allocated = True
        if node.kind in INPLACE:
            for parent in node.sources:
                if take_over(node, parent):
                    return
        node.offset = memories[node.device].take(align(node.size))

    for leaf in [*kept, *graph.leafs]:
        place(leaf)
    if graph.copies > 1:  # of the inputs that are read, too
        read = {id(source): source for node in order for source in node.sources if source.is_input}
        for source in read.values():
            if source.device == graph.cpu:
                source.is_output = True
                memories[graph.cpu].take(align(source.size) * (graph.copies - 1))
    for node in order:
        if node.view_of is not None and node.kind != "dependency":
            node.view_of.views += 1
        for source in node.sources:
            source.children += 1
            if source.is_input:
                place(source)
    for node in order:
        for source in node.sources:
            place(source)
        place(node)
        for source in node.sources:
            source.children -= 1
            if source.children or source.views:
                continue
            root = source.view_of
            if root is None:
                release(source, memories)
                continue
            root.views -= 1
            if not root.views and not root.children:
                release(root, memories)
    return [memory.size for memory in memories]


def take_over(node: Node, parent: Node) -> bool:
    """Whether a node writes its result over a parent that nothing else reads."""
    if parent.is_weight or not parent.allocated or parent.is_output or parent.size != node.size:
        return False
    if parent.view_of is not None or parent.children != 1 or parent.views:
        return False
    node.offset, node.device = parent.offset, parent.device
    parent.allocated = False
    return True


def release(node: Node, memories: list[FreeBlocks]) -> None:
    if node.allocated and not node.is_output:
        memories[node.device].free(node.offset, align(node.size))
        node.allocated = False
