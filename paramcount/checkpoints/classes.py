"""What a tensor that no declaration names most likely is, by its name and shape."""

from __future__ import annotations

import re

# The first that fits. A name is lower-cased, its indices are braces.
BY_NAME = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"lora_[ab]\b|lora_embedding|lora_magnitude|(^|\.)(adapter|adapters|ia3|prefix_encoder|prompt_encoder)\b", "adapter"),
        (r"\binv_freq$|\brope_freqs\b|\b(cos|sin)_cached$|\bmasked_bias$|\bposition_ids$|\btoken_type_ids$|\brelative_position_index$|\bnum_batches_tracked$", "buffer"),
        (r"_scale(s|_inv|_2)?$|\b(scale|scales|absmax|input_scale|scb)$|\b(qzeros|zeros|zero_point|g_idx|weight_zero_point)$", "quantisation scale or zero point"),
        (r"\b(qweight|weight_packed|weight_shape|packed)$|_blocks$|_packed$|quant_state|quant_map|_quantized$", "packed weights"),
        (r"(^|\.)mtp(_|\.)|\bnextn\b|\b(eh_proj|enorm|hnorm|shared_head)\b", "MTP layer"),
        (r"vision|visual|image|(^|\.)(vit|v|mm)\.|patch_embed", "vision tower"),
        (r"audio|speech|whisper|conformer", "audio tower"),
        (r"projector|multi_modal|multimodal", "projector"),
    )
)
HARMLESS = ("buffer",)  # nobody declared them and nothing in them is learned
NOT_COUNTED = ("vision tower", "audio tower", "projector")  # beside a model of which only the language model is counted
MASKS = ("attn.bias", "attention.bias", "attn.attention.bias")  # causal masks that older files hold


def class_of(name: str, shape: tuple[int, ...] | None) -> str:
    """What such a tensor is: adapter, buffer, quantisation scale or zero point, packed weights, MTP layer, vision tower, audio tower,
    projector, or unknown.

    >>> class_of("h.{}.attn.bias", (1, 1, 1024, 1024)), class_of("model.layers.{}.self_attn.q_proj.lora_A.weight", (8, 4096))
    ('buffer', 'adapter')
    """
    if name.endswith(MASKS) and shape is not None and len(shape) == 4:
        return "buffer"
    return next((what for pattern, what in BY_NAME if pattern.search(name.lower())), "unknown")
