"""MVP: BART that may put learned prompts in front of the keys and values of every decoder layer."""

from typing import Any

from paramcount.architectures.bart import Bart, BartDecoder
from paramcount.flow import Data, activate, block, given, layers, linear, lookup
from paramcount.parts.classic import Stack, crossing, decoder_stack, multi_head
from paramcount.parts.seq2seq import DECODER
from paramcount.sizes import Flag, Positive, hf


class Mvp(Bart):
    """Source: arXiv:2206.12131, section 3; the prompts: modeling_mvp.py of the reference."""

    reference = "MvpForConditionalGeneration"
    defaults = {"vocab_size": 50267}

    prompted: Flag = hf("use_prompt", absent=False)
    n_prompt: Positive = hf("prompt_length", absent=100)
    d_prompt: Positive = hf("prompt_mid_dim", absent=800)

    def decode(c, tokens: Data, memory: Data) -> Data:
        """With prompts in the decoder only: the reference builds none for the encoder."""
        if not c.prompted:
            return Bart.decode(c, tokens, memory)
        x, places = c.embed_target(tokens), given("prompt", "prompt")
        keys = prompt(c, places, DECODER + "self_attn_prompt.")
        sources = block(places, DECODER + "cross_attn_prompt.", lambda p: prompt(c, p, ""), part="cross_attention")
        kinds, reads = [("layer", c.n_decoder_layers)], (keys, memory, sources)

        def layer(kind: str, x: Data, *reads: Data) -> Data:
            return prompted_layer(c, decoder_stack(c), x, *reads)

        return layers(x, DECODER + "layers.{layer}.", kinds, layer, reads=reads)


class MvpDecoder(BartDecoder):
    """Alone it has no prompts. Source: arXiv:2206.12131, section 3."""

    reference = "MvpForCausalLM"
    defaults = {"vocab_size": 50267}


def prompt(c: Any, places: Data, prefix: str) -> Data:
    """Keys and values for all layers."""
    h = lookup(places, prefix + "prompt_embedding.weight", "other_embedding", c.n_prompt, c.d_model)
    h = activate(linear(h, prefix + "prompt_trans.0", "other", c.d_prompt, bias=True), "gelu")
    return linear(h, prefix + "prompt_trans.2", "other", c.n_decoder_layers * 2 * c.d_model, bias=True)


def prompted_layer(c: Mvp, s: Stack, x: Data, keys: Data, memory: Data, sources: Data) -> Data:
    """BART's, with its prompts in front of what is looked at."""

    def cross(x: Data, m: Data, p: Data) -> Data:
        return c.norm(x + multi_head(s, x, "encoder_attn.", memory=m, turn=in_front(p)), "encoder_attn_layer_norm")

    x = c.norm(x + multi_head(s, x, "self_attn.", turn=in_front(keys)), "self_attn_layer_norm")
    x = crossing(x, "", cross, memory, sources)
    return c.norm(x + c.feed_forward(s, x), "final_layer_norm")


def in_front(keys: Data) -> Any:
    """This layer's part of a prompt before keys and values."""

    def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
        return q, Data("prompt in front", (k, keys), k.shape), Data("prompt in front", (v, keys), v.shape)

    return turn
