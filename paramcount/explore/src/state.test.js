import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFragment, parseFragment } from "./state.js";

test("a state survives the address", () => {
  const state = { view: "change", ids: ["a/b, c", "gpt2"], options: { d_model: "1024", q: "ä & =?#%" } };
  assert.deepEqual(parseFragment(formatFragment(state)), state);
});

test("what is not understood is left out", () => {
  assert.deepEqual(parseFragment("#nothing/x?a"), { view: "browse", ids: ["x"], options: { a: "" } });
  assert.deepEqual(parseFragment("#change/%E0%A4%A?b=%"), { view: "change", ids: [""], options: { b: "" } });
  assert.deepEqual(parseFragment(""), { view: "browse", ids: [], options: {} });
});

test("an empty option is not written", () => {
  assert.equal(formatFragment({ view: "browse", options: { q: "", sort: "-total" } }), "#browse?sort=-total");
});
