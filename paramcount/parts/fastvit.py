"""FastViT as timm builds it for inference: stages of convolutions of single channels, the last ones of attention.

config.json names one of timm's models, and `model_args` what differs from it. The branches that a model has while it is
trained are one convolution each.

Source: arXiv:2303.14189, section 3; arXiv:2412.13303, section 3.2; FastVit in timm's fastvit.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value, join_words, make_choice_error
from paramcount.flow import Data

D_HEAD = 32
MIXERS = ("repmixer", "attention")
LISTS = ("downsamples", "embed_dims", "layers", "mlp_ratios", "pos_embs", "se_downsamples", "token_mixers")
FIXED = {"inference_mode": True, "lkc_use_act": True}  # arguments that are supported with one value alone
IGNORED = ("global_pool", "stem_use_scale_branch")  # what pools patches, and branches while a model is trained


class FastVitVariant(NamedTuple):
    """A model of timm. Of each stage: its blocks and channels. The last two attend, and have convolutions for
    positions.
    """

    layers: tuple[int, ...]
    embed_dims: tuple[int, ...]
    mlp_ratios: tuple[float, ...] = (4,) * 5
    downsamples: tuple[bool, ...] = (False, True, True, True, True)
    se_downsamples: tuple[bool, ...] = (False,) * 5
    pos_embs: tuple[Any, ...] = (None, None, None, 7, 7)
    token_mixers: tuple[str, ...] = ("repmixer", "repmixer", "repmixer", "attention", "attention")


VARIANTS = {
    "fastvit_mci3": FastVitVariant((2, 12, 24, 4, 2), (96, 192, 384, 768, 1536)),
    "fastvit_mci4": FastVitVariant((2, 12, 24, 4, 4), (128, 256, 512, 1024, 2048)),
}
WHOLE = {"architecture": "fastvit_mci3", "model_args": {"inference_mode": True}}  # the section if it is missing


def list_arguments(document: sizes.ConfigJson) -> Mapping[str, Sequence[Any]]:
    """{argument: its value of each stage}, the model's own where config.json has none."""
    section = document.get("vision_config")
    section = WHOLE if section is None else section
    if (name := section.get("architecture", "resnet50")) not in tuple(VARIANTS):
        raise make_choice_error(name, VARIANTS, where="vision_config.architecture")
    where, arguments = "vision_config.model_args", section.get("model_args") or {}
    if not isinstance(arguments, Mapping):
        raise sizes.make_value_error(arguments, where, "a JSON object")
    changes = {key: value for key, value in arguments.items() if value is not None}  # as timm does
    for key, value in {"inference_mode": False, **changes}.items():
        if key not in (*LISTS, *FIXED, *IGNORED):
            expected = join_words((*LISTS, *FIXED, *IGNORED), "or")
            raise ParamcountError(f"{key} is not supported", where=where, expected=expected)
        if key in FIXED and value is not FIXED[key]:
            problem = "is missing" if key not in changes else f"= {describe_value(value)} is not supported"
            raise ParamcountError(problem, where=f"{where}.{key}", expected="true")
    found = {key: changes.get(key, getattr(VARIANTS[name], key)) for key in LISTS}
    n = len(found["layers"]) if isinstance(found["layers"], (list, tuple)) else 0
    for key, values in found.items():
        check_stages(key, values, n, where)
    return {key: values[:n] for key, values in found.items()}


def check_stages(key: str, values: object, n: int, where: str) -> None:
    """Raise an error if an argument has no value for each of n stages, or one that is not supported."""
    where = f"{where}.{key}"
    if not isinstance(values, (list, tuple)) or len(values) < max(n, 1) or (key == "embed_dims" and len(values) > n):
        raise sizes.make_value_error(values, where, "one value for each stage")
    if key == "se_downsamples" and any(values[:n]):
        raise ParamcountError(f"= {describe_value(values)} is not supported", where=where, expected="false for all")
    if key == "token_mixers":
        for value in values[:n]:
            if value not in MIXERS:
                raise make_choice_error(value, MIXERS, where=where)


def of_stages(argument: str) -> sizes.Derivation:
    return lambda js, c: tuple(list_arguments(js)[argument])


@sizes.options_first
def stages_where(js: sizes.ConfigJson, c: sizes.FieldValues, argument: str, value: Any) -> Any:
    """The stages with this value."""
    return tuple(i for i, found in enumerate(list_arguments(js)[argument]) if found == value)


