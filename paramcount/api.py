"""The Python API: the only place that joins names, files and counting. `import paramcount` offers all of it.

Every function that takes a model accepts the same values, which are `ModelLike`: a zoo id (`"llama-3.1-8b"`), a Hugging
Face id or URL (in the zoo, or in the local cache), the path of a config.json, of a directory with one or of a YAML
entry, a mapping (a parsed config.json, or `architecture` and `config`), a transformers config object, or a `Model` from
`load` or `what_if`.

They also share their options:

- `download=True` fetches the config.json of a Hugging Face id that is not in the local cache; needs the [hub] extra.
- `set={"n_layers": 40}` changes sizes first, as `what_if` does.
- `base="llama-3.1-8b"` is the model that an adapter_config.json changes, if its own name for it is not known.
- `strict=True` turns every warning about a config into an error. By default Python's `warnings` shows each of them as a
  `ConfigWarning`.

`what_if` and `formula` take sizes and flags as keywords instead of options; pass them `load(model, download=True)`.

Every error is a `ParamcountError`: one line that says where, what is wrong and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    import pandas

    from paramcount.auditing.audit import Audit
    from paramcount.checkpoints.contents import StoredCount
    from paramcount.checkpoints.verify import Verification
    from paramcount.costs.adapters.adapters import Bias, Lora, Method
    from paramcount.costs.adapters.search import AdapterSearch
    from paramcount.costs.flops import Flops
    from paramcount.costs.memory import Memory
    from paramcount.costs.plan.records import ServingPlan
    from paramcount.costs.training.training import Training
    from paramcount.counting.count import Count
    from paramcount.drawing.parameter_map import ParameterMap
    from paramcount.drawing.shapes import Drawing
    from paramcount.execution.run import Run
    from paramcount.explaining.explanation import Explanation
    from paramcount.explaining.why import Why
    from paramcount.loading.models import ModelLike
    from paramcount.sweeping.size import Sizing
    from paramcount.sweeping.sweep import Sweep
    from paramcount.symbolic.polynomials import Polynomial
    from paramcount.tracing.trace import Trace
    from paramcount.views.diff import Difference
    from paramcount.zoo.model import Model

Settings = Mapping[str, object]


class LoadOptions(TypedDict, total=False):
    """The options that all functions share; see above."""

    download: bool
    strict: bool
    set: Settings | None
    base: ModelLike | None


def load(
    model: ModelLike,
    *,
    download: bool = False,
    strict: bool = False,
    set: Settings | None = None,
    base: ModelLike | None = None,
) -> Model:
    """The sizes of a model, with their sources, how its config was read and what its zoo entry says.

    Raises: ParamcountError for an unknown model, with the nearest names, and for an invalid config.

    >>> load("deepseek-v3").sizes.n_routed_experts
    256
    >>> load({"model_type": "qwen3", "num_hidden_layers": 36}).sizes.n_layers
    36
    """
    from paramcount import loading

    loaded = loading.load(model, download=download, strict=strict, base=base)
    if set is not None and not isinstance(set, Mapping):
        raise ParamcountError(f"is of type {type(set).__name__}", where="set", expected="a mapping of sizes to values")
    if not set:
        return loaded
    from paramcount.zoo.what_if import change_sizes

    return change_sizes(loaded, set)


def load_draft(draft: ModelLike | None, options: LoadOptions) -> Model | None:
    """A draft model, as another one is loaded, whose changes are not its own."""
    if draft is None:
        return None
    return load(draft, download=options.get("download", False), strict=options.get("strict", False))


def count(model: ModelLike, **options: Unpack[LoadOptions]) -> Count:
    """The parameter count of a model: total, active, per component, per part and per tensor. All are Python ints.

    Raises: ParamcountError as `load` does, and for a third-party estimate, whose sizes are unpublished.

    >>> count("gpt2-small").total
    124439808
    >>> count({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16}).total
    1481705472
    >>> count("llama-3.1-8b", set={"n_layers": 40}).total
    9775157248
    """
    from paramcount.zoo import count_model

    return count_model(load(model, **options))


def compare(
    models: Iterable[ModelLike], *, estimates: bool = False, **options: Unpack[LoadOptions]
) -> pandas.DataFrame:
    """A DataFrame with one row per model: exact counts, components and sizes; integer columns have the dtype Int64.

    `models` may also contain families ("qwen") and wildcards ("gpt2-*"). A size that a model does not have is 0; only
    unknown values are missing. `estimates` adds a row for each third-party estimate.

    Raises: ParamcountError as `load` does; for a count of 2^63 or more, which does not fit an Int64 column.

    >>> compare(["gpt2-*"])["total"].tolist()
    [124439808, 354823168, 774030080, 1557611200]
    """
    from paramcount.views.compare import make_frame

    return make_frame(_select(models, estimates=estimates, **options))


def zoo(*, estimates: bool = False) -> pandas.DataFrame:
    """Everything that the zoo says about each model, one row per model: the table `models` of `query`.

    Integers have the dtype Int64, flags boolean, release dates datetime64; `paramcount docs data` describes every
    column. `estimates` adds a row for each third-party estimate, with missing counts.

    Raises: ParamcountError for an entry that cannot be read.

    >>> frame = zoo().set_index("id")
    >>> int(frame.loc["gpt2-small", "total"]), str(frame["total"].dtype)
    (124439808, 'Int64')
    """
    from paramcount.database.frames import make_zoo_frame

    return make_zoo_frame(estimates=estimates)


def query(sql: str) -> pandas.DataFrame:
    """The result of one SELECT of SQLite over the zoo. Integers have the dtype Int64.

    The tables are models, sizes, settings, components, parts, tensors, published, explanations, sources and memory;
    `paramcount docs data` describes every column. A query can only read; it may take 10 seconds, 1 GiB of memory and
    100,000 rows.

    Raises: ParamcountError for an invalid query, and for one that takes too much time or memory.

    >>> frame = query("SELECT component, parameters FROM components WHERE model = 'gpt2-small' AND parameters > 3e7")
    >>> dict(zip(frame["component"], map(int, frame["parameters"])))
    {'embedding': 38597376, 'mlp': 56669184}
    """
    from paramcount.database.frames import make_query_frame

    return make_query_frame(sql)


def diff(
    a: ModelLike,
    b: ModelLike,
    *,
    download: bool = False,
    strict: bool = False,
    set: Settings | None = None,
) -> Difference:
    """The differences between two models: their sizes, the settings of their forward pass, and the components that
    account for the parameters.

    `set` changes the second model.

    Raises: ParamcountError as `count` does.

    >>> result = diff("llama-2-7b", "llama-3.1-8b")
    >>> [(size.name, size.a, size.b) for size in result.sizes[:2]]
    [('vocab_size', 32000, 128256), ('n_kv_heads', 32, 8)]
    >>> result.difference, [(component.component, component.difference) for component in result.components[:2]]
    (1291845632, [('mlp', 1308622848), ('qkv', -805306368)])
    """
    from paramcount.views.diff import diff_models

    first = load(a, download=download, strict=strict)
    return diff_models(first, load(b, download=download, strict=strict, set=set))


def what_if(model: ModelLike, /, **changes: object) -> Model:
    """The model with some sizes or flags changed. All others keep their values, even if the config.json derives them.

    Change a size of an inner config with a mapping, `vision={"n_layers": 24}`, or with a dot,
    `**{"vision.n_layers": 24}`. The result has `original` and `changes`, but no sources and no published figures.

    Raises: ParamcountError for a size that the model does not have, and for sizes that contradict each other, with a
    value that works.

    >>> count(what_if("llama-3.1-8b", n_layers=40)).total - count("llama-3.1-8b").total == 8 * 218_112_000
    True
    """
    return load(model, set=changes)


def sweep(
    model: ModelLike,
    sizes: Mapping[str, object],
    *,
    columns: Iterable[str] = ("total", "active"),
    **options: Unpack[LoadOptions],
) -> Sweep:
    """The counts of every combination of some sizes, in chunks of int64 arrays; all other sizes keep their values.

    `sizes` maps each size to its values: a range, a list, an array, a string such as "16:64:4", or an expression of
    other sizes ("4*d_model"). Iterating over the result yields a DataFrame per chunk of valid combinations; `arrays()`
    yields `{column: array}` instead, and `invalid()` the invalid combinations with a reason each. `columns` are counts,
    components, "kv_per_token" (bytes in BF16), "state" and sizes.

    A count of 2^63 or more is a Python int, in a column of objects; it is never wrong.
    Raises: ParamcountError as `load` does; for an unknown size or column; for an invalid expression.

    >>> result = sweep("llama-3.1-8b", {"n_layers": [16, 32], "d_model": "1024:4096:3072", "d_ff": "7 * d_model // 2"})
    >>> result.combinations
    4
    >>> [frame["total"].tolist() for frame in result]
    [[606635008, 4540469248, 950600704, 8030261248]]
    """
    from paramcount.sweeping.axes import make_axes
    from paramcount.sweeping.sweep import make_sweep

    loaded = load(model, **options)
    return make_sweep(loaded, make_axes(sizes), tuple(columns))


def size(
    like: ModelLike,
    *,
    total: int | None = None,
    active: int | None = None,
    within: float = 0.05,
    memory: int | None = None,
    dtype: str = "bf16",
    context: int | None = None,
    overhead: int = 10**9,
    vary: Sequence[str] | None = None,
    multiple_of: int = 128,
    limit: int = 10,
    **options: Unpack[LoadOptions],
) -> Sizing:
    """The valid configurations nearest to a budget, with the proportions of a model, best first.

    `total` and `active` are numbers of parameters, met `within` a share; `memory` is a limit in bytes for the weights
    in `dtype`, the KV cache of `context` tokens and `overhead` bytes for a runtime (an assumption); 10% of it must be
    left, as for "fits" in `memory`. With `memory` alone, the largest configurations come first. `vary` names the sizes
    that vary: by default d_model and n_layers.
    `multiple_of` is the step of dimensions. `rules` of the result states the rules for the shape; each candidate has
    its exact count.

    Raises: ParamcountError as `load` does; if no configuration meets the budget, with the nearest total.

    >>> result = size("llama-3.1-8b", total=3_000_000_000, limit=2)
    >>> [(c.sizes["d_model"], c.sizes["n_layers"], c.total) for c in result.candidates]
    [(3072, 18, 3024731136), (2560, 28, 3042327040)]
    >>> result.rules[2]
    'n_heads is proportional to d_model, exactly; the head size stays'
    """
    from paramcount.sweeping.size import ParameterBudget, size_model

    loaded = load(like, **options)
    budget = ParameterBudget(total, active, within, memory, dtype, context, overhead)
    return size_model(loaded, budget, vary, multiple_of, limit)


def count_frame(
    frame: pandas.DataFrame,
    architecture: str,
    *,
    columns: Iterable[str] = ("total", "active"),
    keep: Iterable[str] = (),
) -> pandas.DataFrame:
    """The frame with the counts of each row, which is a config.json of one model type.

    Columns of the frame are config.json keys, size names or table headings; `keep` names those that are none. A missing
    value is a missing key, with a ConfigWarning that names the column and its rows. The result has an Int64 column for
    each of `columns`, and the column "reason": a row that cannot be counted has NA and the message of `count`. Rows
    with the same flags are counted together on arrays. It works in Dask's `map_partitions` and Spark's `mapInPandas`.

    Raises: ParamcountError for an unknown architecture, and for a column that is neither a size nor in `keep`.

    >>> import pandas
    >>> frame = pandas.DataFrame({"n_layers": [16, 32], "hidden_size": [2048, 4100], "heads": [32, 32]})
    >>> result = count_frame(frame, architecture="llama")
    >>> result["total"].tolist()
    [1481705472, <NA>]
    >>> result["reason"][1]
    'num_attention_heads = 32 does not divide hidden_size = 4100 (expected 10, 20, 25, 41, 50, …)'
    """
    from paramcount.sweeping.frames import count_rows_of_frame

    return count_rows_of_frame(frame, architecture, columns, keep)


def explain(
    model: ModelLike, *, layer: int | str | None = None, head: bool = False, **options: Unpack[LoadOptions]
) -> Explanation:
    """The arithmetic of a count: per component the formula in named sizes, the same in numbers, and its value.

    `layer` explains one layer: an index into the decoder's layers, or the name of a stack with an index, such as
    "model.encoder.layers.3". `head` explains one attention head of that layer, or of the first layer with attention.

    Raises: ParamcountError as `count` does; for a layer that does not exist, or that has no attention heads.

    >>> line = explain("llama-3.1-8b").components[1].lines[0]
    >>> line.formula, line.numbers, line.value
    ('n_layers · d_model · d_head · (n_heads + 2·n_kv_heads)', '32 · 4,096 · 128 · (32 + 2·8)', 805306368)
    """
    from paramcount.explaining.explain import explain_model

    return explain_model(load(model, **options), layer=layer, head=head)


def formula(model: ModelLike, of: str = "total", **structure: object) -> Polynomial:
    """A count of a model or of an architecture as a polynomial in its named sizes.

    `model` may be the name of an architecture ("llama"); `structure` then sets its flags. If a model has the same
    name, `{"architecture": "gpt2"}` selects the architecture. `of` is a field of a count ("total", "active", "mtp"), a
    component ("qkv"), a subcomponent ("qkv.q") or a part ("encoder"). The formula uses the values of the sizes in
    `structure` instead of their names.

    Raises: ParamcountError for an unknown name, with the nearest names; for missing flags of an architecture, with
    their names.

    >>> formula("llama-3.1-8b", of="qkv")
    n_layers · d_model · d_head · (n_heads + 2·n_kv_heads)
    >>> total = formula("llama", attention_bias=False, mlp_bias=False, tie_word_embeddings=False)
    >>> total.evaluate(vocab_size=128256, d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_head=128, d_ff=14336)
    8030261248
    >>> print(total.difference("n_layers"))
    d_model · (2·d_head·(n_heads + n_kv_heads) + 3·d_ff + 2)
    """
    from paramcount.explaining.formulas import (
        add_architectures,
        build_architecture_formula,
        build_model_formula,
        find_architecture,
    )

    name = find_architecture(model)
    if name is not None:
        return build_architecture_formula(name, of, structure)
    try:
        loaded = load(model)
    except ParamcountError as error:
        raise add_architectures(error, model) from None
    return build_model_formula(loaded, of, structure)


def why(model: ModelLike, number: str | int | None = None, **options: Unpack[LoadOptions]) -> tuple[Why, ...]:
    """What a published figure counts: one answer for `number`, or one for each figure in the model's zoo entry.

    `number` is a figure as printed ("3.6B", "~1.04T"), which matches when rounded or truncated, or an integer
    (137022720 or "137,022,720"), which must match exactly. Every answer is a count plus named causes.

    Raises: ParamcountError as `count` does, and if `number` is not a number.

    >>> (answer,) = why("gpt-oss-20b", "3.6B")
    >>> answer.base, answer.true, answer.verdict
    ('active', 4187440704, 'rounded')
    >>> [cause.units for cause in answer.accounts[0].causes]
    [-579133440]
    >>> why("gpt2-small", "117M")[0].left_over
    -7439808
    """
    from paramcount.explaining.why import explain_figures

    loaded = load(model, **options)
    return explain_figures(loaded, () if number is None else (number,))


def trace(
    model: ModelLike,
    *,
    tokens: int | None = None,
    pad: int | None = None,
    batch: int | None = None,
    past: int | None = None,
    source: int | None = None,
    **options: Unpack[LoadOptions],
) -> Trace:
    """Every operation of the forward pass in order, with the shapes of its inputs, weights and output.

    `tokens` is the input length: 5 by default, 1 when decoding. `pad` pads the input to that many tokens. `batch` adds
    a batch axis. `past` traces one decoding step with that many tokens in the KV cache. `source` is the encoder input
    length.

    Shapes: weights both as multiplied, [in, out], and as stored in the checkpoint.
    Raises: ParamcountError as `count` does, and for inputs that the model does not accept.

    >>> [step.out for step in trace("gpt2-small", tokens=5).steps][-3:]
    [(5, 768), (768,), (50257,)]
    """
    from paramcount.tracing.run import trace_model
    from paramcount.tracing.shapes import TraceOptions

    if tokens is None:
        tokens = 5 if past is None else 1
    return trace_model(load(model, **options), TraceOptions(tokens, pad, batch, past, source))


def run(
    model: ModelLike,
    weights: str | Path | Mapping[str, object],
    tokens: Sequence[int],
    *,
    watch: bool = False,
    download: bool = False,
    strict: bool = False,
    **inputs: object,
) -> Run:
    """The forward pass of a model on token ids, computed in NumPy, float32. Needs no PyTorch.

    `weights` is the path of safetensors files (F32, F16, BF16 or a packed format that can be run; a file, an index or a
    directory of shards), whose tensors are read one at a time, or a mapping of their names to arrays. `watch` keeps
    every intermediate value. `append` of the result reads more tokens with its KV cache. `inputs` are what a model
    reads besides its tokens: `source_tokens`, the ids that an encoder reads, or `encoder_output` [m, d_model]; for a
    multimodal model `pixels`, one image as its processor normalizes it (GIT's shows it in every frame), `image_patches`
    (Fuyu), `log_mel_frames`, or `samples` of a sound (Gemma 4 12B). The tokens hold one placeholder per vector that the
    encoder returns; GIT needs none. Without an image, or without an encoder's output, the model reads the text alone.
    Tokens of an image see earlier tokens alone, as in the reference without token_type_ids.

    Shapes: `pixels` [channels, height, width]; `image_patches` [patches, height · width · channels] of a patch;
    `log_mel_frames` [frames, mel bands]; `samples` [frames, samples per frame]; `logits` float32 [n, vocab_size] for n
    tokens; `steps`: with `watch`, (name, operation, layer, array) of every intermediate value in order, without a batch
    axis.
    Units: logits before the softmax; the memory that a pass needs is checked before it starts.
    Raises: ParamcountError as `load` does; if a tensor is missing, has another shape or is not finite; for an unknown
    token id and for more tokens than positions; if the config does not state a setting, or an operation is not
    described yet; if there is not enough memory.
    Source: the declared forward pass of the architecture, whose logits are compared with the reference's.

    >>> import numpy as np
    >>> tiny = {"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2,
    ...     "num_attention_heads": 2, "intermediate_size": 12}
    >>> draw = np.random.default_rng(0).normal
    >>> weights = {t.name.replace("{layer}", str(i)): draw(size=t.shape) for t in count(tiny).tensors for i in (0, 1)}
    >>> first = run(tiny, weights, [3, 1, 4])
    >>> first.logits.shape
    (3, 11)
    >>> whole = run(tiny, weights, [3, 1, 4, 1, 5]).logits
    >>> bool(np.allclose(first.append([1, 5]).logits, whole[3:], atol=1e-4))
    True
    """
    from paramcount.execution import run_loaded

    return run_loaded(load(model, download=download, strict=strict), weights, tokens, watch=watch, inputs=inputs)


def memory(
    model: ModelLike,
    *,
    dtype: str | None = None,
    component_dtypes: Mapping[str, str] | None = None,
    context: int | None = None,
    batch: int = 1,
    kv_dtype: str = "bf16",
    state_dtype: str | None = None,
    engine: str = "minimal",
    engine_options: Mapping[str, int | float | bool | str] | None = None,
    source: int | None = None,
    gpu: str | None = None,
    memory: int | None = None,
    available_kv: int | None = None,
    overhead: int | None = None,
    utilization: float | None = None,
    ram: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    draft: ModelLike | None = None,
    draft_dtype: str | None = None,
    **options: Unpack[LoadOptions],
) -> Memory:
    """The memory that a model takes at inference: weights, KV cache and recurrent state.

    `dtype` is the format of the weights: "bf16", "fp8", "int4", "gptq-4bit-g64", "nf4", …; by default as the config
    states, otherwise BF16. `component_dtypes` changes components, layers or modules: {"lm_head": "bf16", "layers.0-3":
    "bf16", "*.mlp.down_proj": "fp8"}; the last name that means a tensor counts. `context` is the number of tokens per
    sequence: by default 8,192, or fewer if the model takes fewer. `batch` is the number of sequences, `source` the
    encoder input length, or the length of what an image becomes in layers that attend to it. `kv_dtype` "q8_0,f16"
    means keys in Q8_0 and values in F16. `engine` selects how the cache is allocated; "minimal" is what the computation
    needs. `engine_options` are settings of the engine, such as {"block_size": 32} of vLLM. `state_dtype` is that of
    recurrent states: by default BF16, or what the engine uses.

    With `gpu` ("8xH100") or `memory` (bytes of one device), `fit` says whether the model fits, what is left, the
    longest context, the largest batch, the fewest devices and, as `suggestions`, which arguments make it fit.
    `fit.verdict` is "fits", "does not fit" or, if less than 10% of the memory is left (`fit.margin_bytes`), "too close
    to call"; `fit.fits` is true for "fits" alone. `overhead` is what a runtime is assumed to take on each device,
    `utilization` the share of its memory that the engine may use: by default 0.92 for vLLM, otherwise 1. `ram` is the
    memory of the CPU in bytes, for engines that keep something there: by default as much as is needed. `tp`, `pp` and
    `ep` divide the model among GPUs by tensor, pipeline and expert parallelism; by default tensor parallelism uses all
    of them.

    With `available_kv`, the bytes that an engine leaves to the cache on each device, `available` says what they hold:
    tokens, sequences of the context, and the longest context, as the engine's log prints them.

    `draft` is a model that drafts tokens, which the model verifies: its weights, in `draft_dtype`, and its cache come
    on top, on the GPUs that compute the last layer. Draft heads such as EAGLE-3 are models, too.

    Units: bytes.
    Raises: ParamcountError as `count` does; for an unknown dtype, component, engine or GPU, for sizes below 1, and for
    a model that cannot be divided like this.

    >>> result = memory("llama-3.1-8b", context=8192)
    >>> result.weights_bytes, result.kv_bytes_per_token, result.kv_cache_bytes
    (16060522496, 131072, 1073741824)
    >>> fit = memory("llama-3.1-8b", context=8192, memory=24 * 10**9).fit
    >>> fit.verdict, fit.free_bytes, fit.longest_context
    ('fits', 5865735680, 34633)
    """
    given = dict(locals())
    from paramcount.costs.devices import make_device
    from paramcount.costs.fit import make_parallelism
    from paramcount.costs.memory import measure_memory

    for name in ("model", "component_dtypes", "gpu", "memory", "overhead", "utilization", "ram", "tp", "pp", "ep"):
        del given[name]
    device = parallel = None
    if gpu is not None or memory is not None:
        number, device = make_device(gpu, memory, overhead, utilization, ram)
        parallel = make_parallelism(number, tp, pp, ep, engine)
    elif available_kv is not None:
        parallel = make_parallelism(tp or 1, tp, pp, ep, engine)

    given |= {"overrides": component_dtypes, "device": device, "parallel": parallel}
    given["draft"] = load_draft(draft, given.pop("options"))
    return measure_memory(load(model, **options), **given)


def plan(
    model: ModelLike,
    *,
    users: int = 1,
    context: int | None = None,
    gpu: str | Iterable[str] | None = None,
    dtype: str | Iterable[str] | None = None,
    kv_dtype: str | None = None,
    state_dtype: str | None = None,
    engine: str | None = None,
    engine_options: Mapping[str, int | float | bool | str] | None = None,
    source: int | None = None,
    draft: ModelLike | None = None,
    draft_dtype: str | None = None,
    overhead: int | None = None,
    utilization: float | None = None,
    limit: int = 10,
    **options: Unpack[LoadOptions],
) -> ServingPlan:
    """Deployments that serve a number of users at once: on which GPUs, on how many, and how they share the model.

    `context` is the number of tokens of each user: by default 8,192, or fewer if the model takes fewer. `gpu` names the
    GPUs to compare: "h100", "rtx4090,h100", or "8xh100" for at most eight of them. Without it, `deployments` has the
    `limit` best of all GPUs: those on which the model fits for certain, on the fewest of them, then with the least
    memory in all. Machines have 1, 2, 4 or 8 GPUs, which tensor parallelism uses; several machines are pipeline stages.

    `dtype` lists formats of the weights; by default as released. `engine` is vLLM by default; for Apple GPUs and GGUF
    formats it is llama.cpp. The other arguments are those of `memory`. Of each deployment, `arguments` are those with
    which `memory` measures the same, `fit` is its answer, and `command` starts the engine. `speed` has upper bounds for
    the tokens per second at the full context, from bandwidth and FLOPs of the data sheet.

    `draft` is a model that drafts tokens, as in `memory`; the speed then depends on what the model accepts, and is not
    bounded.

    Units: bytes, seconds, tokens per second.
    Raises: ParamcountError as `memory` does.

    >>> best = plan("llama-3.1-70b", users=4, gpu="h100").deployments[0]
    >>> best.devices, best.fit.parallelism, best.fit.verdict
    (4, 'TP=4', 'fits')
    >>> memory("llama-3.1-70b", **best.arguments).fit.free_bytes == best.fit.free_bytes
    True
    """
    given = dict(locals())
    from paramcount.costs.plan.plan import make_plan
    from paramcount.costs.plan.records import Need

    changed = {"engine_options": engine_options or {}, "draft": load_draft(draft, options)}
    need = Need(**{name: given[name] for name in Need._fields} | changed)
    return make_plan(load(model, **options), need, gpus=gpu, dtypes=dtype, limit=limit)


def flops(
    model: ModelLike,
    *,
    context: int | None = None,
    source: int | None = None,
    train_tokens: int | None = None,
    gpu: str | None = None,
    mfu: float | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    **options: Unpack[LoadOptions],
) -> Flops:
    """The FLOPs of a model's matmuls: per decoded token, per prompt, and per token of training.

    `context` is the number of tokens: by default 8,192, or fewer if the model takes fewer. `flops_per_token` decodes
    the last of them, with the others in the KV cache, and runs MLA over its latents, as engines do
    (`expanded_flops_per_token`: as the reference does); `prefill_flops` reads all of them at once. A model that decodes
    no tokens, such as an encoder, has the latter alone: `flops_per_token` is None. `source` is the encoder input
    length. Element-wise work is separate: `elementwise_operations`.

    With `train_tokens`, `training_flops` and the usual estimate `six_nd` are those of the whole training. With `gpu`
    ("8xH100"), `roofline` has the minimum time of a decoding step of `batch` sequences and of a prompt, from the data
    sheet: weights in `dtype` (default: as released, or bf16) and cache in `kv_dtype` (default: bf16) are read once, and
    matmuls run at the dense peak; without a rate for the dtype, `roofline.rate_reason` says so, and only memory counts.
    With both, `training_time` has GPU-hours and days at the share `mfu` of the peak (default: 0.4, an assumption).

    Units: FLOPs, 2 per multiply-add; seconds, hours and days.
    Raises: ParamcountError as `trace` does, and for an unknown dtype or GPU.

    >>> result = flops("llama-3.1-8b", context=8192)
    >>> result.flops_per_token, result.two_n
    (19304284160, 16060522496)
    >>> bound = flops("llama-3.1-8b", context=8192, gpu="H100").roofline.decoding
    >>> bound.weights_bytes, bound.cache_bytes, f"{1000 * bound.seconds:.2f} ms"
    (15009849344, 1073741824, '4.80 ms')
    """
    given = dict(locals())
    from paramcount.costs.flops import measure_flops

    return measure_flops(load(given.pop("model"), **given.pop("options")), **given)


def lora(
    model: ModelLike,
    r: int = 16,
    *,
    targets: str | Iterable[str] | None = None,
    target_pattern: str | None = None,
    target_parameters: str | Iterable[str] = (),
    exclude_modules: str | Iterable[str] = (),
    exclude_pattern: str | None = None,
    layers_to_transform: int | Iterable[int] | None = None,
    layers_pattern: str | Iterable[str] = (),
    rank_pattern: Mapping[str, int] | None = None,
    method: Method = "lora",
    modules_to_save: Iterable[str] = (),
    bias: Bias = "none",
    dtype: str = "f32",
    **options: Unpack[LoadOptions],
) -> Lora:
    """The trainable parameters of an adapter, equal to those that the peft library adds, and its bytes.

    `targets` are `"all-linear"` (every linear layer except the LM head), names of modules (`"q_proj"`), or the groups
    attention, mlp, mixer, experts and router; several as a list or separated by commas. `target_parameters` are names
    of parameters, which LoRA can adapt too: `"mlp.experts.gate_up_proj"`. Default: all-linear and no parameters. A name
    is a full one or its end (`"layers.0.self_attn.q_proj"`); one without a match has no effect, as in peft, and a
    warning says so. `target_pattern` is a regular expression for full names instead (peft's `target_modules` if that is
    a string). `exclude_modules` are names of modules that take no adapter, `exclude_pattern` a regular expression for
    them. `layers_to_transform` are indices of layers, behind names that match one of `layers_pattern`. `rank_pattern`:
    ranks by regular expressions for the ends of names. `method` is lora, rslora, dora, ia3 or vera; IA³ has no rank
    `r`. `modules_to_save` are trained as a whole. `bias` trains no biases, those of
    the adapted layers (`"adapted"`), or all. `dtype` is that of the saved adapter: f32, f16 or bf16; peft keeps
    adapters in float32. An adapter_config.json as `model` states all of these itself.

    Raises: ParamcountError for unknown targets, and for layers that the method does not apply to.

    >>> result = lora("llama-3.1-8b", r=16)
    >>> result.trainable, result.adapter_bytes
    (41943040, 167772160)
    >>> lora("llama-3.1-8b", r=8, targets=["q_proj", "v_proj"]).trainable
    3407872
    """
    given = dict(locals())
    from paramcount.costs.adapters.adapters import measure_adapter
    from paramcount.costs.adapters.saved import choose_options

    loaded = load(given.pop("model"), **given.pop("options"))
    return measure_adapter(loaded, **choose_options(loaded, given | {"rank_pattern": rank_pattern or {}}))


def find_adapters(model: ModelLike, trainable: str | int, **options: Unpack[LoadOptions]) -> AdapterSearch:
    """Which ranks and targets of LoRA and DoRA have so many trainable parameters, the simplest first.

    `trainable` is what `print_trainable_parameters` of peft prints, or a short number ("42M"), which may be rounded.
    Targets are all linear layers, groups of them, and names of modules; ranks of other combinations of names are powers
    of two. `arguments` of an explanation are those of `lora`.

    Raises: ParamcountError as `count` does, and if `trainable` is not a number.

    >>> found = find_adapters("llama-2-7b", 39976960)
    >>> [(adapter.method, adapter.r, adapter.targets) for adapter in found.explanations]
    [('lora', 16, 'all linear layers')]
    """
    from paramcount.costs.adapters.search import find_adapters as search_adapters

    return search_adapters(load(model, **options), trainable)


def training(
    model: ModelLike,
    *,
    optimizer: str = "adamw",
    precision: str = "bf16-mixed",
    context: int | None = None,
    batch: int = 1,
    source: int | None = None,
    checkpointing: str = "none",
    flash_attention: bool = True,
    dropout: bool = False,
    chunked_loss: bool = False,
    fsdp: int | None = None,
    zero: int | None = None,
    dp: int | None = None,
    tp: int = 1,
    pp: int = 1,
    sp: bool = False,
    ep: int = 1,
    lora: bool | Mapping[str, Any] | None = None,
    weights: str | None = None,
    offload_optimizer: str | None = None,
    offload_params: str | None = None,
    estimators: bool = False,
    nodes: int = 1,
    gpu: str | None = None,
    memory: int | None = None,
    overhead: int | None = None,
    **options: Unpack[LoadOptions],
) -> Training:
    """The memory that training takes on each GPU: weights, gradients, optimiser state and activations.

    `optimizer`: "adamw", "adamw8bit" (bitsandbytes), "adafactor", "muon" or "sgd" (with momentum). `precision`:
    "bf16-mixed" (weights and gradients in BF16, state and a copy of the weights in FP32), "bf16" or "fp32". `batch` is
    the number of sequences per micro-batch and GPU, each of `context` tokens (default: 8,192, or fewer if the model
    takes fewer). `checkpointing`: "none", "selective" (recomputes attention weights) or "full" (recomputes layers).
    `dropout` adds the masks of residual branches and attention weights. With `chunked_loss` the logits are those of a
    chunk of the tokens, as in Liger Kernel and Unsloth.

    `zero` divides the optimiser state (1), gradients (2) and weights (3) among `dp` GPUs; `fsdp=8` is `dp=8, zero=3`.
    `tp`, `pp` and `ep` are tensor, pipeline and expert parallelism; `sp` divides norms and dropout among the `tp` GPUs.
    Experts are divided among data-parallel GPUs. With `gpu` ("8xH100") or `memory` (bytes of one device), `fit` says
    whether it fits, as in `memory`; `overhead` is what a runtime is assumed to take on each device.

    `lora` trains an adapter beside frozen weights: True, or arguments of `lora` as a mapping ({"r": 8, "targets":
    "attention", "method": "dora"}); its dtype is FP32 as in peft, unless the mapping has another. `weights` is the
    dtype of the frozen weights: "nf4-double" is QLoRA. `offload_optimizer` and `offload_params` are "cpu" or "nvme", as
    in DeepSpeed; they require `zero`. What is not on the GPU, paged states included, is `offload_bytes`. `estimators`
    adds the lines that the estimators of DeepSpeed and Accelerate print for `nodes` machines.

    Units: bytes, on the fullest GPU. Not included: communication buffers, gathered layers, temporary values of kernels.
    Raises: ParamcountError as `count` does; for an unknown name, for sizes below 1, and for a model that cannot be
    divided like this.

    >>> result = training("llama-3.1-8b", context=8192, checkpointing="full", fsdp=8)
    >>> result.weights_bytes, result.gradients_bytes, result.optimizer_bytes
    (2007565312, 2007565312, 12045391872)
    >>> result.formulas["weights"]
    '8,030,261,248 parameters × 2 bytes (BF16), 1/8 on each GPU'
    >>> qlora = training("llama-3.1-8b", lora={"r": 16}, weights="nf4-double", context=2048, checkpointing="full")
    >>> qlora.trainable, qlora.gradients_bytes, qlora.optimizer_bytes
    (41943040, 167772160, 335544320)
    """
    given = dict(locals())
    from paramcount.costs.training.training import train

    return train(load(given.pop("model"), **given.pop("options")), **given)


def draw(
    model: ModelLike, *, tokens: int | None = None, layer: int | None = None, **options: Unpack[LoadOptions]
) -> Drawing:
    """A drawing of the forward pass to scale: every matrix is a rectangle, activations blue and weights grey.

    `tokens` is the input length: 1,024 by default, or the longest input that the model accepts. `layer` selects one
    layer of the decoder, from 0; by default identical layers are drawn once. A notebook displays the drawing;
    `drawing.save("gpt2.svg")` writes it to a file.

    Units: pixels; `scale` is the number of elements per pixel.
    Raises: ParamcountError as `trace` does, and for a layer that does not exist.

    >>> drawing = draw("gpt2-small", layer=0)
    >>> [r.shape for r in drawing.rectangles if r.role == "weight" and r.label][2:]
    ['12 × [768, 64]', '[768, 768]', '[768, 3072]', '[3072, 768]']
    """
    from paramcount.drawing.pictures import draw_model

    return draw_model(load(model, **options), tokens=tokens, layer=layer)


def draw_map(model: ModelLike, *, social: bool = False, **options: Unpack[LoadOptions]) -> ParameterMap:
    """The parameter map of a model: every tensor is a rectangle, its area in proportion to its parameters.

    Tensors are grouped by part, layers and component; each copy in a layer or an expert is a cell. `social` makes a
    picture of 1200 × 630 pixels with larger text, for link previews. A notebook displays the map;
    `map.save("deepseek-v3.svg")` writes it to a file.

    Raises: ParamcountError as `count` does.

    >>> map = draw_map("deepseek-v3")
    >>> tile = max(map.tiles, key=lambda tile: tile.tensor.parameters)
    >>> tile.tensor.shape, [(axis.kind, axis.number) for axis in tile.copies]
    ((2048, 7168), [('layers', 58), ('experts', 256)])
    """
    from paramcount.drawing.parameter_map import make_map

    return make_map(load(model, **options), social=social)


def plot(
    models: Iterable[ModelLike],
    *,
    format: Literal["svg", "png", "pdf"] = "svg",
    scale: Literal["linear", "log"] = "linear",
    estimates: bool = False,
    **options: Unpack[LoadOptions],
) -> bytes:
    """A bar chart of the components of several models: the bytes of an SVG, PNG or PDF file. Needs the [plot] extra.

    A mixture-of-experts model gets a second, thinner bar for its active parameters. With `scale="log"` dots show the
    parameters, and bars of 100 % beside them show the components.

    Raises: ParamcountError as `compare` does; for an unknown format or scale; if the extra is missing.

    >>> plot(["gpt2-small", "mixtral-8x7b"]).startswith(b"<?xml")
    True
    """
    from paramcount.drawing.bars import plot_rows
    from paramcount.views.compare import make_named_rows

    selected = _select(models, estimates=estimates, **options)
    return plot_rows(make_named_rows(selected), format=format, scale=scale)


def report(models: Iterable[ModelLike], *, estimates: bool = False, **options: Unpack[LoadOptions]) -> str:
    """An HTML page about one or several models: counts, formulas, the forward pass, drawings and sources.

    Needs the [plot] extra.

    Raises: ParamcountError as `compare` does; for too many models; if the extra is missing.

    >>> page = report(["gpt2-small"])
    >>> "124,439,808" in page, "<script" in page
    (True, False)
    """
    from paramcount.drawing.report import render_page

    return render_page(_select(models, estimates=estimates, **options))


def explore_page(models: Iterable[ModelLike] | None = None, *, download: bool = False, strict: bool = False) -> str:
    """An HTML page to browse, compare and change models, and to see inside them; without `models` the whole zoo.

    The page is one file that loads nothing from the network. Its numbers follow sliders exactly.

    Raises: ParamcountError as `compare` does; if there is no model.

    >>> page = explore_page(["gpt2-small"])
    >>> "124,439,808" in page, "https://" in page.partition("<script")[0]
    (True, False)
    """
    from paramcount.explore import build_page, build_zoo_page

    if models is None:
        return build_zoo_page()
    return build_page(_select(models, download=download, strict=strict))


def verify(
    model: ModelLike,
    checkpoint: str | Path,
    *,
    watch: Callable[[int, int], object] | None = None,
    **options: Unpack[LoadOptions],
) -> Verification:
    """Whether a checkpoint contains the tensors that the model's config implies.

    Reads headers, and samples of tensors that may be tied. `checkpoint` is the path of a .safetensors or .gguf file, of
    an index, of a directory of shards, or of a saved header. `watch` is called with (files read, number of files).

    Raises: ParamcountError as `load` does, and for a checkpoint that cannot be read.

    >>> import json, tempfile
    >>> embedding = {"dtype": "F32", "shape": [50257, 768], "data_offsets": [0, 154389504]}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as header:
    ...     json.dump({"wte.weight": embedding}, header)
    ...     header.flush()
    ...     verify("gpt2-small", header.name).ok
    False
    """
    from paramcount.checkpoints.opening.locate import open_checkpoint
    from paramcount.checkpoints.verify import verify_checkpoint

    return verify_checkpoint(load(model, **options), open_checkpoint(checkpoint, watch))


def stored_in(path: str | Path, *, watch: Callable[[int, int], object] | None = None) -> StoredCount:
    """What a checkpoint stores, per component, and which zoo models have these tensors.

    Reads headers, and samples of tensors that may be tied. `path` and `watch` as for `verify`.

    Raises: ParamcountError for a checkpoint that cannot be read.

    >>> import json, tempfile
    >>> embedding = {"dtype": "F32", "shape": [50257, 768], "data_offsets": [0, 154389504]}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as header:
    ...     json.dump({"wte.weight": embedding}, header)
    ...     header.flush()
    ...     stored_in(header.name).total
    38597376
    """
    from paramcount.checkpoints.contents import summarize_checkpoint
    from paramcount.checkpoints.opening.locate import open_checkpoint

    return summarize_checkpoint(open_checkpoint(path, watch))


def audit(source: str | PathLike[str] | pandas.DataFrame | Iterable[Mapping[Any, Any]]) -> Audit:
    """A verdict on each cell of a table of model sizes and parameter counts.

    `source` is the path of a CSV or Markdown file ("-" is standard input), a DataFrame, or rows as mappings of column
    to value. Columns may have any of their common names. Parameters may be rounded; sizes must be exact.

    Raises: ParamcountError for a table that cannot be read, or without a column to check.

    >>> result = audit([{"model": "GPT-2 Large", "params": "774M", "layers": 36, "d_model": 1536}])
    >>> result.ok, [(cell.column, cell.verdict, cell.true) for cell in result.cells]
    (False, [('total', 'rounded', 774030080), ('n_layers', 'right', 36), ('d_model', 'wrong', 1280)])
    """
    from paramcount.auditing.audit import audit_tables, read_tables

    return audit_tables([read_tables(source)])


def _select(
    models: Iterable[ModelLike],
    *,
    estimates: bool = False,
    download: bool = False,
    strict: bool = False,
    set: Settings | None = None,
    base: ModelLike | None = None,
) -> list[Model]:
    """The selected models, each once, all with the changes in `set`."""
    from paramcount.loading import select_models

    selected = select_models(models, estimates=estimates, download=download, strict=strict, base=base)
    return [load(model, set=set) for model in selected] if set else selected
