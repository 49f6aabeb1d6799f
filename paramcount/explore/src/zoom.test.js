import assert from "node:assert/strict";
import { test } from "node:test";
import { fitView, limitView, moveView, showArea, zoomView } from "./zoom.js";

const BOX = { width: 400, height: 300 };
const SIZE = [800, 2000];

test("a drawing begins at its top, and as a whole it is in the box", () => {
  assert.deepEqual(fitView(BOX, SIZE), { x: 0, y: 0, scale: 0.9 });
  const whole = fitView(BOX, SIZE, true);
  assert.equal(whole.scale, 300 / 2000);
  assert.equal(whole.x + 400 / whole.scale / 2, 400); // its middle is that of the box
});

test("zooming keeps the point under the pointer where it is", () => {
  const view = { x: 100, y: 500, scale: 1 };
  const after = zoomView(view, 2, 200, 150, BOX, SIZE);
  assert.deepEqual(after, { x: 200, y: 575, scale: 2 });
  assert.equal(after.x + 200 / after.scale, view.x + 200 / view.scale);
});

test("a drawing never leaves the box", () => {
  assert.deepEqual(moveView({ x: 0, y: 0, scale: 1 }, 50, 50, BOX, SIZE), { x: 0, y: 0, scale: 1 });
  assert.deepEqual(moveView({ x: 0, y: 0, scale: 1 }, -9999, -9999, BOX, SIZE), { x: 400, y: 1700, scale: 1 });
  assert.equal(limitView({ x: 0, y: 0, scale: 100 }, BOX, SIZE).scale, 4);
});

test("an area outside of the view is moved into it, one inside leaves it as it is", () => {
  const view = { x: 0, y: 0, scale: 1 };
  assert.deepEqual(showArea(view, { x: 100, y: 100, width: 50, height: 50 }, BOX, SIZE), view);
  assert.deepEqual(showArea(view, { x: 100, y: 900, width: 50, height: 50 }, BOX, SIZE), { x: 0, y: 674, scale: 1 });
});