def narrowed_stages(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Those that begin with a convolution to their channels."""
    given, dims = list_arguments(js)["downsamples"], c["dims"]
    return tuple(i for i, dim in enumerate(dims) if given[i] or dim != dims[max(i - 1, 0)])


def placed_stages(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    return tuple(i for i, kernel in enumerate(list_arguments(js)["pos_embs"]) if kernel is not None)


def ff_dims(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    ratios = list_arguments(js)["mlp_ratios"]
    return tuple(sizes.part_of(dim, ratio, "model_args.mlp_ratios") for dim, ratio in zip(c["dims"], ratios))


def missing_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    if js:
        raise ParamcountError("is missing", where="vision_config.hidden_size", expected="a positive integer")
    return 3072


class FastViT(sizes.Tower):
    """`narrowed`: stages that begin with a convolution; `placed`: with one for positions; `attended`: of attention.
    Images fit if `d_projected`, which the projector reads, is twice the channels of the last stage.
    """

    config_class = "TimmWrapperConfig"

    conditions: ClassVar = (parts.tower_named("timm_wrapper"),)
    unused_keys: ClassVar = ("num_features", "num_classes")

    d_projected: sizes.Positive = sizes.hf("hidden_size", absent=missing_size)
    depths: sizes.Widths = sizes.derived(of_stages("layers"), at_root=True)
    dims: sizes.Widths = sizes.derived(of_stages("embed_dims"), at_root=True)
    ff_dims: sizes.Widths = sizes.derived(ff_dims, at_root=True)
    narrowed: sizes.Indices = sizes.derived(narrowed_stages, at_root=True)
    placed: sizes.Indices = sizes.derived(placed_stages, at_root=True)
    attended: sizes.Indices = sizes.derived(stages_where("token_mixers", "attention"), at_root=True)

    def image(c) -> Data:
        """The input: one image."""
        return ops.given("pixels", 3, "height", "width")

    def forward(c, pixels: Data) -> Data:
        """One square image to vectors of its patches, [patches, 2 · dims[-1]]."""
        d = c.dims[0]
        x = convolve(ops.reshape(ops.cut(pixels, 1, 1), 3), "stem.0.", d, 3, stride=2)
        x = ops.activate(convolve_alone(x, "stem.1.reparam_conv", d, 3, 2), "gelu")
        x = convolve(x, "stem.2.", d, 1)
        for stage, depth in enumerate(c.depths):
            name = f"stages.{stage}."
            x = ops.block(x, name, lambda x, stage=stage: c.begin(x, stage))
            kinds = [("attention" if stage in c.attended else "convolution", depth)]
            x = ops.layers(x, name + "blocks.{layer}.", kinds, lambda kind, x, s=stage: c.layer(x, kind, s))
        return ops.block(x, "final_conv.", c.widen)

    def begin(c, x: Data, stage: int) -> Data:
        """To the channels of a stage, of a quarter of the patches."""
        if stage in c.narrowed:
            d = c.dims[stage]
            x = ops.activate(convolve_alone(x, "downsample.proj.0.reparam_conv", d, 7, 2), "gelu")
            x = convolve(x, "downsample.proj.1.", d, 1)
        return convolve_alone(x, "pos_emb.reparam_conv", x.shape[-1], 7) if stage in c.placed else x

    def layer(c, x: Data, kind: str, stage: int) -> Data:
        d_ff = c.ff_dims[stage]
        if kind == "convolution":
            x = convolve_alone(x, "token_mixer.reparam_conv", x.shape[-1], 3)
            return x + scale(mlp(x, d_ff), "layer_scale")
        x = x + scale(attention(ops.layer_norm(x, "norm", 1e-5)), "layer_scale_1")
        return x + scale(mlp(x, d_ff), "layer_scale_2")

    def widen(c, x: Data) -> Data:
        """To twice the channels, each times a gate that reads the means of all."""
        d = 2 * c.dims[-1]
        x = convolve_alone(x, "reparam_conv", d, 3)
        gate = parts.convolve_one(
            ops.pool_text(x, "mean"), "se.fc1", "mixer", max(1, (2 * d + 16) // 32)
        )  # a 16th, rounded
        gate = ops.activate(parts.convolve_one(ops.activate(gate, "relu"), "se.fc2", "mixer", d), "sigmoid")
        return ops.activate(x * ops.expand_to_tokens(x, gate), "gelu")

    def check(c) -> None:
        where = FieldName("dims")
        for stage, (before, dim) in enumerate(zip((c.dims[0], *c.dims), c.dims)):
            if dim % before:
                raise ParamcountError(f"= {dim} at {stage}", where=where, expected=f"a multiple of {before}")
            if stage in c.attended and dim % D_HEAD:
                raise ParamcountError(f"= {dim} at {stage}", where=where, expected=f"a multiple of {D_HEAD}")


def convolve(x: Data, prefix: str, channels: ops.Size, width: int, stride: int = 1) -> Data:
    x = ops.convolve_image(x, prefix + "reparam_conv", "mixer", channels, width, stride=stride, bias=True)
    return ops.activate(x, "gelu")


def convolve_alone(x: Data, name: str, channels: ops.Size, width: int, stride: int = 1) -> Data:
    """Each channel alone, without an activation."""
    return ops.convolve_each_channel(x, name, channels, width, stride=stride, bias=True)


def attention(x: Data) -> Data:
    d = x.shape[-1]
    heads = (d // D_HEAD, D_HEAD)
    q, k, v = ops.fused(x, "token_mixer.qkv", dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), heads))
    return ops.linear(ops.attend(q, k, v), "token_mixer.proj", "output_projection", d, bias=True)


def mlp(x: Data, d_ff: ops.Size) -> Data:
    """An MLP of each patch after a convolution of each channel."""
    h = ops.convolve_each_channel(x, "mlp.conv.conv", x.shape[-1], 7)
    h = ops.activate(parts.convolve_one(ops.batch_norm(h, "mlp.conv.bn", 1e-5), "mlp.fc1", "mlp.up", d_ff), "gelu")
    return parts.convolve_one(h, "mlp.fc2", "mlp.down", x.shape[-1])


def scale(x: Data, name: str) -> Data:
    return ops.multiply_vector(x, f"{name}.gamma", "other", x.shape[-1], 1, 1)
