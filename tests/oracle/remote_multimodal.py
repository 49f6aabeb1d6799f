"""Multimodal architectures that only their authors publish: their modules, and what the language models compute, in
plain PyTorch without a cache.

The authors' code is not run. Names, sizes and order are those of modeling_deepseekocr.py, modeling_deepseekocr2.py and
their deepencoder.py and deepencoderv2.py of deepseek-ai/DeepSeek-OCR and DeepSeek-OCR-2, and of modeling_molmo.py of
allenai/Molmo-7B-D-0924.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle.remote import Attention, Gated, RMSNorm

GATED = ("gate_proj", "up_proj", "down_proj")


def name_modules(**modules: Any) -> nn.Module:
    """A module that holds others, or tensors, under these names."""
    whole = nn.Module()
    for name, part in modules.items():
        if isinstance(part, nn.Module):
            whole.add_module(name, part)
        else:
            whole.register_parameter(name, nn.Parameter(part))
    return whole


def repeat(n: int, make: Any) -> nn.ModuleList:
    return nn.ModuleList(make(i) for i in range(n))


# ---- DeepSeek-OCR 1 and 2: modules


def make_sam(d_out: int) -> nn.Module:
    """Of 1024 pixels a side in patches of 16, at most 14 patches a side in a window."""

    def make_block(i: int) -> nn.Module:
        side = 64 if i in (2, 5, 8, 11) else 14
        tables = {f"rel_pos_{axis}": torch.zeros(2 * side - 1, 64) for axis in "hw"}
        attention = name_modules(**tables, qkv=nn.Linear(768, 3 * 768), proj=nn.Linear(768, 768))
        mlp = name_modules(lin1=nn.Linear(768, 3072), lin2=nn.Linear(3072, 768))
        return name_modules(norm1=nn.LayerNorm(768), attn=attention, norm2=nn.LayerNorm(768), mlp=mlp)

    narrow, again = nn.Conv2d(768, 256, 1, bias=False), nn.Conv2d(256, 256, 3, bias=False)
    return name_modules(
        pos_embed=torch.zeros(1, 64, 64, 768),
        patch_embed=name_modules(proj=nn.Conv2d(3, 768, 16)),
        blocks=repeat(12, make_block),
        neck=nn.Sequential(narrow, nn.LayerNorm(256), again, nn.LayerNorm(256)),
        net_2=nn.Conv2d(256, 512, 3, bias=False),
        net_3=nn.Conv2d(512, d_out, 3, bias=False),
    )


def make_clip() -> nn.Module:
    def make_block(i: int) -> nn.Module:
        attention = name_modules(qkv_proj=nn.Linear(1024, 3072), out_proj=nn.Linear(1024, 1024))
        mlp = name_modules(fc1=nn.Linear(1024, 4096), fc2=nn.Linear(4096, 1024))
        norms = {f"layer_norm{i}": nn.LayerNorm(1024) for i in (1, 2)}
        return name_modules(self_attn=attention, mlp=mlp, **norms)

    embeddings = name_modules(
        class_embedding=torch.zeros(1024),
        patch_embedding=nn.Conv2d(3, 1024, 14, bias=False),
        position_embedding=nn.Embedding(257, 1024),
    )
    transformer = name_modules(layers=repeat(24, make_block))
    return name_modules(embeddings=embeddings, transformer=transformer, pre_layrnorm=nn.LayerNorm(1024))


def make_query_encoder() -> nn.Module:
    """Qwen 2 of 0.5 billion parameters without its token embedding."""

    def make_block(i: int) -> nn.Module:
        q, k, v = (nn.Linear(896, width) for width in (896, 128, 128))
        attention = name_modules(q_proj=q, k_proj=k, v_proj=v, o_proj=nn.Linear(896, 896, bias=False))
        norms = {name: RMSNorm(896, 1e-6) for name in ("input_layernorm", "post_attention_layernorm")}
        return name_modules(self_attn=attention, mlp=Gated(896, 4864, GATED, F.silu), **norms)

    layers = name_modules(layers=repeat(24, make_block), norm=RMSNorm(896, 1e-6))
    queries = {"query_768": nn.Embedding(144, 896), "query_1024": nn.Embedding(256, 896)}
    return name_modules(model=name_modules(model=layers), **queries)


def make_ocr_language(c: Any) -> dict[str, nn.Module]:
    """The modules of DeepSeek's layers with plain attention."""
    d = c.hidden_size

    def make_block(i: int) -> nn.Module:
        norms = {name: RMSNorm(d, 1e-6) for name in ("input_layernorm", "post_attention_layernorm")}
        if i < c.first_k_dense_replace:
            mlp: nn.Module = Gated(d, c.intermediate_size, GATED, F.silu)
        else:
            mlp = name_modules(
                gate=nn.Linear(d, c.n_routed_experts, bias=False),
                experts=repeat(c.n_routed_experts, lambda i: Gated(d, c.moe_intermediate_size, GATED, F.silu)),
                shared_experts=Gated(d, c.n_shared_experts * c.moe_intermediate_size, GATED, F.silu),
            )
        return name_modules(self_attn=Attention(c, 10_000.0), mlp=mlp, **norms)

    layers = repeat(c.num_hidden_layers, make_block)
    return {"embed_tokens": nn.Embedding(c.vocab_size, d), "layers": layers, "norm": RMSNorm(d, 1e-6)}


