import assert from "node:assert/strict";
import test from "node:test";

import { Blocks, decodeBase85, readLines, readRecords } from "./blocks.js";

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

test("records are read from the columns of their kind, in their order; other values as they are", () => {
  const kinds = [{ keys: ["a", "b"], columns: [[1, 4], [2, 5]] }, { keys: ["a"], columns: [[3]] }];
  assert.deepEqual(readRecords({ order: [0, 1, 0], kinds }), [{ a: 1, b: 2 }, { a: 3 }, { a: 4, b: 5 }]);
  assert.deepEqual(readRecords([1, "b"]), [1, "b"]);
});

test("lines are blocks of the fields that the first one names", () => {
  const text = '{"ids":["m"],"layout":[["words",2,3],["none",5,0],["parts",9,1]],"fields":{"gpus":["ü"],"layout":7}}\n["a","b"]\n["c"]\n[7]\n';
  const { ids, gpus, layout, words, none, parts } = readLines(text.trim().split("\n").map((line) => new TextEncoder().encode(line)));
  assert.deepEqual([ids, gpus, layout, words.list(), none.list(), parts.get(0)], [["m"], ["ü"], 7, ["a", "b", "c"], [], 7]);
});

test("a block is read when it is first needed, and once", () => {
  let reads = 0;
  const blocks = new Blocks([() => [1, 2], () => (reads++, [3])], 2, 3);
  assert.deepEqual([blocks.get(0), reads, blocks.get(2), blocks.get(2), reads], [1, 0, 3, 3, 1]);
});
