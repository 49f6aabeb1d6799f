import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCommand, formatConfig, formatYaml } from "./copies.js";

const PUBLISHED = { changes: {} };
const YAML = "id: m\nconfig:\n  d_model: 8\n  vision:\n    d_model: 4\n  tie: false\nnotes:\n- d_model: 8\n";
const CONFIG = {
  document: { model_type: "m", hidden_size: 8, vision_config: { hidden_size: 4 }, tie: false },
  keys: { d_model: ["hidden_size"], "vision.d_model": ["vision_config", "hidden_size"], tie: ["tie"] },
  derived: {},
  coupled: {},
};

test("a command quotes what a shell would read", () => {
  assert.equal(formatCommand({ id: "m" }, PUBLISHED, [["d_model", 9n]]), "paramcount m --set d_model=9\n");
  assert.equal(formatCommand({ id: "$(x)'" }, { changes: { tie: "true" } }, []), "paramcount '$(x)'\\''' --set tie=true\n");
});

test("an entry has the changed sizes in their blocks", () => {
  const changed = [["vision.d_model", 5n]];
  assert.equal(formatYaml({ yaml: YAML }, PUBLISHED, changed), YAML.replace("    d_model: 4", "    d_model: 5"));
  assert.equal(formatYaml({ yaml: YAML }, { changes: { tie: "true" } }, []), YAML.replace("tie: false", "tie: true"));
  const listed = "config:\n  kinds:\n  - a\n  - b\n  n: 2\n";
  assert.equal(formatYaml({ yaml: listed }, { changes: { kinds: '["a", "a"]' } }, []), 'config:\n  kinds: ["a", "a"]\n  n: 2\n');
  assert.equal(formatYaml({ yaml: null }, PUBLISHED, []), null);
});

const SIZES = { structure: { sizes: [["d_model"], ["n_heads"], ["d_head"], ["n_patches"]] }, values: [8n, 2n, 4n, 9n] };

test("an entry is accessed on the day of the copy", () => {
  const yaml = "sources:\n  - {id: config, accessed: 0001-01-01}\n";
  assert.equal(formatYaml({ yaml }, PUBLISHED, [], new Date(2026, 1, 3)), "sources:\n  - {id: config, accessed: 2026-02-03}\n");
});

test("a config.json has the changed sizes at their keys", () => {
  const vision = { structure: { sizes: [["d_model"], ["vision.d_model"]] }, values: [8n, 4n] };
  const { text } = formatConfig({ config: CONFIG }, { changes: { tie: "true" }, ...vision }, [["vision.d_model", 5n]]);
  assert.deepEqual(JSON.parse(text), { model_type: "m", hidden_size: 8, vision_config: { hidden_size: 5 }, tie: true });
});

test("a derived size is copied if the keys give it, otherwise the reason is", () => {
  const config = {
    document: { hidden_size: 8, num_heads: 2 },
    keys: { d_model: ["hidden_size"] },
    derived: { d_head: ["//", "d_model", "n_heads"], n_patches: ["if", ["<", 0, "d_model"], 9, null] },
    coupled: { n_heads: "groups" },
  };
  const format = (...changed) => formatConfig({ config }, { changes: {}, ...SIZES }, changed);
  assert.deepEqual(JSON.parse(format(["d_model", 12n], ["d_head", 6n]).text), { hidden_size: 12, num_heads: 2 });
  assert.equal(format(["d_model", 12n]).reason, "d_head = 4 has no key, and the other sizes make it 6");
  assert.equal(format(["n_patches", 4n]).reason, "n_patches = 4 has no key, and the other sizes make it 9");
  assert.equal(format(["n_heads", 4n]).reason, "the key of n_heads also changes groups");
  assert.equal(format(["unknown", 1n]).reason, "unknown has no key of its own");
  assert.equal(format(["d_model", 0n], ["d_head", 0n]).reason, "n_patches = 9 has no key, and the other sizes do not give it");
  assert.deepEqual(formatConfig({ config: { reason: "None." } }, { changes: {}, ...SIZES }, []), { reason: "None." });
});