def make_ocr(c: Any) -> nn.Module:
    seeing = {"sam_model": make_sam(1024), "vision_model": make_clip(), "projector": nn.Linear(2048, 1280)}
    return finish_ocr(c, seeing, ("image_newline", "view_seperator"))


def make_ocr2(c: Any) -> nn.Module:
    seeing = {"sam_model": make_sam(896), "qwen2_model": make_query_encoder(), "projector": nn.Linear(896, 1280)}
    return finish_ocr(c, seeing, ("view_seperator",))


def finish_ocr(c: Any, seeing: dict[str, nn.Module], separators: tuple[str, ...]) -> nn.Module:
    seeing["projector"] = name_modules(layers=seeing["projector"])
    marks = {name: torch.zeros(1280) for name in separators}
    model = name_modules(**make_ocr_language(c), **seeing, **marks)
    return name_modules(model=model, lm_head=nn.Linear(c.hidden_size, c.vocab_size, bias=False))


# ---- Molmo


class LayerNorm(nn.Module):
    """Without a bias."""

    def __init__(self, d: int, eps: float) -> None:
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, None, self.eps)


def make_molmo_norm(c: Any, d: int) -> nn.Module:
    return RMSNorm(d, c.layer_norm_eps) if c.layer_norm_type == "rms" else LayerNorm(d, c.layer_norm_eps)


class MolmoAttention(Attention):
    """Its queries, keys and values come out of one matrix, and are normed before they are cut into heads."""

    def __init__(self, c: Any) -> None:
        super().__init__(c, c.rope_theta)
        del self.q_proj, self.k_proj, self.v_proj, self.o_proj
        self.widths = (c.hidden_size, *(2 * (c.num_key_value_heads * self.d,)))
        self.att_proj = nn.Linear(c.hidden_size, sum(self.widths), bias=c.qkv_bias)
        self.attn_out = nn.Linear(c.hidden_size, c.hidden_size, bias=False)
        if c.attention_layer_norm:
            self.q_norm, self.k_norm = (make_molmo_norm(c, width) for width in self.widths[:2])

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = self.att_proj(x).split(self.widths, -1)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (lambda x: q), (lambda x: k), (lambda x: v), self.attn_out
        return super().forward(x)


class MolmoLayer(MolmoAttention):
    def __init__(self, c: Any) -> None:
        super().__init__(c)
        self.first = not c.norm_after
        self.attn_norm, self.ff_norm = make_molmo_norm(c, c.hidden_size), make_molmo_norm(c, c.hidden_size)
        self.ff_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.ff_out = nn.Linear(c.intermediate_size // 2, c.hidden_size, bias=False)

    def feed_forward(self, x: Tensor) -> Tensor:
        x, gate = self.ff_proj(x).chunk(2, -1)
        return self.ff_out(F.silu(gate) * x)

    def forward(self, x: Tensor) -> Tensor:
        for step, norm in ((self.attend, self.attn_norm), (self.feed_forward, self.ff_norm)):
            x = x + (step(norm(x)) if self.first else norm(step(x)))
        return x


def make_molmo_vision(c: Any) -> nn.Module:
    """CLIP of 336 pixels a side in patches of 14 without its last layer, and what joins squares of patches."""

    def make_attention(d_in: int) -> nn.Module:
        q, k, v, o = (nn.Linear(width, 1024) for width in (d_in, d_in, d_in, 1024))
        return name_modules(wq=q, wk=k, wv=v, wo=o)

    def make_block(i: int) -> nn.Module:
        mlp = name_modules(w1=nn.Linear(1024, 4096), w2=nn.Linear(4096, 1024))
        norms = {name: nn.LayerNorm(1024) for name in ("attention_norm", "ffn_norm")}
        return name_modules(attention=make_attention(1024), feed_forward=mlp, **norms)

    encoder = name_modules(
        class_embedding=torch.zeros(1024),
        positional_embedding=torch.zeros(577, 1024),
        patch_embedding=nn.Linear(14 * 14 * 3, 1024, bias=False),
        pre_ln=nn.LayerNorm(1024),
        transformer=name_modules(resblocks=repeat(23, make_block)),
    )
    width = c.intermediate_size // 2
    projector = {"w1": (1024, width), "w2": (width, c.hidden_size), "w3": (1024, width)}
    return name_modules(
        pad_embed=torch.zeros(2, 2048),
        image_vit=encoder,
        image_pooling_2d=make_attention(2048),
        image_projector=name_modules(**{name: nn.Linear(*sizes, bias=False) for name, sizes in projector.items()}),
    )


class Molmo(nn.Module):
    base_model_prefix = "model"

    def __init__(self, c: Any, *, sees: bool = True) -> None:
        super().__init__()
        rows, d = c.embedding_size or c.vocab_size, c.hidden_size
        tables = name_modules(embedding=torch.zeros(rows, d), new_embedding=torch.zeros(128, d))
        layers = repeat(c.num_hidden_layers, lambda i: MolmoLayer(c))
        head = nn.Linear(d, rows, bias=False)
        transformer = name_modules(wte=tables, ln_f=make_molmo_norm(c, d), blocks=layers, ff_out=head)
        self.model = name_modules(transformer=transformer)
        if sees:
            self.model.vision_backbone = make_molmo_vision(c)

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        parts: Any = self.model.transformer
        x = F.embedding(input_ids, torch.cat([parts.wte.embedding, parts.wte.new_embedding]))
        for layer in parts.blocks:
            x = layer(x)
        return {"logits": parts.ff_out(parts.ln_f(x))}
