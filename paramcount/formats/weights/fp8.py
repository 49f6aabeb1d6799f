"""FP8: values of eight bits with a scale per block, per output or per tensor; MXFP8 with one per 32 inputs.

Sources: DeepSeek-V3, arXiv:2412.19437, section 3.3, and its README_WEIGHTS.md; transformers 5.23,
integrations/finegrained_fp8.py (FP8Linear, FP8Experts) and fbgemm_fp8.py; compressed-tensors 0.20, compressors/;
github NVIDIA/TensorRT-Model-Optimizer, modelopt/torch/export/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from paramcount.errors import ParamcountError, describe_value, format_shape
from paramcount.formats.module_names import ModuleNames
from paramcount.formats.packing import (
    SCALES,
    Array,
    Block,
    Companion,
    Key,
    Packing,
    Pattern,
    PieceFit,
    ScaledFormat,
    Shape,
    StoredPiece,
    count_blocks,
    list_unshaped,
    spread,
)
from paramcount.formats.quantization_config import (
    PackedGroup,
    Plan,
    Selection,
    Stated,
    list_weights,
    read_block,
    read_excluded,
)
from paramcount.formats.weights import get_label, load_formats

BLOCK = (128, 128)
BLOCKS: tuple[Block, ...] = (BLOCK, (1, 0), (0, 0), (1, 32))  # the last is MXFP8's
DTYPES = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
UNITS = {(1, 0): "output", (0, 0): "tensor"}  # blocks with names
MOST_SHAPES = 100  # that suggest blocks of their own
ACTIVATION = "activation scale"
ACTIVATIONS = (
    "weight_activation_scale", "input_scale", "activation_scale", "input_scale_ub", "output_scale",
    "k_scale", "v_scale", "kv_scale", "q_scale",
)  # fmt: skip


def list_patterns(layout: str, dtypes: tuple[str, ...], scales: tuple[str, ...]) -> tuple[Pattern, ...]:
    """The names of values and their scales: of a module, or of experts in one tensor."""
    named = (
        Companion("weight_scale_inv", "scale", scales, "any type"),
        Companion("weight_scale", "scale", scales, "used"),
        Companion("scale", "scale", scales),  # DeepSeek-V4's
        Companion("qscale_weight", "scale", scales),  # Mistral Large 4's
        *(Companion(ending, ACTIVATION) for ending in ACTIVATIONS),
    )
    bare = (
        Companion("_scale_inv", "scale", scales, "any type"),
        Companion("_scale", "scale", scales),
        Companion("_activation_scale", ACTIVATION),
    )
    return (
        Pattern(layout, "weight", dtypes, named, "weight", family="fp8"),
        Pattern(layout, "", dtypes, bare, family="fp8"),
    )


class Fp8(ScaledFormat):
    name = "FP8"
    methods = ("fp8", "fbgemm_fp8", "mxfp8")
    released = MappingProxyType({"weight_block_size": list(BLOCK)})
    dtypes = MappingProxyType(
        {
            "fp8": ("FP8 (128 × 128 blocks)", released),
            "fp8-tensor": ("FP8 (per tensor)", {"weight_block_size": None}),
            "fp8-row": (
                "FP8 (per row)",
                Packing("fp8", "F8_E4M3", 8, (1, 0), "BF16"),
            ),  # as compressed-tensors stores it
        }
    )
    patterns = list_patterns("fp8", DTYPES, SCALES)
    compressed = (("float-quantized", "naive-quantized", "int-quantized"), "float", (8,), "F8_E4M3")
    modelopt = MappingProxyType(
        {
            "FP8": Packing("fp8", "F8_E4M3", 8, (0, 0), "F32", 0, others=(StoredPiece(ACTIVATION, "F32", ()),)),
            "MXFP8": Packing("fp8", "F8_E4M3", 8, (1, 32), "U8"),
        }
    )

    def name_group(self, dtype: str | None, roles: Sequence[str], stated: Stated) -> str:
        return dtype or self.name

    # ---- what a config states

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        match method:
            case "fp8" | "fbgemm_fp8":
                return Stated("fp8", "FP8", block=read_block(config.get("weight_block_size")))
            case "mxfp8":
                return Stated("fp8", "MXFP8", block=read_block(config.get("weight_block_size")) or (1, 32))
            case "compressed-tensors" if (weights := list_weights(config)) and all(
                block.get("type") == "float" and block.get("num_bits") == 8 for block in weights
            ):
                return Stated("fp8", "FP8 by compressed-tensors", various=True)
            case "modelopt" if config.get("quant_algo") == "FP8":
                return Stated("fp8", "FP8 by ModelOpt")
        return None

    def plan(self, stated: Stated, config: Mapping[str, Any], dtype: str) -> Plan | None:
        """In blocks, or with one scale per output or tensor. Source: FineGrainedFP8Config of the reference."""
        method, excluded = str(config["quant_method"]), read_excluded(config)
        if method == "fbgemm_fp8":
            group = PackedGroup(Selection(excluded), Packing("fp8", "F8_E4M3", 8, (1, 0), "F32"))
            return Plan(method, "FP8, one scale per output", (group,), dtype)
        if method not in self.methods:
            return None
        has_block = config.get("weight_block_size", BLOCK) is not None
        if has_block and stated.block is None and "weight_block_size" in config:
            raise ParamcountError(
                f"weight_block_size = {describe_value(config['weight_block_size'])}", expected="two positive integers"
            )
        block = (stated.block or BLOCK) if has_block else (0, 0)
        has_byte_scales = config.get("scale_fmt") == "ue8m0"
        scale, axes = "F8_E8M0" if has_byte_scales else "F32", 2 if has_block else 0
        others = (StoredPiece(ACTIVATION, "F32", ()),) if config.get("activation_scheme") == "static" else ()
        unit = f"{block[0]} × {block[1]} blocks" if has_block else "one scale per tensor"
        text = f"{stated.name}, {unit}"
        groups = [PackedGroup(Selection(excluded), Packing("fp8", "F8_E4M3", 8, block, scale, axes, others=others))]
        own = str(config.get("expert_dtype", "fp8"))  # Source: FP8Experts of the reference
        formats = load_formats() if own != "fp8" else ()
        if packing := next((found for format in formats if (found := format.pack_experts(own, scale))), None):
            text = f"{text}; experts in {get_label(packing)}"
            groups.insert(0, PackedGroup(Selection(excluded, experts="only"), packing))
        if config.get("quantized_layers") is not None:  # as NVIDIA replaces experts of an FP8 release by NVFP4
            from paramcount.formats.modelopt import list_groups, name_formats

            listed = list_groups(config, ModuleNames(()))
            text = f"{text}; listed modules in {name_formats(listed)}"
            groups = [*listed, *groups]
        exact = not has_byte_scales and "weight_block_size" in config
        return Plan(method, text, tuple(groups), dtype, exact, scope="release")

    def read_scales(self, method: str, config: Mapping[str, Any]) -> PackedGroup | None:
        block = read_block(config.get("weight_block_size"))
        if method != "fp8" or block is None:
            return None
        excluded = config.get("modules_to_not_convert")
        names = excluded if isinstance(excluded, (list, tuple)) else ()
        selection = Selection(tuple(name for name in names if isinstance(name, str) and name))
        return PackedGroup(selection, Packing("fp8", "F8_E4M3", 8, block, "F32"))

    def guess(self, names: tuple[str, ...], stated: Stated, scale: str) -> Packing | None:
        if len(names) != 2 or not names[1].endswith("_scale_inv"):
            return None
        return Packing("fp8", "F8_E4M3", 8, stated.block or BLOCK, scale)

    # ---- files

    def fit(self, counts: Mapping[Key, int], stated: Stated) -> Mapping[Key, PieceFit]:
        """The block that fits most matrices of a file whose scales have one ending."""
        pairs: dict[str, Counter[tuple[Shape, Shape]]] = {}
        for (_, ending, pieces), n in counts.items():
            if len(pieces[0].shape) > 1:
                pairs.setdefault(ending, Counter())[pieces[0].shape, pieces[1].shape] += n
        default = stated.block or BLOCK
        blocks = {ending: find_block(alike, stated.block) or default for ending, alike in pairs.items()}
        return {key: self.fit_block(key, blocks.get(key[1], BLOCK)) for key in counts}

    def fit_block(self, key: Key, block: Block) -> PieceFit:
        _, ending, pieces = key
        values, scales = pieces[:2]
        if len(values.shape) < 2:
            fault = (0, f"shape {format_shape(values.shape)} {self.unfit}")
            return PieceFit(values.shape, Packing("plain", values.dtype), (fault,))
        packing = Packing("fp8", values.dtype, 8, block, scales.dtype, others=list_unshaped(pieces))
        is_loose = not ending.endswith("inv")  # whether one scale per output or per tensor is also valid
        for candidate in (block, *UNITS) if is_loose else (block,):
            exact = packing._replace(block=candidate, axes=len(scales.shape))
            if not self.find_misfits(pieces, values.shape, exact):
                return PieceFit(values.shape, exact)
        packing = packing._replace(axes=len(values.shape))
        return PieceFit(values.shape, packing, tuple(self.find_misfits(pieces, values.shape, packing)))

    def describe(self, packings: Sequence[Packing]) -> list[str]:
        """FP8 with its blocks.

        >>> FORMAT.describe([Packing("fp8", "F8_E4M3", 8, (128, 128), "F32")])
        ['FP8 in blocks of 128 × 128']
        >>> FORMAT.describe([Packing("fp8", "F8_E4M3", 8, block, "F32") for block in ((1, 0), (0, 0))])
        ['FP8, one scale per output and one scale per tensor']
        """
        texts = []
        for block in dict.fromkeys(packing.block for packing in packings):
            unit = describe_unit(block)
            texts.append(f"one scale per {unit}" if block in UNITS else f"in blocks of {unit.removesuffix(' block')}")
        return [f"FP8{', ' if texts[0].startswith('one ') else ' '}{' and '.join(texts)}"]

    def describe_contradiction(self, key: Key, fit: PieceFit, stated: Stated) -> str:
        if stated.family != "fp8" or not stated.block or not key[1].endswith("inv"):
            return ""
        if fit.packing is None or fit.shape is None or fit.packing.layout != "fp8":
            return ""
        if not self.find_misfits(key[2], fit.shape, fit.packing._replace(block=stated.block)):
            return ""
        units = map(describe_unit, (fit.packing.block, stated.block))
        return "has one scale per {}, but the config says one per {}".format(*units)

    # ---- values

    def widen(self, packing: Packing, bits: Array, parts: Mapping[str, Array]) -> Array:
        from paramcount.formats.small_floats import widen_float8

        array = widen_float8(bits, packing.dtype)
        array *= spread(parts["scale"], packing.block, bits.shape)
        return array


def find_block(pairs: Mapping[tuple[Shape, Shape], int], stated: Block | None) -> Block | None:
    """The block that fits most matrices. `pairs`: {(shape, shape of the scales): number of matrices}."""
    votes: Counter[Block] = Counter()
    candidates = dict.fromkeys((stated, *BLOCKS) if stated else BLOCKS)
    for shape, scales in islice(pairs, MOST_SHAPES):
        if block := infer_block(shape, scales):
            candidates[block] = None
    for (shape, scales), n in pairs.items():
        for block in candidates:
            packing = Packing("fp8", "F8_E4M3", 8, block, "F32", len(scales))
            if FORMAT.list_pieces(shape, packing)[1].shape == scales:
                votes[block] += n
    return max(candidates, key=lambda block: votes[block]) if votes else None


def infer_block(shape: Shape, scales: Shape) -> Block | None:
    """The block of a matrix with these scales: powers of two if they fit, otherwise the quotients."""
    if len(shape) < 2 or len(scales) < 2 or 0 in shape or 0 in scales:
        return None
    sizes = []
    for size, n in zip(shape[-2:], scales[-2:]):
        quotient = count_blocks(size, n)
        power = 1 << (quotient - 1).bit_length()
        sizes.append(power if count_blocks(size, power) == n else quotient)
    return sizes[0], sizes[1]


def describe_unit(block: Block) -> str:
    """The values that share a scale.

    >>> describe_unit((128, 128)), describe_unit((1, 0)), describe_unit((0, 0))
    ('128 × 128 block', 'output', 'tensor')
    """
    return UNITS.get(block) or f"{' × '.join(str(n) if n else 'all' for n in block)} block"


FORMAT = Fp8()
