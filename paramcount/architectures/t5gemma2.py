"""T5Gemma 2: an encoder and a decoder of Gemma 3's layers with one token embedding; the encoder sees images too.

A layer of the decoder attends to its own text and to the encoder's output at once, through the same matrices.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.architectures.gemma2 import Gemma2Layers
from paramcount.architectures.gemma3 import project
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

FULL = "full_attention"
ENCODER, TABLE, DECODER = "model.encoder.", "embed_tokens.", "model.decoder."


def rope_blocks(js: sizes.ConfigJson, c: sizes.FieldValues) -> dict[str, Any]:
    """The blocks of the layers that exist; rope_scaling is added to that of full attention."""
    blocks, scaling, found = js.get("rope_parameters"), js.get("rope_scaling"), {}
    for word in sorted(set(c["layer_types"])):
        place = f"rope_parameters.{word}"
        found[place] = (blocks.get(word) if isinstance(blocks, Mapping) else None) or {"rope_type": "default"}
        if word == FULL and isinstance(scaling, Mapping):
            found["rope_scaling"] = {**found.pop(place), **scaling}
    return found


class T5Gemma2Layers(Gemma2Layers):
    """The sizes of a stack. The reference reads no cap of the attention scores."""

    conditions = (sizes.padding_in_table(0), sizes.known_ropes(rope_blocks))

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every_stated(6), null=sizes.ABSENT)

    logit_cap = sizes.setting("final_logit_softcapping", default=None)
    rope = sizes.filled_rotary(FULL, 1_000_000, 131072)
    local_rope = sizes.filled_rotary("sliding_attention", 10_000, 131072, key="rope_local_base_freq", scaled=False)

    def find_queries(c, x: Data, kind: str) -> Data:
        q = ops.linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), bias=c.attention_bias)
        return ops.rope(c.norm(q, "self_attn.q_norm"), c.rope if kind == FULL else c.local_rope)

    def find_keys(c, x: Data, kind: str | None = None) -> Data:
        """They rotate, unless they are those of another stack's output."""
        k = ops.linear(x, "self_attn.k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
        k = c.norm(k, "self_attn.k_norm")
        return k if kind is None else ops.rope(k, c.rope if kind == FULL else c.local_rope)

    def find_values(c, x: Data) -> Data:
        return ops.linear(x, "self_attn.v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=c.attention_bias)

    def mlp(c, x: Data, a: Data) -> Data:
        """The rest of a layer behind the attended values."""
        a = ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias)
        x = x + c.norm(a, "post_self_attn_layernorm")
        return x + c.norm(gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm")), "post_feedforward_layernorm")


class T5Gemma2Encoder(T5Gemma2Layers):
    """The encoder's sizes. A window of w tokens reaches w // 2 of them ahead and the others, itself included, back."""

    ignores_rope = True

    config_class = "T5Gemma2TextConfig"

    section = "encoder.text_config"
    tie_word_embeddings = sizes.constant(False)

    n_ahead: sizes.Natural = sizes.derived(lambda js, c: c["window"] // 2)
    n_behind: sizes.Natural = sizes.derived(lambda js, c: (c["window"] + 1) // 2 - 1)

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "pre_self_attn_layernorm")
        near = None if kind == FULL else ops.Window(c.n_behind + 1, c.n_ahead)
        q, k, v = c.find_queries(h, kind), c.find_keys(h, kind), c.find_values(h)
        return c.mlp(x, ops.attend(q, k, v, mask=near, scale=c.attention_scale))


class T5Gemma2Vision(parts.SiglipVision):
    config_class = "SiglipVisionConfig"
    section = "encoder.vision_config"


class T5Gemma2(T5Gemma2Layers):
    """Source: arXiv:2512.14856, section 2; modeling_t5gemma2.py of the reference."""

    reference = "T5Gemma2ForConditionalGeneration"
    ignores_rope = True
    reference_names = {
        "model.encoder.": "model.encoder.text_model.",
        "model.encoder.vision_tower.": "model.encoder.vision_tower.",
        "model.encoder.multi": "model.encoder.multi",
    }
    section = "decoder"

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True)
    n_image_tokens: sizes.Positive = sizes.hf("/encoder.mm_tokens_per_image", absent=256, null=256)
    encoder: T5Gemma2Encoder
    vision: T5Gemma2Vision

    image_token = sizes.setting("/image_token_index", "/image_token_id", default=256001)
    end_of_image = sizes.setting(
        "/eoi_token_index", default=lambda js, c: (js.get("encoder") or {}).get("eoi_token_index", 256000)
    )

    def forward(c, tokens: Data) -> Data:
        image = ops.block(c.vision.image(), ENCODER + "vision_tower.", c.vision.forward, part="vision")
        image = ops.block(image, ENCODER + "multi_modal_projector.", lambda x: project(c, x), part="projector")
        source = ops.given("source tokens", "source")
        memory = ops.block(source, ENCODER, c.encode, reads=(image,), part="encoder")
        shared = ENCODER + TABLE if c.tie_word_embeddings else None
        x = c.embed_in(tokens, DECODER + "embed_tokens.", shared, "embedding" if shared else "other_embedding")
        kinds = [(kind, 1) for kind in c.layer_types]
        x = ops.layers(x, DECODER + "layers.{layer}.", kinds, lambda kind, x, m: c.layer(x, m, kind), reads=(memory,))
        x = parts.head(c, c.norm(x, DECODER + "norm"), ENCODER + TABLE + "weight", "lm_head.out_proj")
        return ops.soft_cap(x, c.logit_cap) if ops.is_known(c.logit_cap) else x

    def encode(c, tokens: Data, image: Data) -> Data:
        e = c.encoder
        x = ops.insert(c.embed_in(tokens, TABLE, None, "embedding"), tokens, image, c.image_token)
        kinds = [(kind, 1) for kind in e.layer_types]
        x = ops.layers(x, "layers.{layer}.", kinds, lambda kind, x: e.layer(x, kind))
        return e.norm(x, "norm")

    def embed_in(c, tokens: Data, prefix: str, shared: str | None, component: str) -> Data:
        """Embedded tokens; the one that ends an image has a vector of its own. `shared`: the prefix of another stack's
        table, which is used instead."""
        name = "" if shared is None else shared
        tied = [name + key if shared else None for key in ("weight", "eoi_embedding")]
        x = enlarge(ops.lookup(tokens, prefix + "weight", component, c.vocab_size, c.d_model, tied_to=tied[0]))
        return ops.insert_learned(x, tokens, prefix + "eoi_embedding", c.end_of_image, tied[1])

    def layer(c, x: Data, memory: Data, kind: str) -> Data:
        h = c.norm(x, "pre_self_attn_layernorm")
        mask = ops.see_earlier(None if kind == FULL else c.window)
        k, v = ops.cache(c.find_keys(h, kind), mask), ops.cache(c.find_values(h), mask)  # [m, n_kv_heads, d_head]
        part, name = "cross_attention", DECODER + "layers.{layer}."
        far = ops.tie_weights(ops.block(memory, "", c.find_keys, part=part), name)
        seen = ops.tie_weights(ops.block(memory, "", c.find_values, part=part), name)
        far, seen = ops.cache(far), ops.cache(seen)  # [source, n_kv_heads, d_head]
        q = c.find_queries(h, kind)  # [n, n_heads, d_head]
        s = ops.hide(ops.scores(q, k, c.attention_scale), mask)  # [n_heads, n, m]
        weights = ops.softmax(ops.scores(q, far, c.attention_scale), s)  # [n_heads, n, source + m]
        a = ops.weighted_sum(weights, seen, v)  # [n, n_heads, d_head]
        return c.mlp(x, a)

    def check(c) -> None:
        super().check()
        for name in ("d_model", "vocab_size"):
            if getattr(c, name) != getattr(c.encoder, name):
                found, where = f"= {getattr(c, name)}", FieldName(name)
                raise ParamcountError(found, where=where, expected=f"{getattr(c.encoder, name)}, as in the encoder")
