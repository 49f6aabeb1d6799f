"""data2vec for sounds: the encoder of wav2vec 2.0 with several convolutions for positions."""

from paramcount.declare import parts


class Data2VecAudio(parts.AdaptedWaves, parts.PlacedByLayers):
    """Source: arXiv:2202.03555, section 3; modeling_data2vec_audio.py of the reference."""

    reference = "Data2VecAudioForCTC"
    model_types = ("data2vec-audio",)
    base_model = "Data2VecAudioModel"
    task_head_prefix = "Data2VecAudio"
    task_heads = parts.SOUND_HEADS
    prefix = "data2vec_audio."
