"""What a tensor that no declaration names most likely is, by its name and shape."""

from __future__ import annotations

import re
from functools import lru_cache

from paramcount.checkpoints.folding import LONGEST_NAME
from paramcount.checkpoints.writers.gguf_tables import ADDED

# Words of names, the first class that has one wins. A name is lower-cased, its indices are braces.
WORDS = (
    ("adapter", (r"lora_[ab]\b", r"lora_(embedding|magnitude)", r"(^|\.)(adapters?|ia3|prefix_encoder|prompt_encoder)\b")),
    ("buffer", (r"\b(inv_freq|masked_bias|position_ids|token_type_ids|relative_position_index|num_batches_tracked)$", r"\b((cos|sin)_cached|rope\.freqs)$")),
    ("quantisation scale or zero point", (r"_scales?(_inv|_2)?$", r"\b(scales?|absmax|input_scale|scb|qzeros|zeros|g_idx|(weight_)?zero_point)$")),
    ("packed weights", (r"\b(qweight|weight_packed|weight_shape|packed)$", r"_(blocks|packed|quantized)$", r"quant_(state|map)")),
    ("MTP layer", (r"(^|\.)mtp(_|\.)", r"\b(nextn|eh_proj|enorm|hnorm|shared_head)\b")),
    ("vision tower", (r"vision|visual|image|video", r"(^|\.)(vit|v|mm|vpm|sam_model)\.", r"patch_embed")),
    ("audio tower", (r"audio|speech|whisper|conformer|acoustic|semantic_tokenizer",)),
    ("head of another task", (r"(^|\.)(classifier|classification_head|pre_classifier|regression_head|score|qa_outputs)\b",)),
    ("projector", (r"projector|multi_?modal|connector|aligner", r"(^|\.)(mlp1|patch_merge_mlp|resampler)\.")),
)
BY_NAME = tuple((re.compile("|".join(patterns)), what) for what, patterns in WORDS)
ANY = re.compile("|".join(pattern for _, patterns in WORDS for pattern in patterns))  # told at once of names that have none

HARMLESS = ("buffer",)  # nobody declared them and nothing in them is learned
NOT_COUNTED = ("vision tower", "audio tower", "projector")  # beside a model of which only the language model is counted
MASKS = ("attn.bias", "attention.bias", "attn.attention.bias")  # causal masks that older files hold


@lru_cache(4096)
def classify_tensor(name: str, shape: tuple[int, ...] | None) -> str:
    """What such a tensor is: one of WORDS, or unknown.

    >>> classify_tensor("h.{}.attn.bias", (1, 1, 1024, 1024)), classify_tensor("model.layers.{}.self_attn.q_proj.lora_A.weight", (8, 4096))
    ('buffer', 'adapter')
    """
    if name in ADDED:
        return ADDED[name]
    if name.endswith(MASKS) and shape is not None and len(shape) == 4:
        return "buffer"
    end = name[-LONGEST_NAME:].lower()
    return next(what for pattern, what in BY_NAME if pattern.search(end)) if ANY.search(end) else "unknown"
