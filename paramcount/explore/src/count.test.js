import assert from "node:assert/strict";
import { test } from "node:test";
import { count, countFlops, explainFlops, findList, listTensors, nameFlops, shareActive } from "./count.js";

const FLOPS = { total: ["*", 3, "d", "window"], components: { mlp: ["*", "d", "window"] }, expanded: ["*", "n", "context"] };
const flow = (change = {}) => ({
  sizes: [["d"], ["n"]],
  flow: { steps: [], windows: { window: ["min", "n", "context"] }, flops: FLOPS, ...change },
});

test("FLOPs depend on the sizes, on the context and on what windows leave of it", () => {
  assert.deepEqual(countFlops(flow(), [5n, 7n], 9n), { total: 105n, components: { mlp: 35n }, expanded: 63n });
  assert.deepEqual(countFlops(flow(), [5n, 7n], 2n), { total: 30n, components: { mlp: 10n }, expanded: 14n });
});

test("a model that decodes no tokens has the FLOPs of a pass", () => {
  assert.equal(nameFlops(flow({ decodes: false }), 1024n), "FLOPs of a forward pass over 1,024 tokens");
  assert.equal(nameFlops(flow({ decodes: true }), 1024n), "FLOPs per decoded token");
});

test("steps that were exported for one model have no FLOPs at other sizes", () => {
  const structure = flow({ only: { d: 5, n: 7 } });
  assert.equal(countFlops(structure, [5n, 7n], 9n).total, 105n);
  assert.equal(countFlops(structure, [5n, 8n], 9n), null);
  assert.equal(explainFlops(structure, [5n, 8n]), "known for the published sizes only");
});

test("FLOPs of a step that reads an image are not known", () => {
  const structure = flow({ flops: null });
  assert.equal(countFlops(structure, [5n, 7n], 9n), null);
  assert.equal(explainFlops(structure, [5n, 7n]), "depend on an input other than text");
});

test("a size that a list fixes is found", () => {
  const check = (size, n, where) => ["if", ["=", size, n], null, { where, text: [`${where} has another length`] }];
  const structure = {
    sizes: [["n_layers", 1, 99], ["n_heads", 1, 99]],
    structure: { layer_types: "12 × full" },
    checks: [check("n_layers", 12, "layer_types"), check("n_heads", 4, "n_heads × d_head")],
  };
  assert.equal(findList(structure, [12n, 4n], 0), "layer_types");
  assert.equal(findList(structure, [12n, 4n], 1), undefined);
});

test("active components are those of all parameters where they do not differ", () => {
  const counts = { total: 9, active: 8, active_min: 7, components: { mlp: "d", norm: 1 }, active_components: { mlp: 2 } };
  const found = count({ sizes: [["d"]], tied: true, counts: { ...counts, details: {}, parts: { decoder: 9 } } }, [5n]);
  assert.deepEqual(found.activeComponents, { mlp: 2n, norm: 1n });
  assert.deepEqual([found.total, found.active, found.activeMin, found.components.mlp, found.tied], [9n, 8n, 7n, 5n, true]);
});

test("tensors that the total does not include are not in the map", () => {
  const tensor = { name: "h.{layer}.w", title: "up", shape: ["d", 2], copies: 3, elements: ["*", 6, "d"], part: "decoder" };
  const tensors = [{ ...tensor, component: "mlp", layers: [3, "dense", "h.|dense"] }, tensor];
  assert.deepEqual(listTensors({ sizes: [["d"]], tensors }, [4n]), [{
    name: "h.{layer}.w", title: "up", part: "decoder", component: "mlp", shape: [4n, 2n], copies: 3n, layers: 3n, stack: "h.|dense",
    kind: "dense", parameters: 24n,
  }]);
});

test("the share of a component that one token uses is told where it is not all of it", () => {
  const shares = shareActive({ components: { mlp: 6n, experts: 256n, norm: 0n }, activeComponents: { mlp: 6n, experts: 8n, norm: 0n } });
  assert.deepEqual(shares, { experts: 1 / 32 });
});
