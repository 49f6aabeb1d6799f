"""UniSpeech: the encoder of wav2vec 2.0, pre-trained with and without phonemes; UniSpeech-SAT tells speakers apart."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

PHONEMES: dict[str, Any] = parts.CODES | {"n_phonemes": (sizes.Positive, sizes.hf("num_ctc_classes", absent=80))}


def spell_with_codes(c: Any, x: Data) -> Data:
    """Scores of phonemes from states, some of which are at random codes as wide instead, which come out too."""
    codes = parts.quantise(c, ops.second_value(x, c.channels[-1], "frames"))
    codes = ops.linear(codes, "project_q", "other", c.d_compared, bias=True)
    codes = ops.linear(codes, "project_hid", "other", c.d_model, bias=True)
    return ops.bundle(ops.linear(x, "ctc_proj", "other", c.n_phonemes, bias=True), codes)


class UniSpeech(parts.PreOrPostNorm):
    """Source: arXiv:2101.07597, section 3; modeling_unispeech.py of the reference."""

    reference = "UniSpeechForCTC"
    base_model = "UniSpeechModel"
    task_head_prefix = "UniSpeech"
    task_heads = parts.SOUND | {"ForPreTraining": parts.TaskHead(spell_with_codes, PHONEMES)}
    prefix = "unispeech."
    unused_keys = (*parts.HEAD_KEYS, "num_ctc_classes")


class UniSpeechSat(parts.PreOrPostNorm):
    """Source: arXiv:2110.05752, section 2; modeling_unispeech_sat.py of the reference."""

    reference = "UniSpeechSatForCTC"
    model_types = ("unispeech-sat",)
    base_model = "UniSpeechSatModel"
    task_head_prefix = "UniSpeechSat"
    task_heads: ClassVar[sizes.TaskHeads] = parts.SOUND_HEADS
    prefix = "unispeech_sat."
    unused_keys = (*parts.HEAD_KEYS, "num_clusters")

    masks_frames = sizes.constant(True)


class UniSpeechSatPreTraining(UniSpeechSat):
    """With what the reference allocates for pre-training and does not use. Source: UniSpeechSatForPreTraining."""

    reference = "UniSpeechSatForPreTraining"
    model_types = ("unispeech-sat.UniSpeechSatForPreTraining",)
    base_model = ""
    task_heads: ClassVar[sizes.TaskHeads] = {}

    n_codebooks: sizes.Positive = sizes.hf("num_codevector_groups")
    n_codes: sizes.Positive = sizes.hf("num_codevectors_per_group")
    d_code: sizes.Positive = sizes.derived(parts.read_code_size)
    d_compared: sizes.Positive = sizes.hf("proj_codevector_dim")
    n_clusters: sizes.Natural = sizes.hf("num_clusters")

    def head(c, x: Data) -> Data:
        return x

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x, d_codes = ops.given("states", "frames", c.d_model), c.n_codebooks * c.d_code
        codes = parts.quantise(c, x)
        found = {
            "project_q": ops.linear(codes, "project_q", "other", c.d_compared, bias=True),
            "project_hid": ops.linear(x, "project_hid", "other", c.d_compared, bias=True),
            "speaker_proj": ops.linear(x, "speaker_proj", "other", d_codes, bias=True),
            "clusters": ops.learned_rows("label_embeddings_concat", "other", c.n_clusters, d_codes),
            "norm": ops.layer_norm(x, "layer_norm_for_extract", c.norm_eps),
        }
        return tuple(ops.Unreachable(flow, "the reference has no pre-training for it") for flow in found.values())
