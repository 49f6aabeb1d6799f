import assert from "node:assert/strict";
import { test } from "node:test";
import { drawGrid, findNode, groupTensors } from "./tree.js";

const tensor = (name, component, parameters, more = {}) => ({
  name, component, parameters, part: "decoder", shape: [parameters], copies: 1n, layers: 1n, stack: "", kind: "", ...more,
});
const TENSORS = [
  tensor("embed", "embedding", 10n),
  tensor("layers.{layer}.q", "qkv", 12n, { stack: "layers.|", layers: 3n, copies: 3n }),
  tensor("layers.{layer}.k", "qkv", 6n, { stack: "layers.|", layers: 3n, copies: 3n }),
];

test("groups have the parameters of their tensors", () => {
  const tree = groupTensors(TENSORS, "m");
  assert.equal(tree.parameters, 28n);
  assert.deepEqual(tree.children.map(({ label, parameters }) => [label, parameters]), [["embedding", 10n], ["layers × 3", 18n]]);
  const { node, trail } = findNode(tree, ["layers.|", "qkv", "nothing"]);
  assert.deepEqual([node.label, node.parameters, trail.length], ["qkv", 18n, 3]);
});

test("groups with the same label are found by their keys", () => {
  const stack = (name, parameters) => tensor(`${name}.{layer}.q`, "qkv", parameters, { stack: `${name}.|`, layers: 3n, copies: 3n });
  const tree = groupTensors([stack("h", 6n), stack("l", 9n)], "m");
  assert.deepEqual(tree.children.map(({ label }) => label), ["layers × 3", "layers × 3"]);
  assert.deepEqual(tree.children.map(({ key }) => findNode(tree, [key]).node.parameters), [6n, 9n]);
});

test("a grid has a cell of equal area for each copy", () => {
  assert.equal(drawGrid(2n, 0, 0, 100, 10).match(/M/g).length, 1);
  assert.equal(drawGrid(7n, 0, 0, 100, 100).match(/M/g).length, 6); // each line makes one more cell
  assert.equal(drawGrid(10n ** 9n, 0, 0, 100, 100), "");
});
