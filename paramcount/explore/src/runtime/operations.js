// The operations of the tiny models, by the names of their classes in paramcount/flow/operations. Each gets a step:
// {parameters, inputs, weights, positions of the new tokens, state that it keeps for later tokens, shape}.

import { map, row, stack, tensor } from "./tensors.js";

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const FUNCTIONS = {
  silu: (x) => x * sigmoid(x),
  gelu_new: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

// ---- lookups, sums and products

function lookup({ inputs: [tokens], weights: [table] }) {
  return stack([...tokens.data].map((id) => tensor([1, table.shape[1]], row(table, id))));
}

function lookUpPositions({ parameters: { offset }, positions, weights: [table] }) {
  return stack(positions.map((at) => tensor([1, table.shape[1]], row(table, at + offset))));
}

const combine = (f) => ({ inputs: [a, b] }) => tensor(a.shape, a.data.map((x, i) => f(x, b.data[i])));

/** x · W + b: W is stored [out, in], or [in, out] if transposed. */
function linear({ parameters: { transposed }, inputs: [x], weights: [matrix, bias], shape }) {
  const n = x.shape[0];
  const wide = x.data.length / n;
  const size = matrix.data.length / wide;
  const out = tensor([n, ...shape.slice(1)]);
  const [byIn, byOut] = transposed ? [size, 1] : [1, wide];
  for (let t = 0; t < n; t++) {
    for (let j = 0; j < size; j++) {
      let sum = 0;
      for (let i = 0; i < wide; i++) sum += x.data[t * wide + i] * matrix.data[i * byIn + j * byOut];
      out.data[t * size + j] = sum + (bias ? bias.data[j] : 0);
    }
  }
  return out;
}

function split({ parameters: { widths, part }, inputs: [x], shape }) {
  const start = widths.slice(0, part).reduce((a, b) => a + b, 0);
  const rows = Array.from({ length: x.shape[0] }, (_, t) => row(x, t).slice(start, start + widths[part]));
  return stack(rows.map((values) => tensor([1, ...shape.slice(1)], values)));
}

/** Each vector of the last axis by a function that returns one as long. */
function mapVectors(x, f) {
  const size = x.shape.at(-1);
  const out = tensor(x.shape);
  for (let i = 0; i < x.data.length; i += size) out.data.set(f(x.data.subarray(i, i + size)), i);
  return out;
}

function norm({ parameters: { kind, eps, offset }, inputs: [x], weights: [scale, shift] }) {
  return mapVectors(x, (values) => {
    const mean = kind === "layer" ? values.reduce((a, b) => a + b, 0) / values.length : 0;
    const size = Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length + eps);
    return values.map((v, i) => ((v - mean) / size) * (scale.data[i] + offset) + (shift ? shift.data[i] : 0));
  });
}

const activate = ({ parameters: { function: name, alpha }, inputs: [x] }) => map(x, (v) => FUNCTIONS[name](v * alpha) / alpha);

// ---- attention

/** Pairs of values, half the axis apart, rotated by angles that grow with the position. */
function rotate({ parameters: { frequencies, factor }, inputs: [x], positions }) {
  const half = frequencies.length;
  const perToken = x.data.length / positions.length;
  let at = 0;
  return mapVectors(x, (values) => {
    const position = positions[Math.floor(at / perToken)];
    at += values.length;
    const angles = frequencies.map((frequency) => position * frequency);
    return values.map((v, i) => {
      const angle = angles[i % half];
      const other = i < half ? -values[i + half] : values[i - half];
      return (v * Math.cos(angle) + other * Math.sin(angle)) * factor;
    });
  });
}

/** The rows of earlier tokens and the new ones. */
function cache({ inputs: [x], state }) {
  state.rows = state.rows ? stack([state.rows, x]) : x;
  return state.rows;
}

/** Queries times keys: [heads, n, m]. Neighbouring queries share a key. */
function score({ parameters: { scale }, inputs: [q, k] }) {
  const [[n, heads, d], [m, groups]] = [q.shape, k.shape];
  const out = tensor([heads, n, m]);
  for (let h = 0; h < heads; h++) {
    const g = Math.floor((h * groups) / heads);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < m; j++) {
        let sum = 0;
        for (let c = 0; c < d; c++) sum += q.data[(i * heads + h) * d + c] * k.data[(j * groups + g) * d + c];
        out.data[(h * n + i) * m + j] = sum * (scale ?? 1 / Math.sqrt(d));
      }
    }
  }
  return out;
}

