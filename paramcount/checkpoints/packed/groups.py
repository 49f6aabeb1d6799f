"""Which tensors of a checkpoint stand for one that is packed, by their names and types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.checkpoints.packed.shapes import SCALES, is_float, is_four_bit
from paramcount.counting.quantisation.configs import QuantizationScheme
from paramcount.counting.quantisation.packing import FP8, Piece

WORD_TYPES = (None, "I32", "U32", "I16")
BYTE_TYPES = (None, "U8")
BESIDE_WORDS = (("scales", "scale"), ("qzeros", "zero point"), ("scaled_zeros", "zero point"), ("g_idx", "group index"))
ACTIVATION = "activation_scale"
ACTIVATIONS = ("input_scale", ACTIVATION, "input_scale_ub", "output_scale", "k_scale", "v_scale", "kv_scale", "q_scale")
CACHES = ("k_scale", "v_scale", "kv_scale", "q_scale", "prob_scale")  # of keys and values, that belong to no matrix
ENDINGS = ("_scale_inv", "_scale")  # of scales, behind the name of the values
OF_MODULES = ("scale", "qscale_weight")  # instead of `weight`: DeepSeek-V4's, Mistral Large 4's
SCALE_NAMES = (*ENDINGS, *OF_MODULES)  # ends of the names of scales
FOUR_BITS = "fp8 of four bits"
WEIGHTS_MISSING = "packed weights are missing"
SCALES_MISSING = "scales are missing"


class Group(NamedTuple):
    """Tensors that stand for one."""

    family: str  # words | fp8 | fp8 of four bits | mxfp4
    name: str  # as an unquantised file would have it
    names: tuple[str, ...]  # in the file, values first
    pieces: tuple[Piece, ...]  # the same; () where not all of their shapes are known
    whats: tuple[str, ...]  # what each of them is: values | packed weights | scale …
    ending: str = ""  # what names the scales
    turned: bool = False  # the model's own tensor is [..., inputs, outputs]
    shape: tuple[int, ...] | None = None  # where it is known without the pieces
    format: str | None = None  # as far as names tell


class Grouping(NamedTuple):
    """All of a checkpoint."""

    groups: tuple[Group, ...]
    beside: Mapping[str, str]  # names of what belongs to values: scales, zero points …
    faults: tuple[tuple[str, str], ...]  # (name, what is wrong)


def group_packed(tensors: Mapping[str, FileTensor], config: QuantizationScheme) -> Grouping:
    """The packed tensors of a checkpoint."""
    groups: list[Group] = []
    beside: dict[str, str] = {}
    activations = {name for name in tensors if name.endswith(ACTIVATIONS)}
    has_scales = any(name.endswith(SCALE_NAMES) for name in tensors)
    for name, held in tensors.items():
        if group := find_group(name, held, tensors, config, activations, has_scales=has_scales):
            groups.append(group)
            beside |= zip(group.names[1:], group.whats[1:])
    families = {group.family for group in groups}
    known = {group.names[0] for group in groups}
    faults = []
    for name, held in tensors.items():
        if name not in beside and name not in known:
            last = name.rpartition(".")[2]
            if last in CACHES and "fp8" in families and held.dtype in (None, *SCALES):
                beside[name] = "activation scale"
            elif text := _describe_stray(name, last, held, families, config, tensors):
                faults.append((name, text))
    return Grouping(tuple(groups), beside, tuple(faults))


def find_group(
    name: str,
    held: FileTensor,
    tensors: Mapping[str, FileTensor],
    config: QuantizationScheme,
    activations: Collection[str],
    *,
    has_scales: bool,
) -> Group | None:
    """The packed tensor whose values these are, or None if they are not packed.

    Args:
        activations: names that may be activation scales
        has_scales: whether any tensor of the checkpoint is named like a scale
    """
    stem, dot, last = name.rpartition(".")
    if last == "qweight" and held.dtype in WORD_TYPES:
        names = [(name, "packed weights"), *((f"{stem}{dot}{end}", what) for end, what in BESIDE_WORDS)]
        there = [(other, what) for other, what in names if other in tensors]
        return _group("words", f"{stem}{dot}weight", there, tensors, format=_name_word_method(there, config))
    if name.endswith(("_blocks", ".blocks")) and held.dtype in BYTE_TYPES:
        scales = f"{name[:-6]}scales"
        if scales in tensors and tensors[scales].dtype in BYTE_TYPES:
            there = [(name, "packed weights"), (scales, "scale")]
            return _group("mxfp4", name[:-7], there, tensors, turned=name[-7] == "_", format="MXFP4")
    if has_scales and (held.dtype is None or held.dtype in FP8 or held.dtype in ("I8", "U8", "F4")):
        return _with_scales(name, held, tensors, config, activations)
    return None


def _with_scales(
    name: str,
    held: FileTensor,
    tensors: Mapping[str, FileTensor],
    config: QuantizationScheme,
    activations: Collection[str],
) -> Group | None:
    """Values of eight or four bits whose scales stand beside them."""
    of_module = name.endswith(".weight") or name == "weight"
    stem = name[: -len("weight")]
    for ending in (*ENDINGS, *OF_MODULES) if of_module else ENDINGS:
        other = (name if ending in ENDINGS else stem) + ending
        if other not in tensors:
            continue
        family = _family(held.dtype, tensors[other].dtype, ending, config)
        if family is None:
            continue
        there = [(name, "values"), (other, "scale")]
        if activations:
            more = [f"{name}_{ACTIVATION}", *(f"{stem}{end}" for end in ACTIVATIONS if of_module)]
            there += [(other, "activation scale") for other in more if other in activations]
        if family == "fp8":
            return _group(family, name, there, tensors, ending=ending, shape=held.shape, format=held.dtype or "FP8")
        return _group(family, name, there, tensors, ending=ending, format="FP4")
    return None


def _family(values: str | None, scales: str | None, ending: str, config: QuantizationScheme) -> str | None:
    """What values and scales of these types are together; None where they are strangers."""
    if values is None or scales is None:  # by its name alone, only one ending says enough
        return "fp8" if ending == ENDINGS[0] or config.method == "fp8" else None
    if is_float(values, scales):
        return "fp8"
    return FOUR_BITS if is_four_bit(values, scales) else None


def _group(
    family: str,
    name: str,
    there: list[tuple[str, str]],
    tensors: Mapping[str, FileTensor],
    *,
    ending: str = "",
    turned: bool = False,
    shape: tuple[int, ...] | None = None,
    format: str | None = None,
) -> Group:
    names, whats = zip(*there)
    pieces = _pieces(tuple([(what, *tensors[held][1:3]) for held, what in there]))
    return Group(family, name, names, pieces, whats, ending, turned, shape, format)


@lru_cache(4096)
def _pieces(found: tuple[tuple[str, str | None, tuple[int, ...] | None], ...]) -> tuple[Piece, ...]:
    """Nothing where not all is known."""
    pieces = [Piece(what, dtype, shape) for what, dtype, shape in found if dtype is not None and shape is not None]
    return tuple(pieces) if len(pieces) == len(found) else ()


def _name_word_method(there: list[tuple[str, str]], config: QuantizationScheme) -> str:
    """GPTQ or AWQ, as far as names and the configuration tell."""
    if any(what == "group index" for _, what in there):
        return "GPTQ"
    return config.name if config.method == "words" else "GPTQ or AWQ"


def _describe_stray(
    name: str,
    last: str,
    held: FileTensor,
    families: set[str],
    config: QuantizationScheme,
    tensors: Mapping[str, FileTensor],
) -> str | None:
    """What is wrong with a tensor that belongs to no group; None where nothing is."""
    floats = bool(families & {"fp8", FOUR_BITS}) or config.method == "fp8"
    if last in ("qzeros", "g_idx") and held.dtype in (None, "I32"):
        return WEIGHTS_MISSING
    if last in ("scales", "scaled_zeros") and "words" in families and held.dtype in (None, *SCALES):
        return WEIGHTS_MISSING
    if last.endswith("_scale_inv") or (last == "weight_scale" and floats and held.dtype in (None, *SCALES)):
        return WEIGHTS_MISSING
    if "mxfp4" in families or config.method == "mxfp4":
        if name.endswith(("_scales", ".scales")) and held.dtype in BYTE_TYPES and f"{name[:-6]}blocks" not in tensors:
            return WEIGHTS_MISSING
        if name.endswith(("_blocks", ".blocks")) and held.dtype in BYTE_TYPES:
            return SCALES_MISSING
    if held.dtype in FP8 and floats and held.shape is not None and len(held.shape) > 1:
        return SCALES_MISSING
    return None
