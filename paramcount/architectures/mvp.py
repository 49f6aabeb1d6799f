"""MVP: BART that may put learned prompts in front of the keys and values of every decoder layer."""

from paramcount.architectures.bart import Bart, BartDecoder
from paramcount.declare import Data, ops, parts, sizes


class Mvp(Bart):
    """Source: arXiv:2206.12131, section 3; the prompts: modeling_mvp.py of the reference."""

    reference = "MvpForConditionalGeneration"
    task_heads = "BART"

    prompted: sizes.Flag = sizes.hf("use_prompt")
    n_prompt: sizes.Positive = sizes.hf("prompt_length")
    d_prompt: sizes.Positive = sizes.hf("prompt_mid_dim")

    def decode(c, tokens: Data, memory: Data) -> Data:
        """With prompts in the decoder only: the reference builds none for the encoder."""
        if not c.prompted:
            return Bart.decode(c, tokens, memory)
        keys = c.prompt(parts.DECODER + "self_attn_prompt.")
        sources = ops.block(
            tokens, parts.DECODER + "cross_attn_prompt.", lambda _: c.prompt(""), part="cross_attention"
        )
        kinds, reads = [("layer", c.n_decoder_layers)], (keys, memory, sources)
        return ops.layers(
            c.embed_target(tokens), parts.DECODER + "layers.{layer}.", kinds, c.prompted_layer, reads=reads
        )

    def prompt(c, prefix: str) -> Data:
        """Keys and values for all layers, [n_prompt, layers · 2 · d_model]."""
        h = ops.learned_rows(prefix + "prompt_embedding.weight", "other_embedding", c.n_prompt, c.d_model)
        h = ops.activate(ops.linear(h, prefix + "prompt_trans.0", "other", c.d_prompt, bias=True), "gelu")
        return ops.linear(h, prefix + "prompt_trans.2", "other", c.n_decoder_layers * 2 * c.d_model, bias=True)

    def prompted_layer(c, kind: str, x: Data, keys: Data, memory: Data, sources: Data) -> Data:
        """BART's, with its prompts in front of what is looked at."""
        s = parts.decoder_stack(c)

        def attend_behind(prompt: Data, mask: ops.Mask | None = None) -> parts.Mix:
            """Attention also to the keys and values of a prompt, which no cache holds."""
            both = ops.select_part(ops.reshape(prompt, c.n_decoder_layers, 2, s.n_heads, s.d_head), "layer")
            far, seen = ops.select_part(both, 0), ops.select_part(both, 1)  # [n_prompt, n_heads, d_head]

            def mix(q: Data, k: Data, v: Data) -> Data:
                k, v = ops.put_in_front(far, ops.cache(k)), ops.put_in_front(seen, ops.cache(v))
                return ops.attend(q, k, v, mask=mask)

            return mix

        def cross(x: Data, m: Data, p: Data) -> Data:
            y = parts.multi_head(s, x, "encoder_attn.", memory=m, mix=attend_behind(p))
            return c.norm(x + y, "encoder_attn_layer_norm")

        y = parts.multi_head(s, x, "self_attn.", mix=attend_behind(keys, ops.Causal()))
        x = c.norm(x + y, "self_attn_layer_norm")
        x = parts.crossing(x, "", cross, memory, sources)
        return c.norm(x + c.feed_forward(s, x), "final_layer_norm")


class MvpDecoder(BartDecoder):
    """Alone it has no prompts. Source: arXiv:2206.12131, section 3."""

    reference = "MvpForCausalLM"
    model_types = ("mvp.MvpForCausalLM",)
