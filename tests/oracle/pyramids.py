"""The part of detectron2 that LayoutLMv2 of the reference is built with, so that it can be built where detectron2 is
not installed: ResNeXt with a feature pyramid, written after resnet.py, fpn.py, batch_norm.py and defaults.py of
facebookresearch/detectron2 at 02b5c4e295e990042a714712c21dc79b731e8833.

`stand_in` puts it in the place of the package. What the reference builds and drops (proposals, boxes, masks) is not
here: it takes the arguments, and no argument of theirs changes the backbone.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn import functional

DEPTHS = {50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3]}
STRIDES = {"res2": 4, "res3": 8, "res4": 16, "res5": 32}


def make_settings() -> SimpleNamespace:
    """The defaults of detectron2 that the backbone is built with, and places for the others."""
    resnets = SimpleNamespace(
        DEPTH=50, OUT_FEATURES=["res4"], NUM_GROUPS=1, NORM="FrozenBN", WIDTH_PER_GROUP=64, STRIDE_IN_1X1=True,
        RES5_DILATION=1, RES2_OUT_CHANNELS=256, STEM_OUT_CHANNELS=64,
    )  # fmt: skip
    others = ("ANCHOR_GENERATOR", "RPN", "ROI_HEADS", "ROI_BOX_HEAD", "ROI_MASK_HEAD")
    model = SimpleNamespace(
        META_ARCHITECTURE="GeneralizedRCNN",
        PIXEL_MEAN=[103.53, 116.28, 123.675],
        PIXEL_STD=[1.0, 1.0, 1.0],
        BACKBONE=SimpleNamespace(NAME="build_resnet_backbone", FREEZE_AT=2),
        FPN=SimpleNamespace(IN_FEATURES=[], OUT_CHANNELS=256, NORM="", FUSE_TYPE="sum"),
        RESNETS=resnets,
        **{name: SimpleNamespace() for name in others},
    )
    return SimpleNamespace(MODEL=model)


class FrozenBatchNorm2d(nn.Module):  # type: ignore[misc]
    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.num_features, self.eps = num_features, eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0 - eps)):
            self.register_buffer(name, torch.full((num_features,), value))
        self.register_buffer("num_batches_tracked", None)

    def forward(self, x: Any) -> Any:
        values = (self.running_mean, self.running_var, self.weight, self.bias)
        return functional.batch_norm(x, *values, training=False, eps=self.eps)


class NormedConv2d(nn.Conv2d):  # type: ignore[misc]
    """A convolution, and a norm that belongs to it."""

    def __init__(self, *sizes: int, norm: str = "FrozenBN", **options: Any) -> None:
        super().__init__(*sizes, bias=not norm, **options)
        assert norm in ("", "FrozenBN")
        self.norm = FrozenBatchNorm2d(sizes[1]) if norm else None

    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        return x if self.norm is None else self.norm(x)


class Bottleneck(nn.Module):  # type: ignore[misc]
    def __init__(self, d_in: int, d_out: int, d_inner: int, groups: int, stride: int, *, early: bool) -> None:
        super().__init__()
        self.shortcut = NormedConv2d(d_in, d_out, 1, stride=stride) if d_in != d_out else None
        first, second = (stride, 1) if early else (1, stride)
        self.conv1 = NormedConv2d(d_in, d_inner, 1, stride=first)
        self.conv2 = NormedConv2d(d_inner, d_inner, 3, stride=second, padding=1, groups=groups)
        self.conv3 = NormedConv2d(d_inner, d_out, 1)

    def forward(self, x: Any) -> Any:
        y = self.conv3(self.conv2(self.conv1(x).relu()).relu())
        return (y + (x if self.shortcut is None else self.shortcut(x))).relu()


class Stem(nn.Module):  # type: ignore[misc]
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.conv1 = NormedConv2d(d_in, d_out, 7, stride=2, padding=3)

    def forward(self, x: Any) -> Any:
        return functional.max_pool2d(self.conv1(x).relu(), 3, 2, 1)


class ResNet(nn.Module):  # type: ignore[misc]
    def __init__(self, cfg: Any) -> None:
        super().__init__()
        c = cfg.MODEL.RESNETS
        assert c.NORM == "FrozenBN"
        assert c.RES5_DILATION == 1
        self.stem = Stem(len(cfg.MODEL.PIXEL_MEAN), c.STEM_OUT_CHANNELS)
        d_in, d_out, d_inner = c.STEM_OUT_CHANNELS, c.RES2_OUT_CHANNELS, c.NUM_GROUPS * c.WIDTH_PER_GROUP
        self.channels = {}
        last = max(map(list(STRIDES).index, c.OUT_FEATURES))
        for i, n in enumerate(DEPTHS[c.DEPTH][: last + 1]):
            blocks = []
            for k in range(n):
                stride = 2 if i and not k else 1
                blocks.append(Bottleneck(d_in, d_out, d_inner, c.NUM_GROUPS, stride, early=c.STRIDE_IN_1X1))
                d_in = d_out
            self.add_module(f"res{i + 2}", nn.Sequential(*blocks))
            self.channels[f"res{i + 2}"] = d_out
            d_out, d_inner = 2 * d_out, 2 * d_inner

    def forward(self, x: Any) -> dict[str, Any]:
        x, found = self.stem(x), {}
        for name in self.channels:
            found[name] = x = self.get_submodule(name)(x)
        return found


class FPN(nn.Module):  # type: ignore[misc]
    def __init__(self, cfg: Any) -> None:
        super().__init__()
        c, bottom_up = cfg.MODEL.FPN, ResNet(cfg)
        assert c.NORM == ""
        assert c.FUSE_TYPE == "sum"
        assert c.IN_FEATURES
        assert set(c.IN_FEATURES) <= set(cfg.MODEL.RESNETS.OUT_FEATURES)
        self.d_out, self.features = c.OUT_CHANNELS, list(c.IN_FEATURES)
        for name in self.features:
            lateral = NormedConv2d(bottom_up.channels[name], self.d_out, 1, norm="")
            self.add_module(f"fpn_lateral{name[-1]}", lateral)
            self.add_module(f"fpn_output{name[-1]}", NormedConv2d(self.d_out, self.d_out, 3, padding=1, norm=""))
        self.bottom_up = bottom_up

    def forward(self, x: Any) -> dict[str, Any]:
        features, found, above = self.bottom_up(x), {}, None
        for name in reversed(self.features):
            y = self.get_submodule(f"fpn_lateral{name[-1]}")(features[name])
            above = y if above is None else y + functional.interpolate(above, scale_factor=2.0, mode="nearest")
            found[f"p{name[-1]}"] = self.get_submodule(f"fpn_output{name[-1]}")(above)
        return found

    def output_shape(self) -> dict[str, Any]:
        shapes = {name: SimpleNamespace(channels=self.d_out, stride=STRIDES[name]) for name in self.features}
        return {f"p{name[-1]}": shape for name, shape in shapes.items()}


class GeneralizedRCNN(nn.Module):  # type: ignore[misc]
    def __init__(self, cfg: Any) -> None:
        super().__init__()
        assert cfg.MODEL.BACKBONE.NAME == "build_resnet_fpn_backbone"
        self.backbone = FPN(cfg)


def stand_in() -> None:
    """Let the reference find this in the place of detectron2."""
    if find_spec("detectron2"):
        return
    names = ("", ".config", ".layers", ".layers.batch_norm", ".modeling", ".modeling.backbone")
    modules = {name: ModuleType(f"detectron2{name}") for name in names}
    for name, module in modules.items():
        module.__spec__ = ModuleSpec(module.__name__, None, is_package=True)
        parent, _, last = name.rpartition(".")
        if last:
            setattr(modules[parent], last, module)
    vars(modules[".config"])["get_cfg"] = make_settings
    for name in (".layers", ".layers.batch_norm"):
        vars(modules[name])["FrozenBatchNorm2d"] = FrozenBatchNorm2d
    vars(modules[".modeling"])["META_ARCH_REGISTRY"] = {"GeneralizedRCNN": GeneralizedRCNN}
    vars(modules[".modeling.backbone"])["FPN"] = FPN
    sys.modules.update({module.__name__: module for module in modules.values()})


def add_page(cls: Any) -> None:
    """Let a class run with a text alone: on a page without words' places, and with an image."""
    forward = cls.forward

    def run(self: Any, input_ids: Any = None, bbox: Any = None, image: Any = None, **named: Any) -> Any:
        bbox = torch.zeros((*input_ids.shape, 4), dtype=torch.long) if bbox is None else bbox
        image = torch.zeros((len(input_ids), 3, 64, 64)) if image is None else image
        named.setdefault("attention_mask", torch.ones_like(input_ids))  # or it looks for padding by keys it has not
        return forward(self, input_ids=input_ids, bbox=bbox, image=image, **named)

    cls.forward = run


stand_in()

import transformers  # noqa: E402  after what it looks for

for name in ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"):
    add_page(getattr(transformers, f"LayoutLMv2{name}"))
