"""GPTQ: integers of 2, 3, 4 or 8 bits in 32-bit words along the inputs, scales and zero points per group of inputs.

What AWQ shares with it is here, too: their files use the same names.

Sources: github AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py; ModelCloud/GPTQModel, GPTQQuantLinear.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from paramcount.errors import ParamcountError, join_words, quote
from paramcount.formats.packing import (
    INPUTS,
    OUTPUTS,
    SCALES,
    WORD,
    Axis,
    Companion,
    Key,
    Packing,
    Pattern,
    PieceFit,
    Pieces,
    Shape,
    Stored,
    WeightFormat,
    count_blocks,
    drop_others,
    list_unshaped,
)
from paramcount.formats.quantization_config import (
    LARGEST_BLOCK,
    PackedGroup,
    Plan,
    Selection,
    Stated,
    WeightDtype,
    make_unknown_size_error,
    read_excluded,
)
from paramcount.formats.weights import get_format, load_formats

DEFAULT_GROUP = 128  # inputs per scale
GROUPS = (DEFAULT_GROUP, 64, 32, 0)  # supported by AWQ's GEMV layout
MOST_BITS = 8
ZEROS, INDEX = "zero point", "group index"
NAME = re.compile(r"(gptq|awq)(?:-([2348])bit)?(?:-g([1-9][0-9]{0,5}))?")


class Words(WeightFormat):
    """Integers in 32-bit words."""

    layouts: tuple[str, ...] = ()  # the usual one first
    unfit = "is not a packed matrix"
    needs_layer = False  # whether only modules of layers are quantised
    patterns = (
        Pattern(
            "gptq", "qweight", ("I32", "U32", "I16"),
            (
                Companion("scales", "scale", SCALES, "found"), Companion("qzeros", ZEROS, ("I32",), "always"),
                Companion("scaled_zeros", ZEROS, SCALES, "found"), Companion("g_idx", INDEX, ("I32",), "always"),
            ),
            "weight", needs=(), transposed=None, family="words",
        ),
    )  # fmt: skip

    def get_label(self, packing: Packing) -> str:
        return f"{self.name} {packing.bits}-bit"

    def describe_packing(self, packing: Packing) -> str:
        inputs = packing.block[1]
        return f"{self.get_label(packing)}{f' with groups of {inputs}' if inputs else ''}"

    def describe(self, packings: Sequence[Packing]) -> list[str]:
        """The numbers of bits and groups.

        >>> FORMAT.describe([Packing("gptq", "I32", bits, (1, 128), "F16") for bits in (4, 8)])
        ['GPTQ, 4 and 8 bits, groups of 128']
        """
        bits = join_words(sorted({packing.bits for packing in packings}), "and")
        groups = join_words(sorted({packing.block[1] for packing in packings} - {0}), "and")
        return [f"{self.name}, {bits} bits, {f'groups of {groups}' if groups else 'one group'}"]

    def name_group(self, dtype: str | None, roles: Sequence[str], stated: Stated) -> str:
        if INDEX in roles:
            return "GPTQ"
        return stated.name if stated.family == "words" else "GPTQ or AWQ"

    def can_store(self, shape: Shape, packing: Packing) -> bool:
        *_, outputs, inputs = shape
        bits, group = packing.bits, packing.block[1]
        return not (inputs * bits % WORD or outputs * bits % WORD or (group and inputs % group))

    # ---- what a config states

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        form = str(config.get("packing_format"))
        if method == "auto-round" and self.methods[0] == next((key for key in ("gptq", "awq") if key in form), ""):
            return self.read_words(config)._replace(various=True)
        return self.read_words(config) if method in self.methods else None

    def read_words(self, config: Mapping[str, Any]) -> Stated:
        bits = config.get("bits", config.get("w_bit"))
        group = config.get("group_size", config.get("q_group_size"))
        form = config.get("checkpoint_format") or config.get("format") or config.get("version")
        form_name = form.lower() if isinstance(form, str) else None
        if config.get("is_marlin_format") is True or form_name in ("marlin", "bitblas", "qqq"):
            layout = "Marlin" if form_name is None else quote(form_name)
            return Stated(name=f"{self.name} in the {layout} layout")
        return Stated(
            "words",
            self.name,
            self.find_layout(form_name),
            bits if type(bits) is int and 1 <= bits <= MOST_BITS else None,
            None if type(group) is not int or group > LARGEST_BLOCK else max(group, 0),
            various=bool(config.get("dynamic")),
        )

    def find_layout(self, form: str | None) -> str | None:
        """The layout that the config names; None if it is unknown."""
        return self.layouts[0]

    def plan(self, stated: Stated, config: Mapping[str, Any], dtype: str) -> Plan | None:
        excluded = read_excluded(config)
        bits, group = stated.bits or 4, DEFAULT_GROUP if stated.group is None else stated.group
        if stated.layout is None:
            raise make_unknown_size_error(stated.name)
        if config.get("modules_in_block_to_quantize") is not None or config.get("lm_head") is True:
            raise ParamcountError("selects the modules to quantise, which paramcount does not support")
        packing = self.make_packing(stated.layout, bits, group)
        text = f"{stated.name} {bits}-bit, {f'groups of {group}' if group else 'one group'}"
        selection = Selection(excluded, needs_layer=self.needs_layer)
        return Plan(str(config["quant_method"]), text, (PackedGroup(selection, packing),), dtype)

    def make_packing(self, layout: str, bits: int, group: int) -> Packing:
        """As the format's library writes it."""
        return Packing(layout, "I32", bits, (1, group), "F16", extras=(ZEROS,))

    def find_dtype(self, name: str) -> WeightDtype | None:
        match = NAME.fullmatch(name)
        if match is None or match[1] != self.methods[0] or (match[1] == "awq" and match[2] not in (None, "4")):
            return None
        bits, group = int(match[2] or 4), int(match[3] or DEFAULT_GROUP)
        label = f"{self.name} {bits}-bit (group {group})"
        return WeightDtype(name, label, self.plan_own({"bits": bits, "group_size": group}))

    def guess(self, names: tuple[str, ...], stated: Stated, scale: str) -> Packing | None:
        if names[0] != "qweight" or stated.bits is None or stated.group is None or stated.various:
            return None
        layout = stated.layout or ("gptq" if "g_idx" in names else None)
        if layout != self.layouts[0]:
            return None
        return Packing(
            layout, "I32", stated.bits, (1, stated.group), "F16", extras=list_extras(names, ("qzeros", "g_idx"))
        )

    # ---- files: their names do not say which of the formats it is

    def fit(self, counts: Mapping[Key, int], stated: Stated) -> Mapping[Key, PieceFit]:
        """A matrix whose pieces do not agree is fitted like the majority of the file."""
        votes: Counter[Packing] = Counter()
        for (_, _, pieces), n in counts.items():
            if (match := match_words(pieces, stated)) and match.packing:
                votes[drop_others(match.packing)] += n
        majority = max(votes, key=lambda packing: votes[packing], default=None)
        return {key: fit_words(key[2], stated, majority) for key in counts}

    def list_bits(self, layout: str, dtype: str, stated: Stated) -> Iterable[int]:
        """Possible bits per value."""
        return () if dtype == "I16" else dict.fromkeys((stated.bits or 4, *range(1, MOST_BITS + 1)))

    def list_groups(self, shape: Shape, scales: Shape, layout: str, hints: Sequence[int]) -> Sequence[int]:
        """Possible numbers of inputs that share a scale."""
        n, inputs = scales[-2], shape[-1]
        if n == 1:
            return [0]
        fitting = [group for group in hints if group and count_blocks(inputs, group) == n]
        return fitting[:1] or [inputs // n if inputs % n == 0 else count_blocks(inputs, n)]

    def describe_contradiction(self, key: Key, fit: PieceFit, stated: Stated) -> str:
        packing, shape = fit.packing, fit.shape
        if stated.family != "words" or packing is None or shape is None:
            return ""
        if stated.layout and stated.layout not in self.layouts:
            return f"is packed with {self.name}, but the config says {stated.name}"
        if stated.various:
            return ""
        if stated.bits and stated.bits != packing.bits:
            return f"has {packing.bits} bits per value, but the config says {stated.bits}"
        if stated.group is None or not self.find_misfits(key[2], shape, packing._replace(block=(1, stated.group))):
            return ""
        return f"has groups of {packing.block[1] or shape[-1]}, but the config says {stated.group or 'one group'}"


class Gptq(Words):
    name = "GPTQ"
    methods = ("gptq",)
    dtypes = MappingProxyType({"gptq": ("GPTQ", {})})
    layouts = ("gptq",)
    needs_layer = True

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        inputs, outputs = (Axis(axis, WORD, packing.bits, is_cut=True) for axis in (INPUTS, OUTPUTS))
        groups = Axis(INPUTS, packing.block[1])
        yield Stored("packed weights", packing.dtype, (inputs, Axis(OUTPUTS)))
        yield Stored("scale", packing.scale, (groups, Axis(OUTPUTS)))
        if ZEROS in packing.extras:
            yield Stored(ZEROS, packing.dtype, (groups, outputs))
        if INDEX in packing.extras:
            yield Stored(INDEX, "I32", (Axis(INPUTS),))

    def make_packing(self, layout: str, bits: int, group: int) -> Packing:
        return super().make_packing(layout, bits, group)._replace(extras=(ZEROS, INDEX))


def list_word_formats() -> list[Words]:
    """GPTQ first."""
    return [format for format in reversed(load_formats()) if isinstance(format, Words)]


def list_extras(roles: Iterable[str], names: tuple[str, str] = (ZEROS, INDEX)) -> tuple[str, ...]:
    return tuple(what for what, name in zip((ZEROS, INDEX), names) if name in roles)


def match_words(pieces: Pieces, stated: Stated, majority: Packing | None = None) -> PieceFit | None:
    """The fit of a matrix packed in words if all of its pieces agree; None if they do not."""
    values, scales = pieces[0], next((piece for piece in pieces if piece.what == "scale"), None)
    if scales is None or len(values.shape) < 2 or len(scales.shape) != len(values.shape):
        return None
    if 0 in values.shape + scales.shape:
        return None
    hints = [group for group in (stated.group, majority.block[1] if majority else None, *GROUPS) if group is not None]
    likely = (stated.layout, majority.layout if majority else None)
    extras = list_extras([piece.what for piece in pieces])
    known = [(format, layout) for format in list_word_formats() for layout in format.layouts]
    for format, layout in sorted(known, key=lambda item: likely.index(item[1]) if item[1] in likely else len(likely)):
        for bits in format.list_bits(layout, values.dtype, stated):
            packing = Packing(layout, values.dtype, bits, (1, 0), scales.dtype, 2, extras, list_unshaped(pieces))
            shape = format.restore_values(pieces, packing)
            if not shape or (ZEROS in extras and shape[-2] * bits % WORD):
                continue
            for group in format.list_groups(shape, scales.shape, layout, hints):
                grouped = packing._replace(block=(1, group))
                if not format.find_misfits(pieces, shape, grouped):
                    return PieceFit(shape, grouped, () if ZEROS in extras else ((0, "zero points are missing"),))
    return None


def fit_words(pieces: Pieces, stated: Stated, majority: Packing | None) -> PieceFit:
    """The fit of a matrix packed in words. `majority`: the most common packing in the file."""
    if exact := match_words(pieces, stated, majority):
        return exact
    bits, group = stated.bits or 4, DEFAULT_GROUP if stated.group is None else stated.group
    layouts = [stated.layout] if stated.layout else [format.layouts[0] for format in list_word_formats()]
    usual = [Packing(layout, "I32", bits, (1, group), "F16", extras=(ZEROS,)) for layout in layouts]
    scale = next((piece.dtype for piece in pieces if piece.what == "scale"), None)
    roles = [piece.what for piece in pieces]
    missing = tuple((0, f"{role}s are missing") for role in ("scale", ZEROS) if role not in roles)
    fits = []
    for packing in [majority] if majority else usual:
        extras = [what for what in (ZEROS, INDEX) if what in (packing.extras if what == ZEROS else roles)]
        packing = packing._replace(
            dtype=pieces[0].dtype, scale=scale or packing.scale, extras=tuple(extras), others=list_unshaped(pieces)
        )
        fits.append(get_format(packing.layout).choose(pieces, packing, missing))
    return min(fits, key=lambda fit: len(fit.faults))


FORMAT = Gptq()
