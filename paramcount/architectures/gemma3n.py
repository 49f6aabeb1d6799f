"""Gemma 3n: per-layer token embeddings, AltUp, Laurel and shared KV caches.

Of four streams of hidden states a layer works on one and corrects all (AltUp); Laurel is a low-rank residual; the last
layers attend to the keys and values of an earlier layer.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, count_noun, describe_value


def sparse_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers whose MLP keeps only its largest gates."""
    shares = js.get("activation_sparsity_pattern")
    if shares is None:
        return tuple(range(10 if c["n_layers"] > 10 else 0))
    if len(shares) != c["n_layers"]:
        raise ParamcountError(
            f"has {count_noun(len(shares), 'entry')} for {count_noun(c['n_layers'], 'layer')}",
            where="activation_sparsity_pattern",
            expected="one entry per layer",
        )
    return tuple(i for i in sizes.per_layer(c) if shares[i] > 0)


def gate_sparsity(config: Mapping[str, Any], c: Any) -> float:
    """The share of gates that a layer with sparse gates sets to 0."""
    shares = config.get("activation_sparsity_pattern")
    found = {share for share in shares if share > 0} if shares is not None else {0.95}
    if len(found) > 1:
        raise ValueError("differs from layer to layer")
    return found.pop() if found else 0.0