/** Scores of later tokens become -∞. */
function hide({ parameters: { mask }, inputs: [x], positions }) {
  if (mask.join() !== "Causal") throw new Error(`the mask ${mask.join()} is not computed`);
  const [, n, m] = x.shape;
  const first = positions.at(-1) + 1 - m;
  return tensor(x.shape, x.data.map((v, i) => (first + (i % m) > positions[Math.floor(i / m) % n] ? -Infinity : v)));
}

const softmax = ({ inputs: [x] }) => mapVectors(x, (values) => {
  const most = values.reduce((a, b) => Math.max(a, b));
  const powers = values.map((v) => Math.exp(v - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((v) => v / sum);
});

/** Values by attention weights: [n, heads, d]. */
function sumValues({ inputs: [weights, v] }) {
  const [[heads, n, m], [, groups, d]] = [weights.shape, v.shape];
  const out = tensor([n, heads, d]);
  for (let h = 0; h < heads; h++) {
    const g = Math.floor((h * groups) / heads);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < m; j++) {
        const weight = weights.data[(h * n + i) * m + j];
        for (let c = 0; c < d; c++) out.data[(i * heads + h) * d + c] += weight * v.data[(j * groups + g) * d + c];
      }
    }
  }
  return out;
}

// ---- the choice of experts

/** The n largest values of each vector; ties go to the first. */
const chooseLargest = ({ parameters: { n, others }, inputs: [x] }) => mapVectors(x, (values) => {
  const order = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  return values.map((v, i) => (order.indexOf(i) < n ? v : others));
});

const normalise = ({ parameters: { least_sum: least }, inputs: [x] }) => mapVectors(x, (values) => {
  const sum = values.reduce((a, b) => a + b, least);
  return values.map((v) => v / sum);
});

// ---- states of fixed size

/** Each channel over its last values, of which it keeps what the next tokens read. */
function convolve({ inputs: [x], weights: [kernel, bias], state }) {
  const [channels, , width] = kernel.shape;
  const padded = stack([state.inputs ?? tensor([width - 1, channels]), x]);
  const n = x.shape[0];
  state.inputs = tensor([width - 1, channels], padded.data.slice(n * channels));
  const out = tensor(x.shape);
  for (let t = 0; t < n; t++) {
    for (let c = 0; c < channels; c++) {
      let sum = bias ? bias.data[c] : 0;
      for (let i = 0; i < width; i++) sum += padded.data[(t + i) * channels + c] * kernel.data[c * width + i];
      out.data[t * channels + c] = sum;
    }
  }
  return out;
}

/** A state [channels, d_state] per token: h = exp(dt·A)·h + dt·B·u, y = C·h + D·u, dt = softplus(step). `isOff`: y = D·u. */
function scan({ inputs: [u, step, b, c], weights: [logA, d], state, isOff }) {
  const [n, channels] = u.shape;
  const size = b.shape[1];
  const h = state.state ? state.state.data.slice() : new Float64Array(channels * size);
  const out = tensor(u.shape);
  for (let t = 0; t < n; t++) {
    for (let i = 0; i < channels; i++) {
      const x = u.data[t * channels + i];
      const delta = softplus(step.data[t * channels + i]);
      let sum = 0;
      for (let j = 0; j < size; j++) {
        const at = i * size + j;
        h[at] = Math.exp(-delta * Math.exp(logA.data[at])) * h[at] + delta * b.data[t * size + j] * x;
        sum += h[at] * c.data[t * size + j];
      }
      out.data[t * channels + i] = (isOff ? 0 : sum) + x * d.data[i];
    }
  }
  state.state = tensor([channels, size], h);
  return out;
}

export const OPERATIONS = {
  Lookup: lookup, PositionLookup: lookUpPositions, Add: combine((a, b) => a + b), Multiply: combine((a, b) => a * b),
  Linear: linear, Split: split, Norm: norm, Activation: activate,
  Rotary: rotate, Cache: cache, Scores: score, Hide: hide, Softmax: softmax, WeightedSum: sumValues,
  RowSoftmax: softmax, TopK: chooseLargest, NormaliseWeights: normalise,
  CausalConvolution: convolve, SelectiveScan: scan,
};

