"""The likely class of a tensor that the model does not have, from its name and shape."""

from __future__ import annotations

import re
from functools import lru_cache

from paramcount.checkpoints.folding import LONGEST_NAME
from paramcount.checkpoints.writers.gguf_tables import ROPE_FACTORS

# Patterns of each class; the first class with a match wins. Names are in lower case and have {} for each index.
PATTERNS = (
    (
        "adapter",
        (r"lora_[ab]\b", r"lora_(embedding|magnitude)", r"(^|\.)(adapters?|ia3|prefix_encoder|prompt_encoder)\b"),
    ),
    (
        "buffer",
        (
            r"\b(inv_freq|masked_bias|position_ids|token_type_ids|relative_position_index|num_batches_tracked)$",
            r"\b((cos|sin)_cached|rope\.freqs)$",
        ),
    ),
    (
        "quantisation scale or zero point",
        (r"_scales?(_inv|_2)?$", r"\b(scales?|absmax|input_scale|scb|qzeros|zeros|g_idx|(weight_)?zero_point)$"),
    ),
    (
        "packed weights",
        (r"\b(qweight|weight_packed|weight_shape|packed)$", r"_(blocks|packed|quantized)$", r"quant_(state|map)"),
    ),
    ("MTP layer", (r"(^|\.)mtp(_|\.)", r"\b(nextn|eh_proj|enorm|hnorm|shared_head)\b")),
    ("vision tower", (r"vision|visual|image|video", r"(^|\.)(vit|v|mm|vpm|sam_model)\.", r"patch_embed")),
    ("audio tower", (r"audio|speech|whisper|conformer|acoustic|semantic_tokenizer",)),
    (
        "head of another task",
        (r"(^|\.)(classifier|classification_head|pre_classifier|regression_head|score|qa_outputs)\b",),
    ),
    ("projector", (r"projector|multi_?modal|connector|aligner", r"(^|\.)(mlp1|patch_merge_mlp|resampler)\.")),
)
COMPILED = tuple((re.compile("|".join(patterns)), label) for label, patterns in PATTERNS)
# One search with all patterns rules out most names.
ANY_PATTERN = re.compile("|".join(pattern for _, patterns in PATTERNS for pattern in patterns))

HARMLESS = ("buffer",)  # not part of the model, but not learned either
NOT_COUNTED = ("vision tower", "audio tower", "projector")  # expected in the file if only the language model is counted
MASKS = ("attn.bias", "attention.bias", "attn.attention.bias")  # causal masks in older files
# Display names of classes whose values in JSON and CSV stay as they were.
DISPLAY_NAMES = {
    "vision tower": "vision encoder",
    "audio tower": "audio encoder",
    "tied duplicate": "tied copy",
    "never read": "never used",
}
# Plurals that do not end in s.
UNKNOWN = "unknown"  # the class of a tensor whose name matches no pattern
PLURALS = {
    "tied duplicate": "tied copies",
    "group index": "group indices",
    "zero bias of packed weights": "zero biases of packed weights",
    "never read": "never used",
    "empty": "empty",
}


def get_display_name(label: str) -> str:
    """The name of a class or component in text.

    >>> get_display_name("vision tower"), get_display_name("qkv")
    ('vision encoder', 'qkv')
    """
    return DISPLAY_NAMES.get(label, label)


def get_plural(label: str) -> str:
    """The name of a class in text, for its values.

    >>> get_plural("legacy buffer"), get_plural("tied duplicate"), get_plural("never read")
    ('legacy buffers', 'tied copies', 'never used')
    """
    return PLURALS.get(label) or f"{get_display_name(label)}s"


@lru_cache(4096)
def classify_tensor(name: str, shape: tuple[int, ...] | None) -> str:
    """The class of the tensor: one of PATTERNS, or unknown.

    >>> classify_tensor("h.{}.attn.bias", (1, 1, 1024, 1024))
    'buffer'
    >>> classify_tensor("model.layers.{}.self_attn.q_proj.lora_A.weight", (8, 4096))
    'adapter'
    """
    if name in ROPE_FACTORS:
        return ROPE_FACTORS[name]
    if name.endswith(MASKS) and shape is not None and len(shape) == 4:
        return "buffer"
    end = name[-LONGEST_NAME:].lower()
    if not ANY_PATTERN.search(end):
        return UNKNOWN
    return next(label for pattern, label in COMPILED if pattern.search(end))
