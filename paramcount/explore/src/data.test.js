import assert from "node:assert/strict";
import test from "node:test";

import { decodeBase85, merge, readRecords } from "./data.js";

test("base85 is decoded as Python encodes it, whatever the length of the last group", () => {
  // base64.b85encode of "", "a", "ab", "abc", "abcd", "abcde" and four bytes of 255
  const texts = ["", "VE", "VPX", "VPaz", "VPa!s", "VPa!sWd", "|NsC0"];
  const bytes = texts.map((text) => [...decodeBase85(text)]);
  const letters = [97, 98, 99, 100, 101];
  assert.deepEqual(bytes.slice(0, 6), [0, 1, 2, 3, 4, 5].map((n) => letters.slice(0, n)));
  assert.deepEqual(bytes[6], [255, 255, 255, 255]);
});

test("characters that HTML could read have others in their place", () => {
  // base64.b85encode of these bytes is "0_&>("
  assert.deepEqual([...decodeBase85("0_.:(")], [2, 235, 170, 255]);
});

test("records are read from the columns of their kind, in their order", () => {
  const kinds = [{ keys: ["a", "b"], columns: [[1, 4], [2, 5]] }, { keys: ["a"], columns: [[3]] }];
  const found = readRecords({ models: { order: [0, 1, 0], kinds }, version: "1", gpus: [] });
  assert.deepEqual(found, { models: [{ a: 1, b: 2 }, { a: 3 }, { a: 4, b: 5 }], version: "1", gpus: [] });
});

test("the models of several elements are found by their ids, which aliases do not hide", () => {
  const [first, second] = [{ id: "a", aliases: ["b"] }, { id: "b", aliases: [] }];
  const data = merge([{ gpus: [1], models: [first] }, { gpus: [2], models: [second] }]);
  assert.deepEqual([data.gpus, data.models, data.byId.get("b")], [[1], [first, second], second]);
});
