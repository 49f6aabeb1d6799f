"""Cohere Compass: Command A's parallel layers, each kind with rotary angles of its own or none, and Qwen 3 VL's vision
encoder.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.cohere2 import Cohere2
from paramcount.architectures.qwen3_vl import Qwen3VL
from paramcount.declare import Data, ops, parts, sizes

SECTIONS = (24, 20, 20)


def known_pooling(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Cohere Compass has three ways to pool scores; without one, those of the last token count."""
    if (found := js.get("pooling") or "eos") not in ("bos", "eos", "mean"):
        raise sizes.make_value_error(found, "pooling", "bos, eos, mean or null")


def all_full(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    return tuple("full_attention" for _ in sizes.per_layer(c))


def find_blocks(js: Mapping[str, Any]) -> Any:
    """The older key counts, if both are there."""
    return js.get("rope_scaling") or js.get("rope_parameters")


def rotated_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The words of the layers that rotate: those to which rope_parameters, which has to name all, gives any."""
    blocks: Any = find_blocks(js)
    words = sorted(set(c["layer_types"]))
    for word in words:
        if not isinstance(blocks, Mapping) or not is_block(blocks.get(word, 0)):
            key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
            expected = "null or a JSON object with rope_theta for each entry of layer_types"
            raise sizes.make_value_error(blocks, key, expected)
    return tuple(word for word in words if blocks[word] is not None)


def is_block(value: object) -> bool:
    """Whether it describes rotary positions, in time, height and width."""
    if not isinstance(value, Mapping):
        return value is None
    return value.get("rope_theta") is not None and len(value.get("mrope_section", SECTIONS)) >= len(SECTIONS)


def read_ropes(config: Mapping[str, Any], c: Any) -> dict[str, tuple[ops.Rope, ops.Axes]]:
    """{kind of layer: its angles, and which pairs rotate with which position}."""
    found = {}
    for word in c.rotated_words:
        block = find_blocks(config)[word]
        axes = ops.Axes(tuple(block.get("mrope_section", SECTIONS)), "interleaved")
        found[word] = sizes.make_rope(block.get("rope_type", "default"), block["rope_theta"], block, config, 8192), axes
    return found


class CohereCompassText(Cohere2):
    """Source: CohereCompassDecoderLayer of the reference. In text, positions in time, height and width are equal."""

    reference = "CohereCompassForCausalLM"
    model_types = ("cohere_compass_text",)
    is_section_type = True
    task_head_prefix = "CohereCompassText"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(parts.task_heads.score_as_set, parts.LABELS, (known_pooling,))
    }
    base_model = "CohereCompassTextModel"

    layer_types: sizes.Words = sizes.hf(absent=all_full, null=sizes.ABSENT)
    rotated_words: sizes.Words = sizes.derived(rotated_words)

    ropes = sizes.setting(default=read_ropes)
    rope = None
    logit_scale = sizes.setting("logit_scale", default=1.0)
    pooling = sizes.setting(default=lambda js, c: js.get("pooling") or "eos")

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, kind = reads
        h = c.norm(x, "input_layernorm")
        window = c.window if kind == "sliding_attention" else None
        rotate = (lambda y: c.turn(y, kind, *places)) if kind in c.rotated_words else False
        a = c.self_attention(h, bias=c.attention_bias, window=window, prepare=c.prepare_by(rotate))
        return x + a + c.gated_mlp(h)

    def turn(c, x: Data, kind: str, *places: Data) -> Data:
        angles, axes = c.ropes[kind] if isinstance(c.ropes, dict) else (c.ropes, c.ropes)
        return ops.rope_at(x, places[0], angles, axes) if places else ops.rope(x, angles)


class CohereCompass(Qwen3VL):
    """Source: modeling_cohere_compass.py of the reference."""

    reference = "CohereCompassForConditionalGeneration"
    sections = sizes.Sections("cohere_compass_text", ignores_model_type=True)
