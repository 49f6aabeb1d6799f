"""What draft heads for speculative decoding do besides layers: a block of tokens behind a text, and fewer tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paramcount.flow.graph import Data, Size, Weight, make_step, multiply
from paramcount.flow.operation import Array, Form, Move, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.elementwise import sigmoid
from paramcount.flow.operations.linear import Linear
from paramcount.flow.operations.positions import Rotary
from paramcount.flow.operations.recurrence import Recurrence

if TYPE_CHECKING:
    from paramcount.flow.operations.rotary_scaling import Rope


class RotaryBehind(Rotary, detail=", behind the text"):
    """Positions go on behind the rows of the second input; the third is the first again, whose rows are counted."""

    def find_positions(self, run: Pass, *others: Array) -> Array:
        before, x = others
        return np.arange(len(before), len(before) + len(x))


def rope_behind(x: Data, settings: Rope | Unknown, before: Data) -> Data:
    """Rotary positions of the rows of x, which follow those of `before`, the rows of a whole text."""
    return Data(RotaryBehind(settings), (x, before, x), x.shape)


@make_step("later rows", Move, phrase="0 before row {first}", plain="0 in the first rows")
def clear_first_rows(x: Array, first: int | Unknown) -> Array:
    """x with 0 in its first rows."""
    return np.where((np.arange(len(x)) >= require(first))[:, None], x, np.float32(0))


class Gru(Recurrence, phrase="GRU, updated per row", form=Form.STATE_SPACE):
    """h = (1 − z)·n + z·h with r, z = σ(x + W·h) and n = tanh(x + r·W·h), where the input, [n, 3 · d], and W·h are cut
    into r, z and n.

    All rows are read at once, so no state is kept. Weight: W [3 · d, d]. Source: torch.nn.GRU; arXiv:1406.1078.
    """

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(out[0] * multiply(weights[0]))

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), (matrix,) = inputs, weights
        state = np.zeros(matrix.shape[1], np.float32)
        y = np.empty((len(x), *shape[1:]), np.float32)
        for t in range(len(x)):
            (x_reset, x_keep, x_new), (h_reset, h_keep, h_new) = np.split(x[t], 3), np.split(matrix @ state, 3)
            keep = sigmoid(x_keep + h_keep)
            new = np.tanh(x_new + sigmoid(x_reset + h_reset) * h_new)
            y[t] = state = (1 - keep) * new + keep * state
        return y


def gru(x: Data, prefix: str, d: Size) -> Data:
    """A GRU without biases over rows that are read at once: [n, d_in] to [n, d]."""
    first, second = (
        Weight(prefix + "weight_ih_l0", "other", (3 * d, x.shape[-1])),
        Weight(prefix + "weight_hh_l0", "other", (3 * d, d)),
    )
    gates = Data(Linear(), (x,), (x.shape[0], 3 * d), (first,))
    return Data(Gru(), (gates,), (x.shape[0], d), (second,))


class MarkovState(Recurrence, phrase="state that gates update per row", form=Form.STATE_SPACE):
    """s = g·s + (1 − g)·tanh(c), and tanh(o) comes out, where W·[s, e, x] + b is cut into the logit of g, c and o.

    Inputs: e [n, r] and x [n, d]. Weights: W [3 · r, 2 · r + d], b. Source: RNNMarkovHead of SpecForge, dspark.py.
    """

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(out[0] * multiply(weights[0]))

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (embedded, x), (matrix, bias) = inputs, weights
        state, y = np.zeros(embedded.shape[1], np.float32), np.empty_like(embedded)
        for t in range(len(x)):
            gate, new, leaves = np.split(matrix @ np.concatenate((state, embedded[t], x[t])) + bias, 3)
            gate = sigmoid(gate)
            state = gate * state + (1 - gate) * np.tanh(new)
            y[t] = np.tanh(leaves)
        return y


def markov_state(embedded: Data, x: Data, name: str) -> Data:
    """[n, r] and [n, d] to [n, r], over rows that are read at once."""
    r, d = embedded.shape[-1], x.shape[-1]
    weights = (Weight(name + ".weight", "other", (3 * r, 2 * r + d)), Weight(name + ".bias", "other", (3 * r,)))
    return Data(MarkovState(), (embedded, x), embedded.shape, weights)


class DraftIds(Move, name="ids of the target", phrase="those of the tokens that the logits belong to"):
    """The logits as they are. Weights: which of the target's tokens are drafted, and what to add to the index of a
    logit for its token's id. Source: compute_logits of Eagle3LlamaForCausalLM, llama_eagle3.py of vLLM.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0]


def map_draft_ids(logits: Data, vocab_size: Size) -> Data:
    """Logits of the drafted tokens, [n, n_drafted], which may be fewer than those of the target."""
    maps = tuple(
        Weight(name, "other", (n,), role="buffer") for name, n in (("t2d", vocab_size), ("d2t", logits.shape[-1]))
    )
    return Data(DraftIds(), (logits,), logits.shape, maps)
