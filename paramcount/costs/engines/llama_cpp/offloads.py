"""What may lie on the CPU so that a deployment fits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment


def list_offloads(deployment: Deployment, options: Container[str]) -> Iterator[dict[str, object]]:
    """The fewest layers whose experts, and the most layers that, are moved so that it fits. `options`: the names of the
    engine's options."""
    n_layers, given = deployment.shape.n_layers, deployment.request.options
    layers = "n_gpu_layers" if "n_gpu_layers" in options else "num_gpu"
    has_experts = any(row.tensor.component.startswith("experts") for row in deployment.rows)
    if has_experts and "n_cpu_moe" in options:
        first = int(given.get("n_cpu_moe", 0))
        n = find_first(lambda n: change(deployment, "n_cpu_moe", n).holds(), first + 1, n_layers)
        if n is not None:
            yield {"n_cpu_moe": n}
    most = n_layers if int(given.get(layers, -1)) < 0 else int(given[layers]) - 1
    fewer = find_first(lambda n: change(deployment, layers, most - n).holds(), 0, most - 1)
    if fewer is not None:
        yield {layers: most - fewer}


def change(deployment: Deployment, name: str, value: int) -> Deployment:
    """The same with another value of an option."""
    options = {**deployment.request.options, name: value}
    return deployment._replace(request=deployment.request._replace(options=options))


def find_first(is_enough: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number from low to high that is enough, if every larger one is; None if `high` is not."""
    if low > high or not is_enough(high):
        return None
    return low + bisect_left(range(low, high), True, key=is_enough)
