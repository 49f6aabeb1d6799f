"""MVP: BART that may put learned prompts in front of the keys and values of every layer."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.bart import LAYOUT, Bart, BartDecoder
from paramcount.flow import Data, Size, act, block, given, layers, linear, lookup
from paramcount.parts.classic import Stack, crossing, decoder_stack, encoder_stack, multi_head, norm_behind
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.seq2seq import biased_logits, seq2seq, source_tokens, target_tokens, usual_tables
from paramcount.sizes import Flag, Positive, hf


class Mvp(Bart):
    """Source: arXiv:2206.12131, section 3; the prompts: modeling_mvp.py of the reference."""

    reference: ClassVar[str] = "MvpForConditionalGeneration"
    defaults: ClassVar = {"vocab_size": 50267}

    prompted: Flag = hf("use_prompt", absent=False)
    n_prompt: Positive = hf("prompt_length", absent=100)
    d_prompt: Positive = hf("prompt_mid_dim", absent=800)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return prompted(c, tokens, head) if c.prompted else seq2seq(c, tokens, LAYOUT, head=head)


class MvpDecoder(BartDecoder):
    """Alone it has no prompts. Source: arXiv:2206.12131, section 3."""

    reference: ClassVar[str] = "MvpForCausalLM"
    defaults: ClassVar = {"vocab_size": 50267}


def prompted(c: Any, tokens: Data, head: bool) -> Data:
    tables = usual_tables(c)

    def encoder(tokens: Data, places: Data) -> Data:
        x = source_tokens(c, tokens, LAYOUT, tables)
        keys = prompt(c, places, "self_attn_prompt.", c.n_encoder_layers)
        kinds = [("layer", c.n_encoder_layers)]
        return layers(x, "layers.{layer}.", kinds, lambda kind, x, keys: layer(encoder_stack(c), x, keys, cached=False), reads=(keys,))

    places, source = given("prompt", "prompt"), given("source tokens", "source")
    memory = block(source, "model.encoder.", encoder, reads=(places,), part="encoder")
    x = target_tokens(c, tokens, LAYOUT, tables)
    keys = prompt(c, places, "model.decoder.self_attn_prompt.", c.n_decoder_layers)
    sources = block(places, "model.decoder.cross_attn_prompt.", lambda p: prompt(c, p, "", c.n_decoder_layers), part="cross_attention")
    kinds, reads = [("layer", c.n_decoder_layers)], (keys, memory, sources)
    x = layers(x, "model.decoder.layers.{layer}.", kinds, lambda kind, x, *reads: layer(decoder_stack(c), x, *reads), reads=reads)
    return biased_logits(x, tables) if head else x


def prompt(c: Any, places: Data, prefix: str, n_layers: Size) -> Data:
    """Keys and values for all layers."""
    h = lookup(places, prefix + "prompt_embedding.weight", "other_embedding", c.n_prompt, c.d_model)
    h = act(linear(h, prefix + "prompt_trans.0", "other", c.d_prompt, bias=True), "gelu")
    return linear(h, prefix + "prompt_trans.2", "other", n_layers * 2 * c.d_model, bias=True)


def layer(c: Stack, x: Data, keys: Data, memory: Data | None = None, sources: Data | None = None, *, cached: bool = True) -> Data:
    """BART's, with its prompt in front of what is looked at."""
    x = norm_behind(x, lambda h: multi_head(c, h, "self_attn.", cached=cached, turn=in_front(keys)), "self_attn_layer_norm")
    if memory is not None and sources is not None:
        x = crossing(x, "", lambda x, m, p: norm_behind(x, lambda h: cross(c, h, m, p), "encoder_attn_layer_norm"), memory, sources)
    return norm_behind(x, lambda h: plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, bias=True), "final_layer_norm")


def cross(c: Stack, x: Data, memory: Data, sources: Data) -> Data:
    return multi_head(c, x, "encoder_attn.", memory=memory, turn=in_front(sources))


def in_front(keys: Data) -> Any:
    """This layer's part of a prompt before keys and values."""

    def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
        return q, Data("prompt in front", (k, keys), k.shape), Data("prompt in front", (v, keys), v.shape)

    return turn
