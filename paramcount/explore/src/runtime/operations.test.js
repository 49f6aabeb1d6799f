import assert from "node:assert/strict";
import test from "node:test";

import { OPERATIONS } from "./operations.js";
import { readHalf, readSafetensors, stack, tensor } from "./tensors.js";

const close = (found, expected) => {
  assert.equal(found.length, expected.length);
  expected.forEach((value, i) => assert.ok(Math.abs(found[i] - value) < 1e-12 || found[i] === value, `${i}: ${found[i]} is not ${value}`));
};
const make = (shape, ...values) => tensor(shape, Float64Array.from(values));

test("floats of 16 bits are read as IEEE 754 has them", () => {
  // 1, -2, 65504 (the largest), 2^-24 (the smallest), 1/3 rounded, infinity
  close([0x3c00, 0xc000, 0x7bff, 0x0001, 0x3555, 0x7c00].map(readHalf), [1, -2, 65504, 2 ** -24, 0.333251953125, Infinity]);
});

test("a safetensors file is read by its header", () => {
  const header = JSON.stringify({ a: { dtype: "F16", shape: [2], data_offsets: [0, 4] }, b: { dtype: "F32", shape: [1, 1], data_offsets: [4, 8] } });
  const bytes = new Uint8Array(8 + header.length + 8);
  bytes.set([header.length]);
  bytes.set(new TextEncoder().encode(header), 8);
  bytes.set([0x00, 0x3c, 0x00, 0xc0, 0, 0, 0x80, 0x3e], 8 + header.length); // 1 and -2; 0.25
  const found = readSafetensors(bytes);
  close(found.get("a").data, [1, -2]);
  assert.deepEqual([found.get("b").shape, [...found.get("b").data]], [[1, 1], [0.25]]);
});

test("a linear layer is stored [out, in], or [in, out] if transposed", () => {
  const inputs = [make([1, 2], 1, 10)];
  const run = (transposed, matrix) => OPERATIONS.Linear({ parameters: { transposed }, inputs, weights: [matrix, make([3], 0, 0, 1)], shape: ["tokens", 3] });
  close(run(false, make([3, 2], 1, 2, 3, 4, 5, 6)).data, [21, 43, 66]);
  close(run(true, make([2, 3], 1, 2, 3, 4, 5, 6)).data, [41, 52, 64]);
});

test("norms divide by the root mean square, a layer norm after subtracting the mean", () => {
  const run = (kind, x) => OPERATIONS.Norm({ parameters: { kind, eps: 0, offset: 0 }, inputs: [x], weights: [make([2], 1, 2)] }).data;
  close(run("rms", make([1, 2], 1, 7)), [0.2, 2.8]);
  close(run("layer", make([1, 2], 1, 7)), [-1, 2]);
});

test("two query heads share a key, later tokens are hidden, weights sum to 1", () => {
  const q = make([2, 2, 1], 1, 2, 3, 4); // [tokens, heads, size]
  const k = make([2, 1, 1], 1, 10);
  const scores = OPERATIONS.Scores({ parameters: { scale: 1 }, inputs: [q, k] });
  close(scores.data, [1, 10, 3, 30, 2, 20, 4, 40]);
  const hidden = OPERATIONS.Hide({ parameters: { mask: ["Causal"] }, inputs: [scores], positions: [0, 1] });
  close(hidden.data, [1, -Infinity, 3, 30, 2, -Infinity, 4, 40]);
  const last = OPERATIONS.Hide({ parameters: { mask: ["Causal"] }, inputs: [make([1, 1, 2], 3, 30)], positions: [1] });
  close(last.data, [3, 30]); // of the second token alone, behind the cache of the first
  assert.throws(() => OPERATIONS.Hide({ parameters: { mask: ["Window"] }, inputs: [scores], positions: [0, 1] }), /Window/);
  close(OPERATIONS.Softmax({ inputs: [make([1, 1, 2], 0, Math.log(3))] }).data, [0.25, 0.75]);
  const values = OPERATIONS.WeightedSum({ inputs: [make([2, 1, 2], 0.25, 0.75, 1, 0), make([2, 1, 1], 4, 8)] });
  assert.deepEqual([values.shape, [...values.data]], [[1, 2, 1], [7, 4]]);
});

test("a rotation turns pairs that are half the axis apart by position times frequency", () => {
  const parameters = { frequencies: [Math.PI / 2], factor: 1 };
  close(OPERATIONS.Rotary({ parameters, inputs: [make([2, 1, 2], 3, 4, 3, 4)], positions: [1, 2] }).data, [-4, 3, -3, -4]);
});

test("of equal router weights the first are chosen, and their sum becomes 1", () => {
  const chosen = OPERATIONS.TopK({ parameters: { n: 2, others: 0 }, inputs: [make([1, 4], 0.1, 0.3, 0.3, 0.3)] });
  close(chosen.data, [0, 0.3, 0.3, 0]);
  close(OPERATIONS.NormaliseWeights({ parameters: { least_sum: 0 }, inputs: [chosen] }).data, [0, 0.5, 0.5, 0]);
});

test("a convolution and a scan go on where the text before ended", () => {
  const kernel = make([1, 1, 2], 10, 1);
  const state = {};
  const convolve = (...x) => OPERATIONS.CausalConvolution({ inputs: [make([x.length, 1], ...x)], weights: [kernel], state }).data;
  close(convolve(1, 2), [1, 12]);
  close(convolve(3), [23]);
  // A = -1 and a step whose softplus is ln 2: half of the state stays, and u · ln 2 is added
  const memory = {};
  const step = Math.log(Math.exp(Math.LN2) - 1);
  const scan = (u, isOff) =>
    OPERATIONS.SelectiveScan({ inputs: [make([1, 1], u), make([1, 1], step), make([1, 1], 1), make([1, 1], 1)], weights: [make([1, 1], 0), make([1], 5)], state: memory, isOff }).data;
  close(scan(1, false), [Math.LN2 + 5]);
  close(scan(2, false), [Math.LN2 * 2.5 + 10]);
  close(scan(1, true), [5]); // switched off: the direct way alone
});

test("activations are SiLU and the GELU of GPT-2", () => {
  const run = (name, alpha = 1) => OPERATIONS.Activation({ parameters: { function: name, alpha }, inputs: [make([1, 2], 0, 1)] }).data;
  close(run("silu"), [0, 1 / (1 + Math.exp(-1))]);
  close(run("gelu_new"), [0, 0.5 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * 1.044715))]);
});

test("rows are stacked", () => {
  const found = stack([make([1, 2], 1, 2), make([2, 2], 3, 4, 5, 6)]);
  assert.deepEqual([found.shape, [...found.data]], [[3, 2], [1, 2, 3, 4, 5, 6]]);
});
