"""What an engine keeps on each device, and one that allocates what the computation needs; others derive from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paramcount.costs.caches import CacheGroup
from paramcount.costs.devices import PADDING_DIVISOR, Overhead
from paramcount.costs.dtypes import KVDtype, parse_kv_dtype
from paramcount.costs.engines.records import Allocation, CacheRequest, Option, Share, Support
from paramcount.costs.sharding import (
    Parallelism,
    ShardShape,
    check_parallelism,
    compute_once,
    list_uneven,
    share_weights,
    split_layers,
)
from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.formats.weights import get_label, list_padded_labels

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment
    from paramcount.zoo import Model

BF16, F32 = parse_kv_dtype("bf16"), parse_kv_dtype("f32")
WITHIN_NODE = 8  # GPUs over which tensor parallelism is tried first
MOST_DEVICES = 1024


class Engine:
    """How an inference engine allocates: here what the computation needs, states in BF16.

    A sliding window keeps the tokens that the next one attends to besides itself.
    """

    name = "minimal"
    options: Mapping[str, Option] = MappingProxyType({})  # {name: default}; a string has the choices of `choices`
    choices: Mapping[str, Sequence[str]] = MappingProxyType({})
    least: Mapping[str, int] = MappingProxyType({})  # the least value of an integer; others: 0 or 1, as the default
    utilization = 1.0  # the share of a device's memory that it uses by default
    most_devices = MOST_DEVICES  # that are tried
    splits_layers = False  # whether several GPUs share the layers unless something else is asked for
    reads_gguf = False  # whether it reads GGUF files, and no other weights
    quantises_cache = True  # whether its KV cache may have fewer bits than its activations
    runs_on_apple = True
    takes_drafts = True  # whether another model may draft tokens

    def apply_options(
        self, request: CacheRequest, *, has_context: bool, memory_bytes: int = 0, limit: int | None = None
    ) -> CacheRequest:
        """The request with what options say of its context and its batch. `has_context`: whether the user gave one.
        `memory_bytes`: of all GPUs; `limit`: the most tokens that the model takes.

        Raises: ParamcountError if both are given.
        """
        return request

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        return Allocation(count_kv_bytes(groups, request), request.batch * self.count_state_bytes(groups, request))

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        """The dtype of a state if the user names none."""
        return BF16

    def count_state_bytes(self, groups: Sequence[CacheGroup], request: CacheRequest) -> int:
        """Bytes of the states of one sequence."""
        return sum(
            group.layers * group.count_bytes(request.state_dtype or self.choose_state_dtype(group, request), request.tp)
            for group in groups
            if group.is_state
        )

    def describe_state_dtype(self, groups: Sequence[CacheGroup], request: CacheRequest) -> str:
        """Such as "FP32, convolutions BF16"; "" without states."""
        labels: dict[bool, dict[str, None]] = {True: {}, False: {}}  # of convolutions, of others
        for group in groups:
            if group.is_state:
                dtype = request.state_dtype or self.choose_state_dtype(group, request)
                labels[group.is_convolution][dtype.label] = None
        convolutions, others = map(", ".join, labels.values())
        if not others or convolutions in ("", others):
            return others or convolutions
        return f"{others}, convolutions {convolutions}"

    def choose_utilization(self, options: Mapping[str, Any]) -> float:
        """The share of a device's memory that it uses if the user names none."""
        return self.utilization

    def estimate_overhead(self, deployment: Deployment, stage: int) -> Overhead:
        """What the engine takes on a device of a pipeline stage beside weights, cache and state.

        An assumption here; an engine that is chosen computes it, or takes it from logged runs with their spread.
        """
        padded = share_formats(deployment, frozenset(list_padded_labels()))
        return deployment.device.assume_overhead(padded[stage] // PADDING_DIVISOR)

    def find_support(self, model: Model, groups: Sequence[CacheGroup], options: Mapping[str, Any]) -> Support:
        """Whether it runs a model."""
        return Support()

    def loads_mtp(self, request: CacheRequest) -> bool:
        """Whether the options load the model's MTP layers."""
        return False

    def share_weights(self, deployment: Deployment) -> tuple[int, ...]:
        """Bytes of the weights on one device of each stage; they are the same for every device, context and batch."""
        rows, shape, parallel = deployment.rows, deployment.shape, deployment.parallel
        return compute_once(rows, ("weights", parallel), lambda: share_weights(rows, shape, parallel))

    def measure(self, deployment: Deployment) -> tuple[Share, ...]:
        """The share of one device of each pipeline stage."""
        parallel, shape = deployment.parallel, deployment.shape
        request = deployment.request._replace(tp=parallel.tp)
        weights = self.share_weights(deployment)
        shares, stages = [], split_layers(shape.n_layers, parallel.pp)
        for i, groups in enumerate(deployment.list_stages()):
            allocation = self.allocate(groups, request)
            layers = stages[i]
            overhead = self.estimate_overhead(deployment, i)
            width = parallel.devices // parallel.pp
            share = Share(i, len(layers), weights[i], allocation.kv_bytes, allocation.state_bytes, overhead)
            shares.append(share._replace(device=i * width, devices=width, first_layer=layers.start))
        if draft := deployment.find_draft():  # drafts where the last token is computed
            shares[-1] = self.add_draft(shares[-1], draft)
        return tuple(shares)

    def add_draft(self, share: Share, draft: Deployment) -> Share:
        """A share with a whole draft model, or with what it has on one of the tensor-parallel GPUs."""
        weights, cache = self.share_weights(draft)[0], self.allocate(draft.list_stages()[0], draft.request)
        return share._replace(draft_weights_bytes=weights, draft_cache_bytes=cache.total_bytes)

    def find_cache_limit(self, request: CacheRequest) -> int | None:
        """The bytes of cache and state that the user gives each device, whatever is free; None: what is free."""
        return None

    def list_offloads(self, deployment: Deployment) -> Iterator[dict[str, object]]:
        """Options that leave as much on the CPU as makes a deployment fit, the mildest first."""
        return iter(())

    def count_replicas(self, request: CacheRequest, parallel: Parallelism) -> int:
        """Data-parallel ranks of attention, which have their own requests and caches."""
        return 1

    def replicate_attention(self, deployment: Deployment) -> Iterator[Deployment]:
        """The same GPUs with data-parallel attention."""
        return iter(())

    def list_groups(self, deployment: Deployment) -> list[tuple[CacheGroup, ...]]:
        """What each share caches, in the order of `measure`."""
        return deployment.list_stages()

    def write_command(self, deployment: Deployment, name: str) -> str:
        """The command line that starts the engine like this; "" if none does. `name`: of the model, as it takes it."""
        return ""

    def check_parallelism(self, shape: ShardShape, parallel: Parallelism) -> None:
        """Raises: ParamcountError if the engine cannot divide the model like this."""
        check_parallelism(shape, parallel)

    def list_uneven(self, shape: ShardShape, parallel: Parallelism) -> list[str]:
        """What does not divide evenly among the devices."""
        return list_uneven(shape, parallel)

    def list_parallelisms(self) -> Iterator[Parallelism]:
        """How the engine divides a model, on the fewest devices first: beyond a node, in pipeline stages. Layers alone
        are divided if it splits them."""
        if self.splits_layers:
            yield from (Parallelism(pp=n) for n in range(1, self.most_devices + 1))
            return
        yield from (Parallelism(tp=tp) for tp in range(1, WITHIN_NODE + 1))
        yield from (Parallelism(tp=WITHIN_NODE, pp=pp) for pp in range(2, MOST_DEVICES // WITHIN_NODE + 1))

    def count_tokens(self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int) -> int:
        """Tokens that fit in so many bytes, in sequences of the context of the request."""
        one = self.allocate(groups, request._replace(batch=1))
        units = (one.total_bytes - one.shared_bytes) // one.unit_bytes
        return max(0, available_bytes // one.unit_bytes) * request.context // units if units else 0

    def warn(self, deployment: Deployment) -> tuple[str, ...]:
        """What keeps the engine from starting although everything fits."""
        return ()

    def describe_available(
        self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int
    ) -> tuple[str, ...]:
        """What the engine does with so many bytes for the cache, beside the number of tokens."""
        return ()

    def check_options(self, given: Mapping[str, object]) -> None:
        """Raises: ParamcountError for an unknown option and for a wrong value."""
        for name, value in given.items():
            if not self.options:
                raise ParamcountError(f"{self.name} has no option {describe_value(name)}", where="engine_options")
            if name not in self.options:
                raise make_choice_error(name, self.options, where=f"option of {self.name}")
            if name in self.choices:
                if value not in self.choices[name]:
                    raise make_choice_error(value, self.choices[name], where=name)
                continue
            kind = type(self.options[name])
            if kind is float:
                if type(value) not in (int, float) or not 0 < float(str(value)) <= 100:
                    found = f"= {describe_value(value)}"
                    raise ParamcountError(found, where=name, expected="a number above 0, at most 100")
                continue
            least = 0 if kind is str else self.least.get(name, min(1, int(self.options[name])))
            most = 10**15 if name.endswith("_bytes") else 10**9
            if type(value) is not kind or (type(value) is int and not least <= value <= most):
                numbers = f"an integer from {least} to {most:,}"
                expected = {bool: "true or false", str: "a string"}.get(kind, numbers)
                raise ParamcountError(f"= {describe_value(value)}", where=name, expected=expected)


def is_latent(deployment: Deployment) -> bool:
    """Whether attention caches a compressed latent (MLA), which tensor parallelism does not divide."""
    return any(group.expanded for caches in deployment.caches for group in caches.groups)


def share_formats(deployment: Deployment, labels: frozenset[str]) -> tuple[int, ...]:
    """Bytes of the weights in some formats, as the files have them, on one device of each stage."""

    def share() -> tuple[int, ...]:
        rows = [row for row in deployment.rows if get_label(row.packing) in labels]
        return share_weights(rows, deployment.shape, deployment.parallel)

    return compute_once(deployment.rows, ("formats", labels, deployment.parallel), share)


def count_kv_bytes(groups: Sequence[CacheGroup], request: CacheRequest) -> int:
    return request.batch * sum(
        group.layers
        * group.count_tokens(request.context, request.source)
        * group.count_bytes(request.kv_dtype, request.tp)
        for group in groups
        if not group.is_state
    )
