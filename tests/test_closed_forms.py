"""What the reference implementation does not say of the zoo's entries is derived a second time."""

from __future__ import annotations

from typing import Any

import paramcount
import paramcount.zoo as zoo
from tests.batches import in_batches
from tests.comparison import load_reference
from tests.structures import ROWS, ZOO, pick_structures
from tests.test_remote_models import MODELS

# Compared name by name with a transcription of their authors' code (tests/oracle/test_drafts.py, test_logits.py,
# test_remote_code.py, test_remote_mixers.py, test_llava_released.py), and three with loaded checkpoints
# (tests/test_recurrent_models.py).
TRANSCRIBED = {
    "blip_bert", "delta_net", "eagle", "eagle3", "gated_deltanet", "gla", "gsa", "hgrn2", "hymba", "llava_llama",
    "rwkv5", "rwkv6.Rwkv6ForCausalLM", "rwkv7", "samba", "stripedhyena", "transformer",
}  # fmt: skip
# Of ERNIE's two kinds of experts, a text uses 6 of the 64 of its own; JetMoE and Nomic count a bias or a router with
# the experts; NLLB and Switch Transformers have no key for how many experts a token uses.
OTHER_SHARES = {"ernie4_5_vl_moe", "hf_nomic_bert", "jetmoe", "nllb-moe", "switch_transformers"}
MIXTURES = [id for id in ZOO if ROWS[id]["experts"] != "0" and ROWS[id]["architecture"] not in OTHER_SHARES]


def test_every_entry_has_a_closed_form_or_another_independent_total() -> None:
    """As the reference builds it, as a release of this architecture with remote code, or as written down below."""
    derived = {paramcount.load(model["config"]).architecture for model in MODELS.values()} | TRANSCRIBED
    assert [id for id in ZOO if id not in load_reference() and ROWS[id]["architecture"] not in derived] == [
        "minimax-text-01"
    ]


def test_minimax_text_01_has_the_total_of_its_paper() -> None:
    """arXiv:2501.08313, section 2: experts, and softmax attention or lightning attention, which has as many KV heads as
    query heads, an output gate and a norm over all heads.
    """
    c: Any = zoo.load_entry("minimax-text-01").sizes
    d, inner, n_softmax = c.d_model, c.n_heads * c.d_head, c.layer_types.count("full_attention")
    softmax = 2 * d * inner + 2 * d * c.n_kv_heads * c.d_head
    lightning = 5 * d * inner + inner
    experts = d * c.n_routed_experts + c.n_routed_experts * 3 * d * c.d_expert
    layers = n_softmax * softmax + (c.n_layers - n_softmax) * lightning + c.n_layers * (experts + 2 * d)
    count = paramcount.count("minimax-text-01")
    assert (c.shared_mlp, count.total) == (False, 2 * c.vocab_size * d + layers + d)


@in_batches("id", pick_structures(MIXTURES), size=80)
def test_a_token_uses_as_many_experts_as_the_config_says(id: str) -> None:
    """arXiv:2401.04088, section 2.1: K of n experts."""
    count = paramcount.count(id)
    language: Any = getattr(count.sizes, "language", count.sizes)
    every, active = count.components["experts"], count.active_components["experts"]
    assert active * language.n_routed_experts == every * language.n_active_experts
