"""The names of kinds of layers, for traces, drawings and explanations."""

from __future__ import annotations

import re

NAMES = {
    "moe": "MoE",
    "mtp": "MTP",
    "mlp": "MLP",
    "conv": "convolution",
    "mamba": "Mamba",
    "cross": "cross-attention",
    "self": "self-attention",
    "hash": "hash-routed MoE",
}
# Words of layer kinds that are flags or bookkeeping and mean nothing to a reader
FLAGS = ("layer", "first", "again", "later", "last", "own", "all", "", "True", "False", "None")


# Kinds of layers with sizes of their own, as `Repeat.label` writes them
SHARED_BLOCK = re.compile("use [0-9]+ owner [0-9]+ ")  # of Zamba
CONVOLUTION_KIND = re.compile("word (\\w+) following .*", re.DOTALL)  # of Inkling 2
DIVISOR = re.compile("divided_by [0-9]+")  # of RWKV: a constant, which a step of the layer shows


def name_words(words: str) -> str:
    """The words of a kind of layer as they are usually written.

    >>> name_words("attention or moe")
    'attention or MoE'
    """
    return " ".join(NAMES.get(word, word) for word in words.split(" "))


def describe_kind(kind: str) -> str:
    """The name of a kind of layer; "" if all layers are alike.

    >>> describe_kind("full_attention moe"), describe_kind("layer")
    ('full attention MoE', '')
    """
    if SHARED_BLOCK.match(kind):
        return "shared block"
    kind = DIVISOR.sub("", CONVOLUTION_KIND.sub(r"\1", kind))
    words = kind.replace("_", " ").split(" ")
    return name_words(" ".join(word for word in words if word not in FLAGS))
