import assert from "node:assert/strict";
import test from "node:test";
import { readDrawing, traceCards } from "./drawing.js";

const DRAWING = {
  boxes: [[10, 20, 30, 40, 1], [5, -5, 8, 8, 4, 3, 6]],
  lines: [[1, 1, 2, 3, 0], [0, -4, 5, 0, 5]],
  texts: [[7, 8, 1, 0], [1, 1, 0, 1]],
  signs: [[4, 4, 2]],
  frames: [[0, 0, 100, 90, 3, 8]],
  places: [[9, 9, 20, 20, 4], [10, 0, 5, 5, 6, 5]],
};

test("positions are the sums of the ways to them", () => {
  const { boxes, lines, texts, places } = readDrawing({ ...DRAWING, words: ["queries", "[1, 768]", "+"] }, ["shape", "name"]);
  assert.deepEqual(boxes.map(({ x, y }) => [x, y]), [[10, 20], [15, 15]]);
  assert.deepEqual(lines, [{ hasHead: true, path: "M1 2L4 2" }, { hasHead: false, path: "M0 7L0 12" }]);
  assert.deepEqual(texts, [{ x: 7, y: 8, role: "name", text: "queries" }, { x: 8, y: 9, role: "shape", text: "[1, 768]" }]);
  assert.deepEqual(places.map(({ x, y, steps }) => [x, y, steps]), [[9, 9, [4]], [19, 9, [6, 5]]]);
});

test("a box knows what it is and where it is cut off", () => {
  const [data, weight] = readDrawing({ ...DRAWING, words: [] }, []).boxes;
  assert.deepEqual([data.isData, data.isUnknown, data.gap], [true, false, ""]);
  assert.deepEqual([weight.isData, weight.gap], [false, "M19 12v14"]);
});

test("the cards of a stack go back to the right and up, the last one first", () => {
  assert.equal(traceCards({ x: 0, y: 9, width: 4, height: 2, cards: 3, depth: 6 }), "M6 3h4v2h-4zM3 6h4v2h-4zM0 9h4v2h-4z");
});
