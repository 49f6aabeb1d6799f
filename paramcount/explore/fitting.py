"""What can be chosen to see whether a model fits: GPUs and dtypes, and the weights of a release in its own format."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from paramcount.costs.caches import list_layer_caches
from paramcount.costs.deployment import Deployment
from paramcount.costs.devices import MARGIN_DIVISOR, Device
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines.engine import WITHIN_NODE
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.fit import LARGEST_BATCH, LONGEST_CONTEXT
from paramcount.costs.gpus import find_gpu, list_gpus
from paramcount.costs.requests import DEFAULT_CONTEXT
from paramcount.costs.sharding import Parallelism, find_shape
from paramcount.costs.weight_formats import choose_format, store_model
from paramcount.costs.weights import STORED
from paramcount.errors import ParamcountError
from paramcount.explore.packings import FORMATS
from paramcount.explore.sharing import ENGINE, derive_verdict
from paramcount.explore.structures import BYTES
from paramcount.symbolic.trees import to_json
from paramcount.zoo import Model
from paramcount.zoo.what_if import CONTEXT_SIZE

KV_DTYPES = ("bf16", "fp8", "int8", "f32")  # whose values have whole bytes each; the first is the default


def export_choices() -> dict[str, Any]:
    """What can be chosen, with the defaults and limits of the command line. `overhead`: assumed bytes on each GPU."""
    devices = {name: make_device(name) for name in (gpu.name for gpu in list_gpus())}
    overheads = {name: device.assume_overhead() for name, device in devices.items()}
    return {
        "gpus": [
            {
                "name": gpu.name,
                "aliases": gpu.aliases,
                "memory": devices[gpu.name].budget_bytes,
                "overhead": {name: getattr(overheads[gpu.name], name) for name in ("usual", "least", "most")},
                "note": devices[gpu.name].note,
            }
            for gpu in list_gpus()
        ],
        "most_gpus": WITHIN_NODE,
        "margin": 100 // MARGIN_DIVISOR,
        "dtypes": [*BYTES, *FORMATS.values()],
        "dtype_names": [*map(str.lower, BYTES), *FORMATS],
        "usual_dtype": "bf16",  # of models that are not released in another one
        "kv_dtypes": [
            {"name": name, "label": parse_kv_dtype(name).label, "bytes": parse_kv_dtype(name).keys.block_bytes}
            for name in KV_DTYPES
        ],
        "verdict": to_json(derive_verdict()),
        "default_context": DEFAULT_CONTEXT,
        "context_size": CONTEXT_SIZE,
        "longest_context": LONGEST_CONTEXT,
        "most_users": LARGEST_BATCH,
    }


def make_device(name: str) -> Device:
    gpu = find_gpu(name)
    return Device(gpu.name, gpu.memory_bytes, None, note=gpu.note)


def export_released_weights(model: Model) -> dict[str, Any] | None:
    """The weights in the format of the released files, if they are quantised: bytes of all, and on each of 1, 2, … GPUs
    with what kernels may add to them; null for numbers of GPUs that cannot share the model."""
    with suppress(ParamcountError):  # the config does not determine how its tensors are stored
        format = choose_format(model, None)
        if format.name == STORED:
            rows = store_model(model, format, {})
            request = CacheRequest(1, 1, parse_kv_dtype(KV_DTYPES[0]))
            device = Device("", 0, 0)
            deployment = Deployment(
                model, rows, list_layer_caches(model), find_shape(model.sizes), ENGINE, request, device
            )
            shares = [share(deployment, n) for n in range(1, WITHIN_NODE + 1)]
            weights = sum(row.bytes for row in rows if row.tensor.is_counted)
            return {"label": format.label, "weights": str(weights), "shares": shares}
    return None


def share(deployment: Deployment, gpus: int) -> list[str] | None:
    """[bytes of weights on each GPU, bytes that kernels may add]."""
    parallel = Parallelism(tp=gpus)
    try:
        ENGINE.check_parallelism(deployment.shape, parallel)
    except ParamcountError:
        return None
    divided = deployment._replace(parallel=parallel)
    return [str(ENGINE.share_weights(divided)[0]), str(ENGINE.estimate_overhead(divided, 0).most)]
