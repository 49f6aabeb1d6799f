// The forward pass of an exported flow: every operation in order, layer by layer, with what it keeps for later tokens.

import { OPERATIONS } from "./operations.js";
import { row, tensor } from "./tensors.js";

const fill = (name, place) => name.replace(/\{(\w+)\}/g, (_, axis) => place[axis]);

/** One model and the states of its operations. `off`: what is switched off: "0.1" (layer, head), "0.e2", "0.state". */
export class Evaluation {
  constructor({ flow, weights }, off = new Set()) {
    Object.assign(this, { flow, weights, off, states: new Map(), nPast: 0 });
  }

  /** Logits of further tokens, [n, vocabulary]; `steps` has every value on the way: {node, place, value, rows}. */
  run(ids) {
    this.positions = ids.map((_, i) => this.nPast + i);
    this.steps = [];
    const logits = this.runBody(this.flow, [tensor([ids.length], Float64Array.from(ids))], {}, "");
    this.nPast += ids.length;
    return logits;
  }

  /** The output of a layer or an expert. `place`: its indices by axis. `path`: identifies the states inside. `rows`: of
   * the tokens that an expert is given. */
  runBody(body, given, place, path, rows = null) {
    const values = [];
    body.inputs.forEach((at, i) => (values[at] = given[i]));
    body.nodes.forEach((node, i) => {
      if (values[i]) return;
      const inputs = node.inputs.map((at) => values[at]);
      values[i] = node.operation === "Input" ? given[0] : this.compute(node, inputs, place, `${path}/${i}`, rows);
    });
    return values[body.out];
  }

  compute(node, inputs, place, path, rows) {
    if (node.operation === "Layers") {
      const layers = node.bodies.flatMap((body) => body.indices.map((index) => ({ body, index })));
      layers.sort((a, b) => a.index - b.index);
      return layers.reduce((x, { body, index }) => this.runBody(body, [x], { ...place, layer: index }, `${path}/${index}`), inputs[0]);
    }
    if (node.operation === "Experts") return this.keep(node, place, path, rows, this.runExperts(node, inputs, place, path));
    const compute = OPERATIONS[node.operation];
    if (!compute) throw new Error(`the operation ${node.operation} is not computed`);
    if (!this.states.has(path)) this.states.set(path, {});
    const value = compute({
      parameters: node.parameters,
      inputs,
      weights: (node.weights ?? []).map(({ name }) => this.weights.get(fill(name, place))),
      positions: this.positions,
      state: this.states.get(path),
      shape: node.shape,
      isOff: this.off.has(`${place.layer}.state`),
    });
    if (node.form === "WEIGHTED_VALUES") this.switchHeads(value, place.layer);
    return this.keep(node, place, path, rows, value);
  }

  keep(node, place, path, rows, value) {
    this.steps.push({ node, place, path, rows, value, state: this.states.get(path) });
    return value;
  }

  /** The output of heads that are off is 0. */
  switchHeads({ shape: [n, heads, d], data }, layer) {
    for (let h = 0; h < heads; h++) {
      if (!this.off.has(`${layer}.${h}`)) continue;
      for (let t = 0; t < n; t++) data.fill(0, (t * heads + h) * d, (t * heads + h + 1) * d);
    }
  }

  /** The outputs of the chosen experts, weighted; those that are off add nothing. */
  runExperts({ bodies: [body] }, [x, weights], place, path) {
    const out = tensor(x.shape);
    const [n, nExperts] = weights.shape;
    for (let e = 0; e < nExperts; e++) {
      const rows = [...Array(n).keys()].filter((t) => weights.data[t * nExperts + e] !== 0);
      if (!rows.length || this.off.has(`${place.layer}.e${e}`)) continue;
      const given = tensor([rows.length, ...x.shape.slice(1)]);
      rows.forEach((t, i) => row(given, i).set(row(x, t)));
      const index = body.indices[e];
      const y = this.runBody(body, [given], { ...place, expert: index }, `${path}/${index}`, rows);
      rows.forEach((t, i) => row(out, t).forEach((_, c, values) => (values[c] += row(y, i)[c] * weights.data[t * nExperts + e])));
    }
    return out;
  }
}
