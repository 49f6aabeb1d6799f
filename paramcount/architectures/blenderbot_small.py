"""Blenderbot 90M: BART's layout without its two rows of places that no text reaches."""

from paramcount.declare import Data, parts, sizes


class BlenderbotSmallStacks(parts.Stacks):
    layer = parts.seq2seq.post_norm_layer
    norms_embedding = True

    def embed(c, x: Data, tokens: Data, prefix: str) -> Data:
        """The decoder does not scale, and adds positions behind the norm; the encoder does so before it."""
        if not prefix:
            return parts.Stacks.embed(c, x, tokens, prefix)
        return c.norm(x, prefix + "layernorm_embedding") + c.positions(tokens, prefix)


class BlenderbotSmall(BlenderbotSmallStacks, parts.Seq2Seq):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotSmallModel."""

    reference = "BlenderbotSmallForConditionalGeneration"
    model_types = ("blenderbot-small",)
    conditions = (sizes.padding_inside(0),)


class BlenderbotSmallDecoder(BlenderbotSmallStacks, parts.TiedDecoder):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotSmallModel."""

    reference = "BlenderbotSmallForCausalLM"
    model_types = ("blenderbot-small.BlenderbotSmallForCausalLM",)
    conditions = (sizes.padding_inside(0),)
