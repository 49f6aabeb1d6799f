import assert from "node:assert/strict";
import { test } from "node:test";
import { count, countFlops, explainFlops, findList, nameFlops } from "./count.js";

const STEP = { products: [[3, 0, 1]], scopes: [["layer", [[1, 2]], 1, "", ""]], component: "mlp" };
const flow = (change = {}) => ({ flow: { steps: [STEP], windows: [], ...change } });

test("FLOPs are two for each multiply-add in every layer", () => {
  assert.equal(countFlops(flow(), [5n, 7n, 2n], 9n).total, 2n * 3n * 5n * 7n * 2n);
});

test("FLOPs are those of engines where the reference computes another way", () => {
  const steps = [{ ...STEP, absorbed: [[1, 2]] }, STEP];
  const { total, components, expanded } = countFlops(flow({ steps }), [5n, 7n, 2n], 9n);
  assert.deepEqual([total, components.mlp, expanded], [4n * 2n + 420n, 8n + 420n, 840n]);
});

test("a model that decodes no tokens has the FLOPs of a pass", () => {
  assert.equal(nameFlops(flow({ decodes: false }), 1024n), "FLOPs of a pass of 1,024 tokens");
  assert.equal(nameFlops(flow({ decodes: true }), 1024n), "FLOPs per decoded token");
});

test("steps that were exported for one model have no FLOPs at other sizes", () => {
  const structure = flow({ only: [5, "7", 2] });
  assert.equal(countFlops(structure, [5n, 7n, 2n], 9n).total, 420n);
  assert.equal(countFlops(structure, [5n, 7n, 3n], 9n), null);
  assert.equal(explainFlops(structure, [5n, 7n, 3n]), "known for the published sizes only");
});

test("FLOPs of a step that reads an image are not known", () => {
  const structure = flow({ steps: [STEP, { ...STEP, products: null }] });
  assert.equal(countFlops(structure, [5n, 7n, 2n], 9n), null);
  assert.equal(explainFlops(structure, [5n, 7n, 2n]), "depend on an input other than text");
});

test("a size that a list fixes is found", () => {
  const check = (size, n, where) => [["!=", size, n], { where, text: [`${where} has another length`] }, null];
  const structure = {
    sizes: [["n_layers", 1, 99], ["n_heads", 1, 99]],
    structure: { layer_types: "12 × full" },
    checks: [check("n_layers", 12, "layer_types"), check("n_heads", 4, "n_heads × d_head")],
  };
  assert.equal(findList(structure, [12n, 4n], 0), "layer_types");
  assert.equal(findList(structure, [12n, 4n], 1), undefined);
});

test("a buffer that two modules share is counted once", () => {
  const buffer = { name: "mean", part: "vision", role: "buffer", copies: 1, shape: [4], shares: [["vision", "vision", 4]] };
  assert.equal(count({ tensors: [buffer, { ...buffer, tied: "mean" }] }, [], []).buffers, 4n);
});
