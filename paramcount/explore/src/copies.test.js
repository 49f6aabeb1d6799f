import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCommand, formatConfig, formatYaml } from "./copies.js";

const PUBLISHED = { changes: {} };
const YAML = "id: m\nconfig:\n  d_model: 8\n  vision:\n    d_model: 4\n  tie: false\nnotes:\n- d_model: 8\n";
const CONFIG = {
  document: { model_type: "m", hidden_size: 8, vision_config: { hidden_size: 4 }, tie: false },
  keys: { d_model: ["hidden_size"], "vision.d_model": ["vision_config", "hidden_size"], tie: ["tie"] },
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

test("a config.json has the changed sizes at their keys", () => {
  const config = JSON.parse(formatConfig({ config: CONFIG }, { changes: { tie: "true" } }, [["vision.d_model", 5n]]));
  assert.deepEqual(config, { model_type: "m", hidden_size: 8, vision_config: { hidden_size: 5 }, tie: true });
  assert.equal(formatConfig({ config: CONFIG }, PUBLISHED, [["unknown", 1n]]), null);
});
