"""MobileNet V5, the vision encoder of Gemma 3n: convolutions, then multi-query attention over the patches of an image.

Its sizes are those of the one model of this name: a config names it, and gives none. Images are square; each stage
halves their sides, and the last two stages are fused.

Source: timm, mobilenetv5.py, mobilenetv5_300m_enc; its blocks: arXiv:2404.10518, sections 3 and 4.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import FieldName, ParamcountError, make_choice_error
from paramcount.flow import Data

NAME = "mobilenetv5_300m_enc"
ACTIVATION, EPS = "gelu_pytorch_tanh", 1e-6
N_PATCHES = 256  # after the last stage, whatever the size of the image
D_STEM, D_OUT = 64, 2048


class Inverted(NamedTuple):
    """A block that widens its channels in between, with depthwise convolutions of `start` and of `middle` pixels."""

    widening: int
    start: int = 0
    middle: int = 0


class Attentive(NamedTuple):
    """A block of attention with one key and value head. `halved`: of fewer patches."""

    n_heads: int
    d_head: int
    halved: bool


NARROW, WIDE = Inverted(1), Inverted(2)


def alternate(kind: Attentive, n: int) -> list[Inverted | Attentive]:
    """n blocks of attention, with an MLP after each."""
    pair: list[Inverted | Attentive] = [kind, WIDE]
    return pair * n


# {channels of a stage: its blocks but the first}
STAGES: dict[int, list[Inverted | Attentive]] = {
    256: [Inverted(4, 5), Inverted(4, 3)] * 2,
    640: [*[Inverted(4, 5)] * 7, NARROW, *alternate(Attentive(12, 64, halved=True), 14)],
    1280: alternate(Attentive(16, 96, halved=False), 19),
}
FIRST = {256: Inverted(6, 3, 5), 640: Inverted(6, 5, 5), 1280: Inverted(6, 5, 5)}


def is_mobilenet(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """timm builds many other models, with other arguments."""
    if (found := js.get("architecture", NAME)) != NAME:
        raise make_choice_error(found, [NAME], where="vision_config.architecture")
    if js.get("model_args"):
        raise ParamcountError("is set", where="vision_config.model_args", expected="no such key")


class MobileNetV5(sizes.Tower):
    """The encoder, and the tokens that stand for parts of an image."""

    config_class = "Gemma3nVisionConfig"

    conditions = (is_mobilenet,)

    d_model: sizes.Positive = sizes.hf()
    vocab_size: sizes.Positive = sizes.hf()

    norm_eps: ClassVar = sizes.setting("rms_norm_eps")
    first_token: ClassVar = sizes.setting("vocab_offset")

    def image(c) -> Data:
        """The input: one image."""
        return ops.given("pixels", 3, "height", "width")

    def forward(c, pixels: Data) -> Data:
        """One square image, whose values are from 0 to 1, to vectors [patches, d_model]."""
        x = ops.reshape(ops.cut(pixels, 1, 1), 3)
        x = ops.convolve_image(x, "conv_stem.conv", "mixer", D_STEM, 3, stride=2, padding=ops.LEAST, bias=True)
        x = ops.activate(norm(x, "conv_stem.bn"), ACTIVATION)
        x = ops.block(x, "blocks.0.0.", lambda x: fused_block(x, 128, 4 * D_STEM, stride=2))
        x = ops.layers(x, "blocks.0.{layer}.", [("layer", 2)], lambda kind, x: x + fused_block(x, 128, 512), first=1)
        stages = []
        for i, (width, blocks) in enumerate(STAGES.items(), start=1):
            x = ops.block(x, f"blocks.{i}.0.", lambda x, width=width: inverted(x, FIRST[width], width, stride=2))
            x = ops.layers(x, f"blocks.{i}.{{layer}}.", [(kind, 1) for kind in blocks], mix, first=1)
            stages.append(x)
        return ops.block(stages[-2], "msfa.", fuse, reads=stages[-1:])

    def check(c) -> None:
        if c.d_model != D_OUT:
            raise ParamcountError(
                f"= {c.d_model}, but vectors of {NAME} have {D_OUT} values",
                where=FieldName("d_model"),
                expected=f"{D_OUT}",
            )


def mix(kind: Inverted | Attentive, x: Data) -> Data:
    return x + (attention(x, kind) if isinstance(kind, Attentive) else inverted(x, kind, x.shape[-1]))


def fused_block(x: Data, width: ops.Size, d_wide: ops.Size, stride: int = 1) -> Data:
    """A convolution that widens the channels, then a matrix that narrows them."""
    x = ops.convolve_image(x, "conv_exp", "mixer", d_wide, 3, stride=stride, padding=ops.LEAST)
    x = ops.activate(norm(x, "bn1"), ACTIVATION)
    return norm(pointwise(x, "conv_pwl", "mlp.down", width), "bn2")


def inverted(x: Data, kind: Inverted, width: ops.Size, stride: int = 1, *, scaled: bool = True) -> Data:
    """An inverted bottleneck: what reads neighbours reads each channel alone."""
    d_wide = kind.widening * x.shape[-1]
    if kind.start:
        x = norm(convolve_alone(x, "dw_start.conv", kind.start), "dw_start.bn")
    x = ops.activate(norm(pointwise(x, "pw_exp.conv", "mlp.up", d_wide), "pw_exp.bn"), ACTIVATION)
    if kind.middle:
        x = convolve_alone(x, "dw_mid.conv", kind.middle, stride)
        x = ops.activate(norm(x, "dw_mid.bn"), ACTIVATION)
    x = norm(pointwise(x, "pw_proj.conv", "mlp.down", width), "pw_proj.bn")
    return ops.multiply_vector(x, "layer_scale.gamma", "other", width) if scaled else x


def attention(x: Data, kind: Attentive) -> Data:
    """All heads share one key and value head."""
    width = x.shape[-1]
    x = norm(x, "norm")
    q = ops.to_heads(pointwise(x, "attn.query.proj", "qkv.q", kind.n_heads * kind.d_head), kind.n_heads, kind.d_head)
    k, v = (ops.to_heads(read_shared(x, name, kind), 1, kind.d_head) for name in ("key", "value"))
    a = ops.reshape(ops.attend(q, k, v), kind.n_heads * kind.d_head)
    return ops.multiply_vector(
        pointwise(a, "attn.output.proj", "output_projection", width), "layer_scale.gamma", "other", width
    )


def read_shared(x: Data, name: str, kind: Attentive) -> Data:
    if kind.halved:
        x = convolve_alone(x, f"attn.{name}.down_conv", 3, 2)
        x = norm(x, f"attn.{name}.norm")
    return pointwise(x, f"attn.{name}.proj", f"qkv.{name[0]}", kind.d_head)


def fuse(x: Data, last: Data) -> Data:
    """The last two stages to vectors of a fixed number of patches."""
    x = ops.block(ops.join(x, ops.enlarge(last)), "ffn.", lambda x: inverted(x, WIDE, D_OUT, scaled=False))
    return norm(ops.mean_of_squares(x, N_PATCHES), "norm")


def convolve_alone(x: Data, name: str, width: ops.Size, stride: int = 1) -> Data:
    return ops.convolve_each_channel(x, name, x.shape[-1], width, stride=stride, padding=ops.LEAST)


def pointwise(x: Data, name: str, component: str, width: ops.Size) -> Data:
    """A matrix, stored as a convolution over one patch."""
    kernel = ops.Weight(name + ".weight", component, (width, x.shape[-1], 1, 1))
    return Data(ops.Linear(), (x,), (x.shape[0], width), (kernel,))


def norm(x: Data, name: str) -> Data:
    return ops.rms_norm(x, name, EPS)
