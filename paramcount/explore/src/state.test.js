import assert from "node:assert/strict";
import { test } from "node:test";
import { findUnknown, formatFragment, nameState, parseFragment } from "./state.js";

const BY_ID = new Map([["gpt2", { name: "GPT-2" }], ["a/b, c", { name: "A" }]]);

test("a state survives the address", () => {
  const state = { view: "change", ids: ["a/b, c", "gpt2"], options: { d_model: "1024", q: "ä & =?#%" } };
  assert.deepEqual(parseFragment(formatFragment(state)), state);
});

test("a repo id in an address reads as people write it", () => {
  assert.equal(formatFragment({ view: "model", ids: ["Qwen/Qwen3-8B"] }), "#model/Qwen/Qwen3-8B");
});

test("an address without a view is the start, and what cannot be read is empty", () => {
  assert.deepEqual(parseFragment(""), { view: "start", ids: [], options: {} });
  assert.deepEqual(parseFragment("#change/%E0%A4%A?b=%"), { view: "change", ids: [""], options: { b: "" } });
});

test("an unknown view and an unknown model are told apart from what the page has", () => {
  const unknown = (fragment) => findUnknown(parseFragment(fragment), BY_ID);
  assert.deepEqual(unknown("#nothing/gpt2"), { view: "nothing" });
  assert.deepEqual(unknown("#toString"), { view: "toString" });
  assert.deepEqual(unknown("#compare/gpt2,gpt3"), { id: "gpt3" });
  assert.deepEqual(unknown("#change/%E0%A4%A"), { id: "" });
  assert.equal(unknown("#inside/gpt2"), null);
  assert.equal(unknown("#browse/gone"), null); // a selection from before
});

test("the title of the window names the view and its models", () => {
  const title = (fragment) => nameState(parseFragment(fragment), BY_ID, { fit: "Does it fit?", browse: "All models" });
  assert.equal(title(""), "paramcount");
  assert.equal(title("#model/gpt2"), "GPT-2 · paramcount");
  assert.equal(title("#fit/gpt2"), "Does it fit? · GPT-2 · paramcount");
  assert.equal(title("#browse"), "All models · paramcount");
});

test("an empty option is not written", () => {
  assert.equal(formatFragment({ view: "browse", options: { q: "", sort: "-total" } }), "#browse?sort=-total");
});
