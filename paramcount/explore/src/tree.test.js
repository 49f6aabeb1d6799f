import assert from "node:assert/strict";
import { test } from "node:test";
import { drawGrid, findNeighbour, findNode, groupTensors, nameInBlock } from "./tree.js";

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

test("stacks of equally many layers have labels and keys of their own", () => {
  const stack = (name, parameters) => tensor(`${name}.{layer}.q`, "qkv", parameters, { stack: `${name}.|`, layers: 3n, copies: 3n });
  const tree = groupTensors([stack("h", 6n), stack("l", 9n)], "m");
  assert.deepEqual(tree.children.map(({ label }) => label), ["h × 3", "l × 3"]);
  assert.deepEqual(tree.children.map(({ key }) => findNode(tree, [key]).node.parameters), [6n, 9n]);
});

test("layers of one stack that differ in some tensors are one group with the number of all of them", () => {
  const stack = { stack: "block.|" };
  const tree = groupTensors(
    [
      tensor("block.{layer}.norm", "norm", 2n, { ...stack, shape: [2n], layers: 1n, copies: 1n }),
      tensor("block.{layer}.bias", "qkv", 7n, { ...stack, shape: [7n], layers: 1n, copies: 1n }),
      tensor("block.{layer}.norm", "norm", 46n, { ...stack, shape: [2n], layers: 23n, copies: 23n }),
    ],
    "m",
  );
  assert.deepEqual(tree.children.map(({ label, parameters }) => [label, parameters]), [["layers × 24", 55n]]);
  const [norm, bias] = tree.children[0].children.flatMap(({ children }) => children);
  assert.deepEqual([norm.count, norm.parameters, bias.count], [24n, 48n, 1n]);
});

test("tensors of one name with other shapes are two rectangles with keys of their own", () => {
  const layer = (n) => tensor("block.{layer}.mlp", "mlp", n, { stack: "block.|", shape: [n], layers: 1n, copies: 1n });
  const [group] = groupTensors([layer(2n), layer(3n)], "m").children[0].children;
  assert.equal(new Set(group.children.map(({ key }) => key)).size, 2);
});

test("a grid has a cell of equal area for each copy", () => {
  assert.equal(drawGrid(2n, 0, 0, 100, 10).match(/M/g).length, 1);
  assert.equal(drawGrid(7n, 0, 0, 100, 100).match(/M/g).length, 6); // each line makes one more cell
  assert.equal(drawGrid(10n ** 9n, 0, 0, 100, 100), "");
});

test("groups have the names of their components, tensors titles and the block that they are in", () => {
  const named = { names: { qkv: "queries, keys and values" }, places: { qkv: "attention" } };
  const tree = groupTensors([tensor("h.{layer}.q_proj.weight", "qkv", 6n, { title: "queries" })], "m", named);
  const [group] = tree.children;
  assert.deepEqual([group.label, group.key], ["queries, keys and values", "qkv"]);
  const [{ label, name, place }] = group.children;
  assert.deepEqual([label, name, place], ["queries", "h.{layer}.q_proj.weight", "attention: queries"]);
  assert.equal(nameInBlock("router", "router"), "router");
});

test("an arrow leads to the nearest rectangle on its way", () => {
  const [left, above, below] = [[0, 0, 10, 20], [10, 0, 20, 5], [10, 5, 20, 20]].map(([x0, y0, x1, y1]) => ({ x0, y0, x1, y1 }));
  const all = [left, above, below];
  assert.equal(findNeighbour(all, 0, "ArrowRight"), 2);
  assert.equal(findNeighbour(all, 2, "ArrowUp"), 1);
  assert.equal(findNeighbour(all, 2, "ArrowLeft"), 0);
  assert.equal(findNeighbour(all, 0, "ArrowLeft"), undefined);
  assert.equal(findNeighbour(all, 0, "Enter"), undefined);
});
