"""Falcon as first released: 40B with two norms and grouped queries, 7B with one norm and one KV head."""

from paramcount.architectures.falcon import NORMS, Falcon, FalconLayers, switch
from paramcount.declare import Data, sizes
from paramcount.errors import FieldName, ParamcountError


def four_times_d_model(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    n: int = 4 * c["d_model"]
    return n


def layout_of_40b(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Smaller models of the same publisher need the code of 7B; that of 40B always reshapes to heads of 64."""
    if js.get("n_head_kv") is None:
        raise ParamcountError("is missing", where="n_head_kv", expected="the number of KV heads, as in Falcon-40B")
    if not switch(js, "parallel_attn", True):
        raise ParamcountError("= false, but n_head_kv is set", where="parallel_attn", expected="true")
    if c["d_head"] != 64:
        raise ParamcountError(f"= {c['d_head']}", where=FieldName("d_head"), expected="64", sizes=(c["d_head"], 64))


def layout_of_7b(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The code of 7B ignores keys that only 40B has."""
    n = js.get("n_head_kv")
    if n is not None and n != c["n_kv_heads"]:
        expected = f"{c['n_kv_heads']}, or no such key; Falcon-40B has model_type RefinedWeb"
        raise sizes.make_value_error(n, "n_head_kv", expected)
    if switch(js, "new_decoder_architecture", False):
        raise ParamcountError("= true", where="new_decoder_architecture", expected="false, or no such key")


class RefinedWeb(FalconLayers):
    """Source: arXiv:2311.16867; configuration_RW.py and modelling_RW.py of tiiuae/falcon-40b."""

    reference = "RWForCausalLM of tiiuae/falcon-40b"
    model_types = ("RefinedWeb",)
    is_found_by_class = False  # RefinedWebModel refuses the keys of this one
    equivalent_classes = ("FalconForCausalLM",)
    base_model = "RWModel"
    linear_by_component = False
    conditions = (layout_of_40b,)
    defaults = {"vocab_size": 250880}

    d_model: sizes.Positive = sizes.hf("n_embed", "hidden_size", absent=64, null=sizes.ABSENT)
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer", absent=2)
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head", absent=8)
    n_kv_heads: sizes.Positive = sizes.hf("n_head_kv", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.derived(four_times_d_model)
    alibi: sizes.Flag = sizes.hf("alibi", absent=False, null=False)
    bias: sizes.Flag = sizes.hf("bias", absent=False, null=False)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=True)

    def layer(c, x: Data) -> Data:
        return c.two_norms(x)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_divides(c, "n_kv_heads", "n_heads")


class RefinedWebModel(Falcon):
    """Source: arXiv:2311.16867; configuration_RW.py and modelling_RW.py of tiiuae/falcon-7b."""

    reference = "RWForCausalLM of tiiuae/falcon-7b"
    model_types = ("RefinedWebModel",)
    equivalent_classes = ("FalconForCausalLM",)
    base_model = "RWModel"
    conditions = (*Falcon.conditions, layout_of_7b)
    defaults = {"vocab_size": 250880, "d_model": 64}

    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer", absent=2)
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head", absent=8)
    n_kv_heads: sizes.Positive = sizes.derived(lambda js, c: 1 if switch(js, "multi_query", False) else c["n_heads"])
    d_ff: sizes.Natural = sizes.derived(four_times_d_model)
    norms: sizes.Word = sizes.derived(lambda js, c: NORMS[switch(js, "parallel_attn", False)])
