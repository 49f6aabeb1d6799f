"""GPT-2 and GPT-3: learned positions, fused QKV stored [in, out], biases everywhere, tied head."""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, layer_norm, layers, lookup
from paramcount.parts.attentions import causal_masks, gpt_attention, gpt_attention_scale
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gpt_mlp
from paramcount.sizes import ABSENT, Buffers, ConfigJson, FieldValues, Flag, Positive, Sizes, derived, hf, setting
from paramcount.sizes.derivations import d_model_per_head
from paramcount.sizes.rules import check_heads_fill


def self_attention_only(js: ConfigJson, c: FieldValues) -> None:
    if js.get("add_cross_attention"):
        raise ParamcountError("= true is not supported", where="add_cross_attention", expected="false")


class GPT2(Sizes):
    """Source: Radford et al. 2019, section 2.3; for GPT-3 arXiv:2005.14165, section 2.1."""

    reference = "GPT2LMHeadModel"
    conditions = (self_attention_only,)
    # Source: karpathy/nanoGPT, model.py, `from_pretrained`; ml-explore/mlx-lm, models/gpt2.py, `sanitize`.
    transposable = (".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight")

    vocab_size: Positive = hf(absent=50257)
    n_positions: Positive = hf("max_position_embeddings", "n_positions", absent=1024)
    d_model: Positive = hf("hidden_size", "n_embd", absent=768)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=12)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf(absent=True)

    activation = setting("activation_function", default="gelu_new")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    attention_scale = setting(default=gpt_attention_scale)
    check = check_heads_fill

    def forward(c, tokens: Data) -> Data:
        x = lookup(tokens, "wte.weight", "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, "wpe.weight", "position", c.n_positions, c.d_model, index="positions")
        x = layers(x, "h.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return head(c, layer_norm(x, "ln_f", c.norm_eps), "wte.weight")

    def layer(c, x: Data) -> Data:
        x = x + gpt_attention(c, layer_norm(x, "ln_1", c.norm_eps))
        return x + gpt_mlp(c, layer_norm(x, "ln_2", c.norm_eps))

    def legacy_buffers(c) -> Buffers:
        return causal_masks(c)
