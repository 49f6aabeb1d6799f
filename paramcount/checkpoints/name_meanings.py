"""The component that the name of a tensor means, for checkpoints without a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from paramcount.checkpoints.folding import Indices, split_name

MOST_WORDS = 24  # of a name that are examined
LAST_WORDS = 3  # layer_norm1.0.weight
CACHE_SIZE = 1 << 14  # names

MTP_LAYER = "MTP layer"
MTP_MARKS = {"eh_proj", "enorm", "hnorm"}  # a layer with one of these tensors is an MTP layer
MTP_PLACES = {"mtp", "mtp_layers", "nextn"}  # modules that contain MTP layers
MASK_AXES = 4  # axes of a causal mask, which has the name of a bias

# (meaning, phrases): a phrase is one or more words between dots, anywhere in a name; ^ is the start of the name and #
# an index. A phrase of one word may begin or end in *; it only applies to the last words, which are the module and the
# tensor. The first row with a matching phrase decides. The last rows of each meaning have GGUF's names.
MEANINGS: tuple[tuple[str, str], ...] = (
    # Never learned.
    ("router", "experts.e_score_correction_bias moe_statics"),
    ("buffer", "e_score_correction_bias expert_bias gate.bias tid2eid moe.router_bias mlp.router_bias"),
    ("legacy_buffer", "self.rotary_embeddings.inv_freq"),
    ("buffer", "balancing_biases final_logits_bias layer_scalar act_fn.beta"),
    ("buffer", "act_fn.eps"),
    ("buffer", "self_attn.diagonal_decay self_attn.key_decay self_attn.query_decay"),
    ("buffer", "self_attn.slope_rate num_batches_tracked global_mean global_invstd"),
    ("buffer", "input_min input_max output_min output_max std_bias std_scale rotary_embeddings.inv_freq"),
    ("buffer", "exp_probs_b rope_freqs rope_factors_long rope_factors_short layer_output_scale"),
    ("buffer", "act_scaling_factor fc_scaling_factor weight_scaling_factor weight_integer bias_integer x_min x_max"),
    ("buffer", "LayerNorm.shift rotary_emb.alpha visual_temporal_embed.pos_idx_to_embed"),
    ("buffer", "self.relative_position_index running_mean running_var summary_idxs"),
    ("buffer", "codebook.embed_sum codebook.cluster_usage codebook.initialized"),
    ("buffer", "codebook.embed codebook.embed_avg codebook.cluster_size codebook.inited"),
    (
        "buffer",
        "ple_embedding.layer_multipliers ple_embedding.ngram_heads_offsets ple_embedding.ngram_heads_vocab_sizes",
    ),
    ("legacy_buffer", "inv_freq attn.bias attn.masked_bias attention.bias"),
    ("legacy_buffer", "attention.masked_bias causal_mask position_ids token_type_ids"),
    ("legacy_buffer", "attn_rot_embd"),
    # Encoders, and the projectors between them and the language model, which may be inside an encoder.
    ("vision", "img_processor.vision_model vision_model.vit_downsampler1 vision_model.vit_downsampler2"),
    ("projector", "embed_vision embed_audio image_to_text_projection qformer language_projection ^.query_tokens"),
    ("projector", "mlp_AR visual.downsample visual.merger_list vision_model.merger visual_embeddings_table"),
    ("projector", "model.vision_adapter ^.merger model.merger audio_tower.proj audio_tower.proj1 audio_tower.proj2"),
    ("projector", "model.visual.proj_in model.visual.proj_out layerwise_projectors spatial_projectors"),
    ("projector", "multi_modal_projector mm_projector visual.merger"),
    ("projector", "deepstack_merger_list visual_projection vision_embed_tokens"),
    ("projector", "projector vision_projector vision_projection connector aligner mlp1"),
    ("projector", "patch_merge_mlp img_projection_up img_projection_down"),
    ("projector", "sub_img_feature_extensor global_img_feature_extensor resampler"),
    ("projector", "vit_downsampler vit_downsampler2 vit_large_projector sequence_compressor_resampler"),
    ("projector", "vision_encoder.adapter audio_adapter sound_projection"),
    ("projector", "^.image_newline ^.view_seperator ^.model.image_newline ^.model.view_seperator"),
    ("projector", "resampler_model perceiver_resampler vit.perceive generation_aligner generation_embeddings"),
    ("projector", "vision_backbone.image_pooling_2d vision_backbone.image_projector"),
    ("projector", "up_proj_for_speech down_proj_for_speech up_proj_for_vision_speech down_proj_for_vision_speech ^.mm"),
    ("vision", "vision_model vision_tower vision_encoder visual image_encoder"),
    ("vision", "image_tower image_embed video_tower high_res_vision_model"),
    ("vision", "^.vision ^.vpm ^.vit vision_backbone vision_embedder vqmodel generation_head sam_model qwen2_model"),
    ("vision", "model.encoder.patch_embed model.encoder.pos_embed model.encoder.neck model.encoder.layers.#.attn"),
    ("vision", "model.encoder.layers.#.layer_norm1 model.encoder.layers.#.layer_norm2"),
    ("vision", "model.encoder.layers.#.mlp.lin1 model.encoder.layers.#.mlp.lin2"),
    ("vision", "high_res_vision_proj high_res_vision_neck high_res_vision_alpha model.patch_embeddings"),
    ("vision", "^.blocks ^.patch_embed ^.pos_embed ^.encoder.layernorm"),
    ("vision", "^.encoder.encoder.layer.#.mlp ^.encoder.encoder.layer.#.attention.query"),
    ("vision", "^.encoder.encoder.layer.#.attention.key ^.encoder.encoder.layer.#.attention.value"),
    ("vision", "^.encoder.encoder.layer.#.attention.output.weight ^.encoder.encoder.layer.#.pre_attention_layer_norm"),
    ("vision", "^.encoder.encoder.layer.#.pre_mlp_layer_norm ^.encoder.encoder.layer.#.attention.attention"),
    ("vision", "^.encoder.encoder.layer.#.layernorm_before ^.encoder.encoder.layer.#.layernorm_after"),
    ("vision", "^.encoder.embeddings.cls_token ^.encoder.embeddings.distillation_token"),
    ("vision", "^.encoder.embeddings.patch_embeddings ^.encoder.embeddings.mask_token ^.encoder.embeddings.norm"),
    ("vision", "^.encoder.encoder.layer.#.lambda_1 ^.encoder.encoder.layer.#.lambda_2"),
    ("vision", "^.encoder.encoder.layers.#.blocks ^.encoder.encoder.layers.#.downsample"),
    ("vision", "^.encoder.encoder.relative_position_bias ^.encoder.pooler.layernorm"),
    ("vision", "embeddings.patch_projection embeddings.row_embedder embeddings.column_embedder"),
    ("vision", "^.v.blk ^.v.patch_embd ^.v.position_embd ^.v.class_embd ^.v.pre_ln ^.v.post_ln"),
    (
        "audio",
        "model.audio audio_tower audio_encoder audio_embed acoustic_tokenizer_encoder semantic_tokenizer_encoder",
    ),
    ("audio", "^.talker ^.token2wav ^.code2wav ^.codec_model sound_encoder"),
    ("audio", "^.encoder.input_linear ^.encoder.out ^.encoder.out_mid ^.encoder.layers.#.attn"),
    ("audio", "^.encoder.layers.#.conv ^.encoder.layers.#.ff1 ^.encoder.layers.#.ff2 ^.encoder.layers.#.post_norm"),
    ("audio", "^.a.blk ^.a.conv1d ^.a.position_embd ^.a.pre_ln ^.a.post_ln"),
    # Modules inside other modules, or with their names.
    ("other", "gate_attention gate_ffw"),
    ("other", "mlp.global_scale ple.key_proj ple.value_proj"),
    ("other", "enc_to_dec_proj audio_enc_to_dec_proj"),
    ("other", "action_in_proj action_out_proj action_time_mlp_in action_time_mlp_out state_proj"),
    ("other", "W_down W_up qk_norm.temp patcher.lm_head lm_head.dense predictions.dense"),
    ("other", "transform.dense generator_predictions.dense vocab_transform pooler seq_relationship"),
    ("mlp", "ada_rms_norm"),
    ("norm", "*norm *LayerNorm *norm1 *norm2 *_norm_1 *_norm_2 norm_* layernorm_*"),
    ("norm", "layer_norm_emb ln ln_* ln1 ln2 pre_ln q_l2_clip rel_l2_clip"),
    ("norm", "*_norm_exps *_ln"),
    ("norm", "*layernorm_1 *layernorm_2 *norm_after"),
    ("other", "indexer altup laurel altup_projections altup_unembed_projections attn_res hc_* eh_proj"),
    ("other", "altup_* laurel_* nextn.eh_proj"),
    ("other", "hyper_connection_mixer attn_hyper_connection mlp_hyper_connection softmax_scaling"),
    ("other", "index_q_proj index_k_proj entity_embedding_dense entity_predictions alpha_cross_attn alpha_dense"),
    ("other", "bottleneck fc1_latent_proj fc2_latent_proj project_in project_out embeddings.projection"),
    ("other", "embeddings.embedding_transformation embed_tokens.embedding_projection unembedding_projection"),
    ("other", "^.head.dense ^.head.linear1 ^.head.linear2 projection_head lambdas exclusive_self_attention"),
    # Embeddings and the head.
    ("position", "embed_positions position_embeddings positions_embed wpe"),
    ("position", "relative_attention_bias global_relative_attention_bias relative_pos_embeddings rel_logits_proj"),
    ("position", "distance_embedding position_embd attn_rel_b cross_attn_rel_b rel_embeddings *_position_embeddings"),
    (
        "other_embedding",
        "token_type_embeddings token_type_embeddings_* entity_embeddings embed_tokens_per_layer segment_embedding",
    ),
    ("other_embedding", "protein_encoder.model.embeddings.word_embeddings"),
    ("other_embedding", "ngram_embeddings ngram_embedding pronunciation_embed shape_embed mask_emb"),
    ("other_embedding", "seg_embed patcher.embed_tokens encoder_hash_tok_embedding"),
    ("other_embedding", "task_type_embeddings segment_emb embed_global value_embeddings eoi_embedding"),
    ("other_embedding", "perceiver.embeddings.latents"),
    ("other_embedding", "token_types per_layer_token_embd"),
    ("embedding", "embed_tokens word_embeddings tok_embeddings embed_in wte"),
    ("embedding", "tokens_embed word_embedding input_embedding ^.shared model.shared language_model.shared led.shared"),
    ("embedding", "backbone.embeddings rwkv.embeddings transformer.embeddings transformer.w llm.embed"),
    ("embedding", "input_preprocessor.embeddings text_encoder.shared"),
    ("embedding", "token_embd"),
    ("lm_head", "lm_head embed_out generator_lm_head vocab_projector lm_loss unembed pred_layer"),
    ("lm_head", "shared_head.head shared_head.output output_layer ^.head ^.proj_out ^.output_projection"),
    ("lm_head", "predictions.decoder cls.predictions.bias ^.predictions.bias ^.decoder.weight"),
    ("lm_head", "^.decoder.bias ^.output.weight ^.output.bias language_model.output"),
    ("lm_head", "decoder.output_projection lm_heads embedding_decoder ^.cls.weight"),
    ("lm_head", "shared_head_head"),
    # Mixers, some of whose names belong to attention elsewhere.
    ("output_projection", "post_attention.conv1d encoder.layers.#.mixer.out_proj"),
    ("mlp", "intermediate.conv1d output.conv1d"),
    ("mixer", "linear_attn mamba mlstm_layer rg_lru A_log dt_bias mixer.in_proj"),
    ("mixer", "mixer.out_proj mixer.x_proj mixer.dt_proj mixer.D blocks.#.attention"),
    ("mixer", "conv.conv conv.in_proj conv.out_proj *conv1d *sconv conv_1d"),
    ("mixer", "encoder.conv1 encoder.conv2 conv_qk_depthwise conv_qk_grouped"),
    ("mixer", "temporal_block.linear_x temporal_block.linear_y temporal_block.linear_out self_attn.output_gate"),
    ("mixer", "self_attn.b_proj self_attn.f_a_proj self_attn.f_b_proj"),
    ("mixer", "self_attn.g_a_proj self_attn.g_b_proj attention.b_proj"),
    ("mixer", "attention.f_proj"),
    ("mixer", "self.conv conv_out_layer key_conv_attn_layer conv_kernel_layer"),
    ("mixer", "feature_projection conv_module self_attn_conv residual_conv"),
    ("mixer", "ssm_* shortconv"),
    # Experts before the MLP that contains them.
    ("router", "shared_expert_gate router router_mlp text_moe.gate vision_moe.gate mlp.gate block_sparse_moe.gate"),
    ("router", "feed_forward.gate ffn.gate mixer.gate moe_block.gate moe.gate"),
    ("router", "ffn_gate_inp ffn_gate_inp_shexp"),
    ("shared_experts", "share_expert shared_expert shared_experts shared_mlp"),
    ("shared_experts", "*_shexp"),
    ("output_projection", "self_attention.experts.output_linear self_attention.experts.bias"),
    ("qkv", "self_attention.query_key self_attention.key self_attention.value"),
    ("qkv", "self_attention.experts.input_linear adapter.query key_protein value_protein"),
    ("experts", "experts block_sparse_moe.input_linear"),
    ("experts", "block_sparse_moe.output_linear mlp.input_linear"),
    ("experts", "mlp.output_linear mlp.bias"),
    ("experts", "moe.gate_proj moe.up_proj moe.down_proj"),
    ("experts", "*_exps *_chexps"),
    # Attention and MLP.
    ("other", "sinks attention_sink_bias learnable_sink_param softmax_offset"),
    ("other", "attn_sink attn_sink_proj self_attn.A self_attn.dt_proj"),
    ("other", "lambda_q1 lambda_k1 lambda_q2 lambda_k2 cross_attn_attn_gate"),
    ("other", "cross_attn_mlp_gate act_fn.alpha_n act_fn.alpha_p"),
    ("other", "post_attention_residual_gate post_feedforward_residual_gate pre_expert_proj post_expert_proj"),
    ("other", "attn_sinks"),
    ("output_projection", "o_proj out_proj out_lin attn.c_proj attn.Wo attention.wo wo_a wo_b wo_ud"),
    ("output_projection", "self_attn.linear_out attention_out rel_attn.o SelfAttention.o EncDecAttention.o post_proj"),
    ("output_projection", "attention.dense self_attention.dense self_attn.dense"),
    ("output_projection", "multi_head_attention.dense attention.output self_attn.output"),
    ("output_projection", "LocalSelfAttention.o TransientGlobalSelfAttention.o"),
    ("output_projection", "attention.dense_bias crossattention.output"),
    ("output_projection", "attn_output attn_o cross_attn_o attn_out attn.o to_out"),
    ("qkv", "q_head k_head v_head r_kernel r_w_bias r_r_bias r_s_bias"),
    ("qkv", "q_proj k_proj v_proj qkv_proj query_proj key_proj value_proj kv_proj gqkv_proj"),
    ("qkv", "linear_q linear_k linear_v linear_pos pos_bias_u pos_bias_v"),
    ("qkv", "r_proj q_lin k_lin v_lin query_key_value c_attn Wqkv wqkv W_pack"),
    ("qkv", "q_a_proj q_b_proj kv_a_proj_with_mqa kv_b_proj project_q project_k"),
    ("qkv", "project_v self.query self.key self.value attention.query attention.key"),
    ("qkv", "attention.value Wq Wk Wv wq wk wv wq_a wq_b wkv wk_dv wq_du wr_du wv_dv"),
    ("qkv", "self_attn.gate_proj self_attn.g_proj attention.g_proj self_attn.linear_gate"),
    ("qkv", "self_attention.query self_attention.key_value e2e_query e2w_query w2e_query att_proj"),
    ("qkv", "gate_attn gate_bias compressor rel_attn SelfAttention"),
    ("qkv", "EncDecAttention LocalSelfAttention TransientGlobalSelfAttention"),
    ("qkv", "self.in_proj self.q_bias self.v_bias pos_proj pos_q_proj attn.q attn.k attn.v to_q to_k to_v"),
    ("qkv", "query_global key_global value_global longformer_self_attn output_projection.gate_proj"),
    ("qkv", "attn_q attn_k attn_v attn_qkv attn_q_a attn_q_b attn_kv_a_mqa attn_kv_b"),
    ("qkv", "attn_k_b attn_v_b attn_gate cross_attn_q cross_attn_k cross_attn_v"),
    ("mlp", "ffn1 ffn2 intermediate_ffn mlp mlps residual_mlp feed_forward ffn ffn_output ffns ff"),
    ("mlp", "DenseReluDense intermediate fc1 fc2 lin1 lin2 mlp_block"),
    ("mlp", "block_sparse_moe"),
    ("mlp", "adapter_modules w_in w_out up_proj down_proj gate_proj output.dense"),
    ("mlp", "ffn_gate ffn_up ffn_down channel_mix_*"),
    ("mixer", "time_mix_*"),
    ("other", "embeddings_project map_inputs_layer embedding_hidden_mapping_in"),
    ("other", "input_residual post_attention_residual patch_embedding_projection"),
    ("other", "input_hidden_states_bias input_hidden_states_scale z_L_init"),
    ("other", "per_layer_model_projection per_layer_input_gate per_layer_projection"),
    ("other", "post_attention_residual_scale post_mlp_residual_scale #.linear mtp_layers.#.input_proj"),
    ("other", "per_layer_model_proj inp_gate blk.#.proj"),
)


class Meanings(NamedTuple):
    """The meanings of the names in a checkpoint."""

    components: Mapping[str, str]  # {tensor: component, buffer, legacy buffer or MTP layer}
    unrecognized: tuple[str, ...]  # names without a known meaning: `other`
    tables: tuple[str, ...]  # token embeddings, then heads
    stacks: Mapping[str, int]  # {name prefix of a stack: number of layers}, without MTP layers
    experts: int  # largest number in a layer


class NameKind(NamedTuple):
    """The meaning shared by names that differ in their indices."""

    stack: str  # name up to the first index
    meaning: str | None
    marks_mtp_layer: bool  # whether the tensor's layer is an MTP layer
    is_mtp: bool
    has_experts: bool  # whether the second index is that of an expert


@lru_cache(maxsize=CACHE_SIZE)
def read_kind(words: tuple[str, ...]) -> NameKind:
    """The meaning of names that consist of these words with an index between them."""
    text = "#".join(words)
    modules, has_experts = set(text.split(".")), len(words) > 1 and words[1].endswith("experts.")
    return NameKind(words[0], find_meaning(text), bool(modules & MTP_MARKS), bool(modules & MTP_PLACES), has_experts)


def read_meanings(shapes: Mapping[str, tuple[int, ...] | None]) -> Meanings:
    """The meanings of all names in a checkpoint. `shapes`: {name: shape, or None if unknown}.

    >>> shapes = {"wte.weight": (9, 4), "h.0.attn.bias": (1, 1, 6, 6), "h.0.mlp.c_fc.weight": (4, 16)}
    >>> meanings = read_meanings(shapes)
    >>> list(meanings.components.values()), meanings.tables, meanings.stacks
    (['embedding', 'legacy buffer', 'mlp'], ('wte.weight',), {'h': 1})
    """
    kinds: dict[tuple[str, ...], NameKind] = {}  # one object per pattern of names, however many layers and experts
    names: list[tuple[NameKind, Indices]] = []
    for name in shapes:
        words, indices = split_name(name)
        kind = kinds.get(words) or kinds.setdefault(words, read_kind(words))
        names.append((kind, indices))
    mtp_layers = {(kind.stack, indices[0]) for kind, indices in names if indices and kind.marks_mtp_layer}
    components: dict[str, str] = {}
    unrecognized = []
    stacks: dict[str, dict[int, None]] = {}
    experts: dict[str, set[int]] = {}
    stacked_experts = 0
    for (name, shape), (kind, indices) in zip(shapes.items(), names):
        if kind.is_mtp or (mtp_layers and indices and (kind.stack, indices[0]) in mtp_layers):
            components[name] = MTP_LAYER
            continue
        meaning = kind.meaning
        if meaning == "legacy_buffer" and name.endswith(".bias") and shape is not None and len(shape) < MASK_AXES:
            meaning = None
        if meaning is None:
            unrecognized.append(name)
        components[name] = (meaning or "other").replace("_buffer", " buffer")
        if indices:
            stacks.setdefault(kind.stack.rstrip("."), {})[indices[0]] = None
            if len(indices) > 1 and kind.has_experts:
                experts.setdefault(kind.stack, set()).add(indices[1])
        if meaning == "experts" and shape is not None and len(shape) > 2:
            stacked_experts = max(stacked_experts, shape[0])
    return Meanings(
        components,
        tuple(unrecognized),
        tables=tuple(name for table in ("embedding", "lm_head") for name in components if components[name] == table),
        stacks={name: len(layers) for name, layers in stacks.items()},
        experts=max([stacked_experts, *map(len, experts.values())]),
    )


def find_meaning(kind: str) -> str | None:
    """The meaning of a name with # for each index: a component, `buffer` or `legacy_buffer`; None if unknown.

    >>> find_meaning("h.#.attn.c_attn.weight"), find_meaning("blk.#.ffn_up_exps.weight")
    ('qkv', 'experts')
    >>> find_meaning("h.#.attn.bias"), find_meaning("a.b")
    ('legacy_buffer', None)
    """
    words = ("^", *kind.split(".")[: MOST_WORDS - 1])
    phrases, prefixes, suffixes = parse_phrases()
    ranks = []
    for at, word in enumerate(words):
        for rank, others in phrases.get(word, ()):
            if words[at + 1 : at + 1 + len(others)] == others:
                ranks.append(rank)
    for word in words[-LAST_WORDS:]:
        if word.startswith(tuple(prefixes)) or word.endswith(tuple(suffixes)):
            ranks += [rank for text, rank in prefixes.items() if word.startswith(text)]
            ranks += [rank for text, rank in suffixes.items() if word.endswith(text)]
    return MEANINGS[min(ranks)][0] if ranks else None


@cache
def parse_phrases() -> tuple[dict[str, list[tuple[int, tuple[str, ...]]]], dict[str, int], dict[str, int]]:
    """{first word: [(row, the words after it)]}, {prefix of a word: row}, {suffix: row}."""
    phrases: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    prefixes, suffixes = {}, {}
    for rank, (_, texts) in enumerate(MEANINGS):
        for text in texts.split():
            if text.startswith("*"):
                suffixes[text[1:]] = rank
            elif text.endswith("*"):
                prefixes[text[:-1]] = rank
            else:
                first, *others = text.split(".")
                phrases.setdefault(first, []).append((rank, tuple(others)))
    return phrases, prefixes, suffixes
