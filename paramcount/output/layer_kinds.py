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
    "lsh": "LSH attention",
}
# Words of layer kinds that are flags or bookkeeping and mean nothing to a reader
FLAGS = ("layer", "first", "again", "later", "last", "own", "all", "", "True", "False", "None")
# [(pattern, kind)]: what stands for kinds that are written in other words, before flags and numbers are left out
KINDS = (
    ("use [0-9]+ owner [0-9]+ .*", "shared block"),  # of Zamba
    (r"word (\w+) .*", r"\1"),  # of Inkling 2 and NeoMME
    (r"divided_by [0-9]+", ""),  # of RWKV: a constant, which a step of the layer shows
    (r"rotates \w+ chooses \w+ latent \w+ mlp (\w+)", r"\1"),  # of Mistral Large 4
    (r"widening .*", "convolution"),  # of Gemma 3n's vision encoder
    (r"n_heads .* halved \w+", "attention"),
    (r"(no_op|full_attention|linear) [0-9]+ [0-9]+ \w+ [0-9]+", r"\1"),  # of Nemotron-NAS
    (r"sparse", "MoE"),  # of Switch Transformers and NLLB-MoE
    (r"(shifted )?windows?", r"\1windowed attention"),
    (r"window_attention(.*)", r"windowed attention\1"),
    (r"(\w+_attention) shared(.*)", r"shared-KV \1\2"),  # of Gemma 4 and 3n
    (r"(\w+_attention) own sparse(.*)", r"sparse-MLP \1\2"),
    (r"full (dense|moe)", r"\1"),  # of GLM's and Hunyuan's sparse attention
    (r"shared (dense|moe)", r"shared-indexer \1"),
    (r"minimax_m3_sparse(.*)", r"sparse attention\1"),
    (r"first mixer, norm", "mixer"),
)
# {words: the same as people say them}
PHRASES = {
    "sliding attention": "sliding-window attention",
    "hybrid sliding": "sliding-window attention",
    "shared attention": "shared-KV attention",
    "shifted windowed": "shifted-window",
    "no op": "no attention",
}


def name_words(words: str) -> str:
    """The words of a kind of layer as they are usually written.

    >>> name_words("attention or moe")
    'attention or MoE'
    """
    return " ".join(NAMES.get(word, word) for word in words.split(" "))


def describe_kind(kind: str) -> str:
    """The name of a kind of layer; "" if all layers are alike.

    >>> describe_kind("full_attention moe"), describe_kind("sliding_attention"), describe_kind("layer")
    ('full attention MoE', 'sliding-window attention', '')
    """
    for pattern, name in KINDS:
        if found := re.fullmatch(pattern, kind, re.DOTALL):
            kind = found.expand(name)
            break
    kind = re.sub("<unknown [^>]*>", "", kind)  # a setting that a zoo entry leaves out
    words = [word for word in kind.replace("_", " ").split(" ") if word not in FLAGS and not is_number(word)]
    text = name_words(" ".join(words))
    for phrase, name in PHRASES.items():
        text = re.sub(rf"\b{phrase}\b", name, text)
    return text


def name_layers(kind: str, n: object) -> str:
    """So many layers of one kind.

    >>> name_layers("moe", 58), name_layers("", 1)
    ('MoE layers × 58', 'layer × 1')
    """
    return f"{describe_kind(kind)} layer{'' if n == 1 else 's'} × {n:,}".strip()


def is_number(word: str) -> bool:
    return re.fullmatch(r"[0-9]+(\.[0-9]+)?", word) is not None
