import assert from "node:assert/strict";
import { test } from "node:test";
import { listDtypes, listRemedies, parseNumber, readChoice, writeCommands } from "./choices.js";

const structure = {
  sizes: [["n_heads"]], tensors: [], limit: null, positions: 2048,
  sharing: ["if", ["=", ["%", "n_heads", "gpus"], 0], null, { text: ["tp = ", ["gpus"], " does not divide ", ["n_heads"], " heads"] }],
};
const data = {
  gpus: [{ name: "A100", aliases: [] }, { name: "H100 SXM", aliases: ["h100", "hgx-h100"] }],
  dtype_names: ["bf16", "fp8"], dtypes: ["BF16", "FP8"], usual_dtype: "bf16",
  kv_dtypes: [{ name: "bf16", bytes: 2 }, { name: "fp8", bytes: 1 }],
  most_gpus: 8, most_users: 100, default_context: 8192, longest_context: 10 ** 9,
};
const model = { structure, values: [6n], id: "it's", published_context: 1024, as_released: null };
const read = (options, more = {}) => readChoice(data, { ...model, ...more }, structure, [6n], false, options, new Map());

test("numbers as people type them", () => {
  assert.deepEqual(["8192", "8,192", " 8k", "128K", "1M"].map((text) => parseNumber(text, true)), [8192, 8192, 8192, 131072, 1048576]);
  assert.deepEqual(["8k", "1.5", "", "-1", "8,19", "x"].map((text) => parseNumber(text, false)), [null, null, null, null, null, null]);
});

test("an empty address has the defaults, a full one its choices", () => {
  const { choice, dtype, errors } = read({});
  assert.deepEqual([choice.gpu.name, choice.gpus, choice.context, choice.users, choice.kv.name, dtype, errors], ["H100 SXM", 1, 1024, 1, "bf16", "bf16", []]);
  const full = read({ gpu: "HGX_H100", n: "3", dtype: "fp8", kv: "fp8", context: "2k", users: "16" });
  assert.deepEqual([full.choice.gpu.name, full.choice.gpus, full.choice.context, full.choice.users, full.choice.kv.bytes, full.dtype], ["H100 SXM", 3, 2048, 16, 1, "fp8"]);
});

test("what an address has wrong is named with what is valid", () => {
  const { errors } = read({ gpu: "H100 SXN", n: "4", dtype: "fp9", kv: "q8", context: "4096", users: "0" });
  assert.deepEqual(errors.map(({ text }) => text), [
    "dtype = fp9 (expected bf16, fp8)",
    "gpu = H100 SXN is not in the list; the nearest: H100 SXM",
    "kv = q8 (expected bf16, fp8)",
    "context = 4096 (expected a number of tokens such as 8192 or 8k, from 1 to 2,048)",
    "users = 0 (expected a number from 1 to 100)",
    "tp = 4 does not divide 6 heads (these numbers of GPUs do: 1, 2, 3, 6)",
  ]);
});

test("the format of a release is the default of published sizes, and not offered for others", () => {
  const released = { as_released: { label: "MXFP4", shares: [] } };
  assert.equal(read({}, released).dtype, "released");
  assert.deepEqual([...listDtypes(data, released, true).keys()], ["bf16", "fp8"]);
});

test("commands quote what a shell would read", () => {
  const { memory, plan } = writeCommands(data, model, read({ dtype: "fp8", kv: "fp8", n: "2", users: "16" }), " --set n_heads=6");
  assert.equal(memory, "paramcount memory 'it'\\''s' --set n_heads=6 --dtype fp8 --kv-dtype fp8 --context 1024 --batch 16 --gpu '2xH100 SXM'");
  assert.equal(plan, "paramcount plan 'it'\\''s' --set n_heads=6 --dtype fp8 --kv-dtype fp8 --context 1024 --users 16 --gpu 'H100 SXM'");
});

test("what makes a choice fit is one change of a dtype", () => {
  const gpu = { name: "H100 SXM", aliases: [], memory: 1000, overhead: { usual: 0, least: 0, most: 0 } };
  const verdict = ["if", ["<", "budget", ["+", "needed", "most"]], { verdict: "does not fit" }, { verdict: "fits" }];
  const tensors = [{ elements: 100, widths: [4, 2], shared: "bytes" }];
  const caches = { per_token: 0, kv: ["*", "kv_bytes", "context"], state: 0 };
  const all = { ...data, gpus: [gpu], dtype_names: ["fp32", "bf16"], dtypes: ["FP32", "BF16"], verdict };
  const own = { ...structure, tensors, caches };
  const remedies = (options) =>
    listRemedies(all, readChoice(all, model, own, [6n], false, options, new Map())).map(({ options: change }) => change);
  assert.deepEqual(remedies({ dtype: "fp32", context: "450" }), [{ kv: "fp8" }]); // 400 + 900 bytes; 400 + 450; 200 + 900
  assert.deepEqual(remedies({ dtype: "fp32", context: "310" }), [{ kv: "fp8" }, { dtype: "bf16" }]); // 400 + 620; 400 + 310
  assert.deepEqual(remedies({ dtype: "fp32", context: "900" }), []);
});

test("a dtype is accepted in any case, as on the command line", () => {
  const { choice, dtype, errors } = read({ dtype: "FP8", kv: "Fp8" });
  assert.deepEqual([choice.kv.name, dtype, errors], ["fp8", "fp8", []]);
});
