"""What the tiny models are and what each of their operations does, in a sentence for the page."""

from __future__ import annotations

from typing import Final

DESCRIPTIONS: Final = {
    "tiny-gpt2": "The layers of GPT-2: attention and an MLP.",
    "tiny-mixtral": "The layers of Mixtral: attention, and experts in place of the MLP.",
    "tiny-mamba": "The layers of Mamba: a recurrent state, no attention.",
}
SENTENCES: Final = {
    "Lookup": "Each letter becomes its row of the embedding table: the vector that stands for it.",
    "PositionLookup": "Each token gets the vector of its position in the text, so that order can matter.",
    "Add": "The result is added to the residual stream, which every layer reads and writes.",
    "Multiply": "Two vectors are multiplied element by element: one opens and closes the other like a gate.",
    "Norm": "Each vector is scaled to a standard size, so that the next step sees values of the same magnitude.",
    "Linear": "Each vector is multiplied by a learned matrix: every output is a weighted sum of all inputs.",
    "Split": "Takes one part of the previous vector: one matrix computed several things at once.",
    "Cache": "The keys or values of all tokens so far, kept so that they are not computed again for each new token.",
    "Scores": "Each query is multiplied by each key: a high score means that a token looks for what the other offers.",
    "Hide": "Scores of later tokens become −∞, so that no token sees the answer that it should predict.",
    "Softmax": "Scores become weights that sum to 1: how much each head attends to each token.",
    "WeightedSum": "Each head sums the values of the tokens that it attends to, by their weights.",
    "Activation": "A curve that bends values below 0 towards 0; without it, two matrices in a row would be one.",
    "Rotary": "Queries and keys are rotated by angles that grow with the position: scores depend on distance.",
    "RowSoftmax": "The router's scores become probabilities, one per expert.",
    "TopK": "The most probable experts are chosen; the others get weight 0 and are not computed.",
    "NormaliseWeights": "The weights of the chosen experts are divided by their sum, so that they sum to 1.",
    "Experts": "Each token passes only through its chosen experts, whose outputs are summed by their weights.",
    "CausalConvolution": "Each channel mixes its own values of this token and of the few tokens before it.",
    "SelectiveScan": "Each token updates a recurrent state and reads from it: all that the layer knows of the text.",
}
