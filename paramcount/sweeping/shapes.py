"""Shape rules: how the sizes of a model follow from d_model and n_layers, so that another one has its proportions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, count_noun
from paramcount.huggingface.validity import find_limits
from paramcount.sizes import LARGEST, Sizes
from paramcount.zoo import Model
from paramcount.zoo.what_if import get_size, list_paths

D_MODEL, N_LAYERS = "d_model", "n_layers"
DEFAULT_VARY = (D_MODEL, N_LAYERS)
HEADS = ("n_heads", "n_mamba_heads", "n_linear_k_heads", "n_linear_v_heads")
KV_HEADS = ("n_kv_heads", "n_groups")
INNER = ("d_ff", "d_dense_ff", "d_expert", "d_shared_expert", "d_inner")
MOST_LAYERS = 512
LAYER_TIMES = 4  # how many times its layers a configuration may have
WIDEST = 65_536  # d_model
WIDTH_TIMES = 8  # how many times its d_model a configuration may have
MOST_CANDIDATES = 400_000


class SweptShape(NamedTuple):
    """The rules of one search, and the sizes of the model that they start from."""

    sizes: Sizes
    prefix: str  # of the sizes that vary, such as "language."
    vary: tuple[str, ...]  # paths
    step: int  # of d_model and other dimensions

    def get(self, name: str) -> Any:
        """The value of a size of the model; None if it has no such size."""
        path = self.prefix + name
        return get_size(self.sizes, path) if path in list_paths(self.sizes) else None

    def varies(self, name: str) -> bool:
        return self.prefix + name in self.vary


def make_shape(model: Model, vary: Sequence[str], step: int) -> SweptShape:
    """The shape rules for a model. `vary`: paths of sizes.

    Raises: ParamcountError for a size that is not an integer, and for sizes of different parts of the model.
    """
    sizes = model.sizes
    for path in vary:
        if type(get_size(sizes, path)) is not int or find_limits(sizes, path) is None:
            raise ParamcountError("is not an integer", where=path, expected="sizes that are integers")
    prefixes = {path.rpartition(".")[0] for path in vary}
    if len(prefixes) > 1:
        raise ParamcountError("are in different parts", where=", ".join(vary), expected="one part")
    prefix = prefixes.pop()
    return SweptShape(sizes, f"{prefix}." if prefix else "", tuple(vary), step)


def choose_vary(model: Model) -> tuple[str, ...]:
    """The sizes that vary by default: d_model and n_layers, of the language model if it is a part."""
    paths = list_paths(model.sizes)
    prefix = "" if D_MODEL in paths else "language."
    found = tuple(prefix + name for name in DEFAULT_VARY if type(get_size(model.sizes, prefix + name)) is int)
    if not found:
        raise ParamcountError("has neither d_model nor n_layers", expected="the names of the sizes that vary")
    return found


def describe_rules(shape: SweptShape) -> tuple[str, ...]:
    """The rules of a search, one line each."""
    names = [path.removeprefix(shape.prefix) for path in shape.vary]
    verb = "varies" if len(names) == 1 else "vary"
    rules = [f"{', '.join(names)} {verb}; every other size keeps its value, unless a rule says otherwise"]
    if shape.varies(D_MODEL):
        rules.append(f"d_model is a multiple of {shape.step}, at most {find_widest(shape)}")
        for name in list_scaled(shape, HEADS):
            rounding = "exactly" if is_exact(shape, name) else "to the nearest integer"
            rules.append(f"{name} is proportional to d_model, {rounding}; the head size stays")
        rules += [describe_groups(shape, name) for name in list_kept_groups(shape)]
        rules += [f"{name} = d_model" for name in list_equal(shape)]
        for name in list_scaled(shape, INNER):
            ratio = f"{shape.get(name)} / {shape.get(D_MODEL)}"
            rules.append(f"{name} = {ratio} · d_model, to the nearest multiple of {shape.step}")
    if shape.varies(D_MODEL) and shape.varies(N_LAYERS):
        ratio_of_model = shape.get(D_MODEL) / shape.get(N_LAYERS)
        rules.append(
            f"d_model / n_layers is {ratio_of_model / 2:.4g} to {2 * ratio_of_model:.4g}, half to twice the model's"
        )
    if shape.varies(N_LAYERS):
        rules.append(f"n_layers is at most {find_most_layers(shape)}")
        lists = list_layer_lists(shape)
        rules += [f"{name} repeats its pattern of {count_noun(n, 'layer')}, whole" for name, n in lists.items()]
    for name in names:
        if name not in DEFAULT_VARY:
            values = list_values(shape, name)
            rules.append(f"{name} is {values[0]} to {values[-1]} in steps of {values.step}")
    return tuple(rules)


def is_exact(shape: SweptShape, name: str) -> bool:
    """Whether the heads fill d_model, or another multiple of it, so that their number has to follow it exactly."""
    n, d_head = shape.get(name), shape.get("d_head")
    return name != "n_heads" or not d_head or n * d_head % shape.get(D_MODEL) == 0


def describe_groups(shape: SweptShape, name: str) -> str:
    """The rule for a number of KV heads or groups."""
    heads, n = find_heads(name), shape.get(name)
    n_heads = shape.get(heads)
    if n == n_heads:
        return f"{name} = {heads}"
    return f"{name} stays {n} if it divides {heads}, otherwise each keeps {n_heads // n} heads"


def list_scaled(shape: SweptShape, names: Sequence[str]) -> list[str]:
    """The sizes among `names` that follow d_model."""
    found = [name for name in names if type(shape.get(name)) is int and not shape.varies(name)]
    return [name for name in found if shape.get(name) > 1 and name not in list_equal(shape)]


def list_equal(shape: SweptShape) -> list[str]:
    """The other dimensions that equal d_model in the model, such as an embedding size."""
    names = [path.removeprefix(shape.prefix) for path in list_paths(shape.sizes) if path.startswith(shape.prefix)]
    d_model = shape.get(D_MODEL)
    return [
        name
        for name in names
        if name != D_MODEL and name.startswith("d_") and "." not in name
        if type(shape.get(name)) is int and shape.get(name) == d_model and not shape.varies(name)
    ]


def find_heads(name: str) -> str:
    """The heads that a number of groups of heads divides."""
    return "n_mamba_heads" if name == "n_groups" else "n_heads"


def list_kept_groups(shape: SweptShape) -> list[str]:
    """The numbers of KV heads and of groups that follow the number of heads."""
    return [
        name
        for name in KV_HEADS
        if type(shape.get(name)) is int and not shape.varies(name) and type(shape.get(find_heads(name))) is int
    ]


def list_layer_lists(shape: SweptShape) -> dict[str, int]:
    """{list with one entry per layer: its period}.

    Raises: ParamcountError for a list without a repeating pattern.
    """
    lists: dict[str, int] = {}
    for path in list_paths(shape.sizes):
        value, name = get_size(shape.sizes, path), path.removeprefix(shape.prefix)
        if path.startswith(shape.prefix) and isinstance(value, tuple) and len(value) == shape.get(N_LAYERS) and value:
            period = next((n for n in range(1, len(value) // 2 + 1) if value[n:] == value[:-n]), None)
            if period is None:
                raise ParamcountError("does not repeat", where=path, expected="another size than n_layers to vary")
            lists[name] = period
    return lists


def list_candidates(shape: SweptShape) -> list[dict[str, int]]:
    """The candidates: {path: value} of each size that differs or varies, without lists per layer."""
    widths = list_widths(shape) if shape.varies(D_MODEL) else [{}]
    names = [path.removeprefix(shape.prefix) for path in shape.vary]
    others = [name for name in names if name not in DEFAULT_VARY]
    candidates = [
        sizes | ({N_LAYERS: n_layers} if n_layers else {})
        for sizes in widths
        for n_layers in list_depths(shape, sizes.get(D_MODEL))
    ]
    for name in others:
        values = list_values(shape, name)
        if len(candidates) * len(values) > MOST_CANDIDATES:
            found = f"{len(candidates) * len(values):,} combinations of {', '.join(shape.vary)}"
            raise ParamcountError(found, expected=f"at most {MOST_CANDIDATES:,}: fewer sizes, or larger steps")
        candidates = [candidate | {name: value} for candidate in candidates for value in values]
    return [{shape.prefix + name: value for name, value in candidate.items()} for candidate in candidates]


def list_widths(shape: SweptShape) -> list[dict[str, int]]:
    """{size: value} of d_model and of every size that follows it, for each multiple of the step."""
    start = shape.get(D_MODEL)
    widths = []
    for d_model in range(shape.step, find_widest(shape) + 1, shape.step):
        sizes = {D_MODEL: d_model} | dict.fromkeys(list_equal(shape), d_model)
        for name in list_scaled(shape, HEADS):
            scaled = shape.get(name) * d_model
            is_broken = scaled % start and is_exact(shape, name)
            sizes[name] = 0 if is_broken else max(1, round_half_up(scaled, start))
        for name in list_kept_groups(shape):
            heads = find_heads(name)
            sizes[name] = choose_groups(sizes.get(heads, shape.get(heads)), shape.get(heads), shape.get(name))
        for name in list_scaled(shape, INNER):
            sizes[name] = max(1, round_half_up(shape.get(name) * d_model, start * shape.step)) * shape.step
        if all(sizes.values()):
            widths.append(sizes)
    return widths


def find_widest(shape: SweptShape) -> int:
    return min(WIDEST, WIDTH_TIMES * int(shape.get(D_MODEL)))


def choose_groups(n_heads: int, heads: int, groups: int) -> int:
    """The groups of so many heads, if the model has `groups` of `heads`; 0 if there is no natural number of them."""
    if groups == heads:
        return n_heads
    if n_heads % groups == 0:
        return groups
    size = heads // groups
    return n_heads // size if heads % groups == 0 and n_heads % size == 0 else 0


def round_half_up(a: int, b: int) -> int:
    return (2 * a + b) // (2 * b)


def list_depths(shape: SweptShape, d_model: int | None) -> Sequence[int]:
    """The numbers of layers for one d_model, or (0,) if they do not vary."""
    if not shape.varies(N_LAYERS):
        return (0,)
    period = max(list_layer_lists(shape).values(), default=1)
    limit = find_most_layers(shape)
    if d_model is None:
        return range(period, limit + 1, period)
    n, start = shape.get(N_LAYERS), shape.get(D_MODEL)
    least, most = -(-d_model * n // (2 * start)), 2 * d_model * n // start
    return range(-(-max(1, least) // period) * period, min(most, limit) + 1, period)


def find_most_layers(shape: SweptShape) -> int:
    return min(MOST_LAYERS, LAYER_TIMES * int(shape.get(N_LAYERS)))


def list_values(shape: SweptShape, name: str) -> range:
    """The values of a size that the user lets vary, up to twice the model's: at most 16 of them."""
    value = shape.get(name)
    step = shape.step if name.startswith(("d_", "vocab")) else 1
    step = max(step, -(-value // (8 * step)) * step)
    return range(step, min(max(2 * value, step), LARGEST) + 1, step)


def extend_lists(shape: SweptShape, n_layers: int) -> Mapping[str, tuple[Any, ...]]:
    """{path: entries} of the lists per layer, for another number of layers."""
    lists = {}
    for name, period in list_layer_lists(shape).items():
        value = shape.get(name)
        lists[shape.prefix + name] = tuple(value[i % period] for i in range(n_layers))
    return lists
