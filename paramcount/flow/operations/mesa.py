"""The state of MesaNet: a query is solved for before it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Form, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.elementwise import softplus
from paramcount.flow.operations.recurrence import Recurrence


class MesaState(Recurrence, name="mesa scan", form=Form.LINEAR_ATTENTION, state_in_float32=True):
    """Two states that fade, H = decay · H + β·k·kᵀ and S = decay · S + β·k·vᵀ; y = Sᵀ (H + Λ)⁻¹ q.

    The reference approaches the solution by conjugate gradients; here it is solved exactly.
    Inputs: q, k, v [n, heads, d], logarithms of decays and β [n, heads]. Weight: Λ [heads · d], a softplus of it plus
    `least`. Source: arXiv:2506.05233; naive_mesa_net_exact in fla/ops/mesa_net/naive.py of
    fla-org/flash-linear-attention.
    """

    phrase: ClassVar[str] = "recurrent states with a decay, and a linear system that is solved per token"
    heads: Size
    d: Size
    least: float | Unknown

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((self.heads, self.d, self.d),) * 2

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, gate, beta = inputs
        ridge = (softplus(weights[0]) + np.float32(require(self.least))).reshape(q.shape[1:])
        size = (*q.shape[1:], q.shape[-1])
        keys, values = (run.state.get(name, np.zeros(size, np.float32)) for name in ("keys", "values"))
        y = np.empty(q.shape, np.float32)
        for t in range(len(q)):
            decay, update = np.exp(gate[t])[:, None, None], (k[t] * beta[t][:, None])[..., None]
            keys = decay * keys + update * k[t][:, None]
            values = decay * values + update * v[t][:, None]
            solved = np.linalg.solve(keys + ridge[:, :, None] * np.eye(q.shape[-1]), q[t][..., None])
            y[t] = (solved * values).sum(-2)
        run.state.update(keys=keys.astype(np.float32), values=values.astype(np.float32))
        return y


def mesa_state(q: Data, k: Data, v: Data, gates: tuple[Data, Data], name: str, least: float | Unknown) -> Data:
    """`gates`: logarithms of decays and β. `name`: of Λ."""
    heads, d = q.shape[1:]
    ridge = Weight(name, "mixer.state", (heads * d,))
    return Data(MesaState(heads, d, least), (q, k, v, *gates), q.shape, (ridge,))
