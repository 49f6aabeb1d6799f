"""The modules of CogVLM2 and GLM-4V.

The authors' code is not run. Names, sizes and order are those of modeling_cogvlm.py and visual.py of
THUDM/cogvlm2-llama3-chat-19B, of modeling_chatglm.py of THUDM/glm-4v-9b and of glm4v.py of vLLM.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.oracle.remote import Gated, RMSNorm
from tests.oracle.remote_multimodal import GATED, name_modules, repeat


def make_eva(c: Any, d_conv: int, d_ff: int, d_out: int) -> nn.Module:
    d = c["hidden_size"]

    def make_block(i: int) -> nn.Module:
        attention = name_modules(query_key_value=nn.Linear(d, 3 * d), dense=nn.Linear(d, d))
        mlp = name_modules(fc1=nn.Linear(d, c["intermediate_size"]), fc2=nn.Linear(c["intermediate_size"], d))
        norms = {name: nn.LayerNorm(d) for name in ("input_layernorm", "post_attention_layernorm")}
        return name_modules(attention=attention, mlp=mlp, **norms)

    gated = name_modules(
        linear_proj=nn.Linear(d_conv, d_out, bias=False),
        norm1=nn.LayerNorm(d_out),
        dense_h_to_4h=nn.Linear(d_out, d_ff, bias=False),
        gate_proj=nn.Linear(d_out, d_ff, bias=False),
        dense_4h_to_h=nn.Linear(d_ff, d_out, bias=False),
    )
    patches = name_modules(
        proj=nn.Conv2d(c["in_channels"], d, c["patch_size"]),
        cls_embedding=torch.zeros(1, d),
        position_embedding=nn.Embedding(c["num_positions"], d),
    )
    return name_modules(
        patch_embedding=patches,
        transformer=name_modules(layers=repeat(c["num_hidden_layers"], make_block)),
        linear_proj=gated,
        conv=nn.Conv2d(d, d_conv, 2),
        boi=torch.zeros(1, 1, d_out),
        eoi=torch.zeros(1, 1, d_out),
    )


def make_cogvlm(c: Any) -> nn.Module:
    d, d_ff, d_head = c.hidden_size, c.intermediate_size, c.hidden_size // c.num_attention_heads
    width = d + 2 * c.num_multi_query_heads * d_head

    def make_block(i: int) -> nn.Module:
        rotary = nn.Module()
        rotary.register_buffer("inv_freq", torch.zeros(d_head // 2))
        matrices: dict[str, nn.Module] = {"rotary_emb": rotary}
        for kind in ("vision", "language"):
            matrices[f"{kind}_expert_query_key_value"] = nn.Linear(d, width, bias=kind == "vision")
            matrices[f"{kind}_expert_dense"] = nn.Linear(d, d, bias=False)
        mlp = name_modules(**{f"{kind}_mlp": Gated(d, d_ff, GATED, F.silu) for kind in ("language", "vision")})
        norms = {name: RMSNorm(d, c.rms_norm_eps) for name in ("input_layernorm", "post_attention_layernorm")}
        return name_modules(self_attn=name_modules(**matrices), mlp=mlp, **norms)

    model = name_modules(
        embed_tokens=nn.Embedding(c.vocab_size, d),
        layers=repeat(c.num_hidden_layers, make_block),
        norm=RMSNorm(d, c.rms_norm_eps),
        vision=make_eva(c.vision_config, c.vision_config["hidden_size"], d_ff, d),
    )
    return name_modules(model=model, lm_head=nn.Linear(d, c.vocab_size, bias=False))


def make_glm4v(c: Any) -> nn.Module:
    d, d_ff = c.hidden_size, c.ffn_hidden_size
    heads = c.num_attention_heads * c.kv_channels
    width = heads + 2 * c.multi_query_group_num * c.kv_channels

    def make_block(i: int) -> nn.Module:
        attention = name_modules(query_key_value=nn.Linear(d, width), dense=nn.Linear(heads, d, bias=False))
        mlp = {"dense_h_to_4h": nn.Linear(d, 2 * d_ff, bias=False), "dense_4h_to_h": nn.Linear(d_ff, d, bias=False)}
        norms = {name: RMSNorm(d, 1e-5) for name in ("input_layernorm", "post_attention_layernorm")}
        return name_modules(self_attention=attention, mlp=name_modules(**mlp), **norms)

    encoder = name_modules(layers=repeat(c.num_layers, make_block), final_layernorm=RMSNorm(d, 1e-5))
    transformer = name_modules(
        embedding=name_modules(word_embeddings=nn.Embedding(c.padded_vocab_size, d)),
        encoder=encoder,
        output_layer=nn.Linear(d, c.padded_vocab_size, bias=False),
        vision=make_eva(c.vision_config, d, d_ff, d),
    )
    return name_modules(transformer=transformer)
