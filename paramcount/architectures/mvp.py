"""MVP: BART that may put learned prompts in front of the keys and values of every decoder layer."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.bart import LAYOUT, Bart, BartDecoder
from paramcount.flow import Data, activate, block, given, layers, linear, lookup
from paramcount.parts.classic import Stack, crossing, decoder_stack, multi_head, norm_behind
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.seq2seq import biased_logits, encoder_output, seq2seq, target_tokens, usual_tables
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
    """Prompts in the decoder only: the reference builds none for the encoder."""
    tables = usual_tables(c)
    places, memory = given("prompt", "prompt"), encoder_output(c, LAYOUT, tables)
    x = target_tokens(c, tokens, LAYOUT, tables)
    keys = prompt(c, places, "model.decoder.self_attn_prompt.")
    sources = block(places, "model.decoder.cross_attn_prompt.", lambda p: prompt(c, p, ""), part="cross_attention")
    kinds, reads = [("layer", c.n_decoder_layers)], (keys, memory, sources)
    x = layers(
        x,
        "model.decoder.layers.{layer}.",
        kinds,
        lambda kind, x, *reads: layer(decoder_stack(c), x, *reads),
        reads=reads,
    )
    return biased_logits(x, tables) if head else x


def prompt(c: Any, places: Data, prefix: str) -> Data:
    """Keys and values for all layers."""
    h = lookup(places, prefix + "prompt_embedding.weight", "other_embedding", c.n_prompt, c.d_model)
    h = activate(linear(h, prefix + "prompt_trans.0", "other", c.d_prompt, bias=True), "gelu")
    return linear(h, prefix + "prompt_trans.2", "other", c.n_decoder_layers * 2 * c.d_model, bias=True)


def layer(c: Stack, x: Data, keys: Data, memory: Data, sources: Data) -> Data:
    """BART's, with its prompts in front of what is looked at."""
    x = norm_behind(x, lambda h: multi_head(c, h, "self_attn.", turn=in_front(keys)), "self_attn_layer_norm")
    x = crossing(
        x, "", lambda x, m, p: norm_behind(x, lambda h: cross(c, h, m, p), "encoder_attn_layer_norm"), memory, sources
    )
    return norm_behind(x, lambda h: plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, bias=True), "final_layer_norm")


def cross(c: Stack, x: Data, memory: Data, sources: Data) -> Data:
    return multi_head(c, x, "encoder_attn.", memory=memory, turn=in_front(sources))


def in_front(keys: Data) -> Any:
    """This layer's part of a prompt before keys and values."""

    def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
        return q, Data("prompt in front", (k, keys), k.shape), Data("prompt in front", (v, keys), v.shape)

    return turn
