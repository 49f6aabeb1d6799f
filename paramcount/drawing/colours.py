"""The colour of each component, the same in every picture."""

# A hue for each kind: embeddings blue, attention orange, feed-forward green, encoders pink. The colours differ in
# lightness as well, for colour-blind readers and for print.
COLOURS = {
    "embedding": "#487db3", "other_embedding": "#a1d4f0", "position": "#6f8fd8", "qkv": "#e56e28",
    "output_projection": "#f7bf8a", "mlp": "#11753f", "router": "#e4d379", "experts": "#49beb5",
    "shared_experts": "#94bb57", "mixer": "#843388", "norm": "#2a2a2a", "lm_head": "#1e3260",
    "other": "#999999", "vision": "#bd5689", "audio": "#ed9ebe", "projector": "#6b1844",
}  # fmt: skip
# Those that are too dark on a dark ground
ON_DARK = {"norm": "#c4c4c4", "lm_head": "#6f8be0", "mixer": "#c27ac6", "projector": "#b84a85"}
INK, PAPER = "#1f2328", "#ffffff"


def choose_text_colour(colour: str) -> str:
    """Dark or white text, whichever has more contrast on a colour.

    >>> choose_text_colour("#1e3260"), choose_text_colour("#a1d4f0")
    ('#ffffff', '#1f2328')
    """
    luminance = measure_luminance(colour)
    on_white = 1.05 / (luminance + 0.05)
    on_ink = (luminance + 0.05) / (measure_luminance(INK) + 0.05)
    return PAPER if on_white > on_ink else INK


def measure_luminance(colour: str) -> float:
    """The relative luminance of an sRGB colour, from 0 to 1. Source: WCAG 2.2, relative luminance."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