def active_stream_exists(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    i, n = js.get("altup_active_idx", 0), c["n_streams"]
    if type(i) is not int or not -n <= i < n:
        raise ParamcountError(
            f"= {describe_value(i)}, but there are {n} streams", where="altup_active_idx", expected=f"{-n} to {n - 1}"
        )


def padding_in_both(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    sizes.padding_in_table(0)(js, {"vocab_size": min(c["vocab_size"], c["n_per_layer_rows"])})


class Gemma3nText(parts.AttentionDecoder):
    """Source: Gemma3nTextDecoderLayer of the reference, modeling_gemma3n.py; AltUp arXiv:2301.13310, Laurel
    arXiv:2411.07501."""

    reference = "Gemma3nForCausalLM"
    model_types = ("gemma3n_text",)
    gguf = "gemma3n"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    is_section_type = True
    linear_by_component = False
    base_model = "Gemma3nTextModel"
    rotated = "d_head"
    conditions = (padding_in_both, active_stream_exists)
    defaults = {"d_head": 256}

    d_ff: sizes.Natural | sizes.Widths = sizes.hf()  # type: ignore[assignment]  # one number or one per layer
    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every(5), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    kv_sharing_layers: sizes.Indices = sizes.derived(sizes.sharing_layers(15))
    sparse_layers: sizes.Indices = sizes.derived(sparse_layers)
    n_per_layer_rows: sizes.Positive = sizes.hf("vocab_size_per_layer_input")
    d_per_layer: sizes.Natural = sizes.hf("hidden_size_per_layer_input")
    n_streams: sizes.Positive = sizes.hf("altup_num_inputs")
    scaled_output: sizes.Flag = sizes.hf("altup_correct_scale")
    d_laurel: sizes.Positive = sizes.hf("laurel_rank")
    attention_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting("hidden_activation")
    rope = sizes.filled_rotary("full_attention", 1_000_000, 32768)
    local_rope = sizes.filled_rotary("sliding_attention", 10_000, 32768, key="rope_local_base_freq", scaled=False)
    attention_scale: ClassVar[float] = 1.0
    active_stream = sizes.setting("altup_active_idx", kind=sizes.INTEGER)  # from behind, if it is negative
    gate_sparsity = sizes.setting(default=gate_sparsity)
    logit_cap = sizes.setting("final_logit_softcapping")

    def forward(c, tokens: Data) -> Data:
        return c.read(tokens, enlarge(c.embed(tokens)))

    def read(c, tokens: Data, x: Data) -> Data:
        """Token ids and their vectors to logits."""
        own = parts.embed_per_layer(c, tokens, x, c.prefix, unknown_id=0)
        return c.head(c.transform(parts.make_streams(c, x, c.prefix + "altup_projections."), own))

    def kinds(c) -> parts.Kinds:
        shared, sparse = set(c.kv_sharing_layers), set(c.sparse_layers)
        found = []
        for i, word in enumerate(c.layer_types):
            d_ff = c.d_ff[i] if isinstance(c.d_ff, tuple) else None
            found.append(
                ((word, parts.SHARED if i in shared else parts.OWN, "sparse" if i in sparse else "all", d_ff), 1)
            )
        return found

    def carry(c) -> tuple[ops.Width, ...]:
        """Keys and values of the last full and of the last sliding layer that has some."""
        return ((c.n_kv_heads, c.d_head),) * 4 if c.kv_sharing_layers else ()

    def layer(c, x: Data, own: Data, *passed: Any) -> Any:
        *before, (word, whose, gates, d_ff) = passed
        predicted = parts.predict(c, x)
        active = ops.select_part(predicted, c.active_stream)
        h = c.norm(active, "input_layernorm")
        laurel = h + c.laurel(h)
        a, kv = c.attend(h, word, whose, tuple(before))
        y = active + c.norm(a, "post_attention_layernorm") + laurel
        y = ops.scale_by_root(y, 2, "times 1/√2", inverse=True)
        h = c.norm(y, "pre_feedforward_layernorm")
        h = c.mlp(h, c.d_ff if d_ff is None else d_ff, c.gate_sparsity if gates == "sparse" else 0.0)
        x = parts.correct(c, predicted, y + c.norm(h, "post_feedforward_layernorm"))
        active = ops.select_part(x, c.active_stream)
        h = parts.read_own_embedding(c, scale_output(c, active) if c.scaled_output else active, own)
        x = x + ops.to_later_streams(h, c.n_streams)
        return (x, *kv) if kv else x

    def laurel(c, x: Data) -> Data:
        """A learned residual of low rank. Source: arXiv:2411.07501."""
        h = ops.linear(x, "laurel.linear_left", "other", c.d_laurel)
        return c.norm(ops.linear(h, "laurel.linear_right", "other", c.d_model), "laurel.post_laurel_norm")

    def attend(c, x: Data, word: str, whose: str, kv: tuple[Data, ...]) -> tuple[Data, tuple[Data, ...]]:
        heads, is_full = parts.Heads(c.n_heads, c.n_kv_heads, c.d_head), word == "full_attention"
        angles, mask = (c.rope, ops.Causal()) if is_full else (c.local_rope, ops.see_earlier(c.window))
        return parts.sharing_attention(c, x, heads, (word, whose), kv, angles=angles, mask=mask)

    def mlp(c, x: Data, d_ff: ops.Size, sparsity: float | ops.Unknown) -> Data:
        gate = ops.activate(ops.linear(x, "mlp.gate_proj", "mlp.gate", d_ff), c.activation, sparsity=sparsity)
        return ops.linear(gate * ops.linear(x, "mlp.up_proj", "mlp.up", d_ff), "mlp.down_proj", "mlp.down", c.d_model)

    def last(c, x: Data) -> Data:
        return c.norm(parts.merge_streams(x, c.prefix + "altup_unembed_projections."), c.prefix + "norm")

    def head(c, x: Data) -> Data:
        return ops.soft_cap(super().head(x), c.logit_cap)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if c.scaled_output:
            return ()
        x = ops.given("hidden states", "tokens", c.d_model)
        scales = ops.layers(
            x, c.prefix + "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: scale_output(c, x)
        )
        return (ops.Unreachable(scales, "altup_correct_scale is false"),)

    def check(c) -> None:
        sizes.check_divides(c, "n_heads", "d_model")
        sizes.check_sliding_or_full(c)
        sizes.check_kv_sources(c)
        if isinstance(c.d_ff, tuple) and len(c.d_ff) != c.n_layers:
            found, widths = (
                f"has {len(c.d_ff)} entries for " + FieldName("n_layers") + f" = {c.n_layers}",
                (len(c.d_ff), c.n_layers),
            )
            raise ParamcountError(found, where=FieldName("d_ff"), expected="one size, or one per layer", sizes=widths)


Gemma3nTextOf = sizes.in_section(Gemma3nText, "gemma3n.Gemma3nForCausalLM")


class Gemma3n(Gemma3nText):
    """Gemma 3n with its vision and audio encoders. Either has a table of further tokens. The sound fills its tokens.

    Source: Gemma3nModel of the reference.
    """

    reference = "Gemma3nForConditionalGeneration"
    gguf = "gemma3n"
    base_model = "Gemma3nModel"
    prefix = "model.language_model."
    section = "text_config"

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True)
    vision: parts.MobileNetV5
    audio: parts.Gemma3nAudio

    image_token = sizes.setting("/image_token_id", default=262145)
    audio_token = sizes.setting("/audio_token_id", default=262273)

    def forward(c, tokens: Data) -> Data:
        image = ops.block(c.vision.image(), "model.vision_tower.timm_model.", c.vision.forward, part="vision")
        image = ops.scale_by_root(image, c.vision.d_model)
        sound = ops.block(c.audio.sound(), "model.audio_tower.", c.audio.forward, part="audio")
        image_tokens, image = c.to_language(c.vision, tokens, image, "model.embed_vision.")
        sound_tokens, sound = c.to_language(c.audio, tokens, sound, "model.embed_audio.")
        bounds = (c.vision.first_token, c.audio.first_token)
        x = ops.select_by_id(tokens, bounds, enlarge(c.embed(tokens)), image_tokens, sound_tokens)
        x = ops.insert(ops.insert(x, tokens, image, c.image_token), tokens, sound, c.audio_token)
        return c.read(tokens, x)

    def to_language(
        c, encoder: parts.MobileNetV5 | parts.Gemma3nAudio, tokens: Data, vectors: Data, prefix: str
    ) -> tuple[Data, Data]:
        """The vectors of the encoder's own tokens and those of its output, through one matrix."""
        matrix = prefix + "embedding_projection.weight"

        def embed(tokens: Data) -> Data:
            first = encoder.first_token
            x = ops.lookup_known(
                tokens,
                "embedding.weight",
                "other_embedding",
                encoder.vocab_size,
                encoder.d_model,
                offset=-first if isinstance(first, int) else first,
                unknown_id=0,
            )
            return project(ops.rms_norm(x, "hard_embedding_norm", encoder.norm_eps), None)

        def project(x: Data, tied_to: str | None) -> Data:
            x = ops.linear(x, "embedding_projection", "projector", c.d_model, tied_to=tied_to)
            return ops.plain_norm(x, "rms", encoder.norm_eps)

        own = ops.block(tokens, prefix, embed, part="projector")
        soft = ops.block(
            vectors,
            prefix,
            lambda x: project(ops.rms_norm(x, "soft_embedding_norm", encoder.norm_eps), matrix),
            part="projector",
        )
        return own, soft


def scale_output(c: Any, x: Data) -> Data:
    return ops.multiply_vector(x, "altup.correct_output_scale", "other", c.d_model)
