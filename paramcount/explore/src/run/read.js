// What the steps of a pass show: heads, experts and states by layer.

import { row } from "../runtime/tensors.js";

const ofLayer = (steps, layer) => steps.filter(({ place }) => place.layer === layer && place.expert === undefined);

/** The layers of a pass, each with its steps and what they show. */
export function listLayers(steps) {
  const layers = [...new Set(steps.map(({ place }) => place.layer))].filter((layer) => layer !== undefined);
  return layers.map((layer) => {
    const inside = ofLayer(steps, layer);
    const find = (form) => inside.find(({ node }) => node.form === form);
    const experts = inside.find(({ node }) => node.operation === "Experts");
    return {
      layer,
      attention: find("ATTENTION_WEIGHTS")?.value,
      caches: inside.filter(({ node }) => node.form === "KV_CACHE"),
      scan: find("STATE_SPACE"),
      router: experts && findRouter(inside),
      nExperts: experts?.node.bodies[0].indices.length,
    };
  });
}

/** The weights of the experts, 0 for those that are not chosen: the last values before the experts with one for each. */
const findRouter = (inside) => {
  const at = inside.findIndex(({ node }) => node.operation === "Experts");
  const n = inside[at].node.bodies[0].indices.length;
  return inside.slice(0, at).findLast(({ value }) => value.shape.length === 2 && value.shape[1] === n)?.value;
};

/** The values of one token in a step: of scores and weights [heads, n, m] those of its query. None if an expert did not
 * get the token. */
export function takeToken({ value, rows, node }, at) {
  if (value.shape.length === 3 && ["SCORES", "MASK", "ATTENTION_WEIGHTS"].includes(node.form)) {
    const [heads, n, m] = value.shape;
    const found = new Float64Array(heads * m);
    for (let h = 0; h < heads; h++) found.set(value.data.subarray((h * n + at) * m, (h * n + at + 1) * m), h * m);
    return found;
  }
  const i = rows ? rows.indexOf(at) : at;
  return i < 0 ? null : row(value, i);
}

/** What can be switched off in a layer: {key, name}. */
export function listSwitches({ layer, attention, nExperts, scan }) {
  const heads = attention ? Array.from({ length: attention.shape[0] }, (_, h) => ({ key: `${layer}.${h}`, name: `head ${h}` })) : [];
  const experts = Array.from({ length: nExperts ?? 0 }, (_, e) => ({ key: `${layer}.e${e}`, name: `expert ${e}` }));
  return [...heads, ...experts, ...(scan ? [{ key: `${layer}.state`, name: "state" }] : [])];
}
