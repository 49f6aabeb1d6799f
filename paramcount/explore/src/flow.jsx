// The flow of a model: its steps from top to bottom, and what each reads.

import { useState } from "preact/hooks";
import { listSteps } from "./count.js";
import { formatCount, formatShort } from "./format.js";

const ROW = 30; // pixels, as in the style
const LANE = 9;
const INDENT = 14;
const MOST_SCOPES = 6; // around a step

const formatShape = (shape) => (shape.length ? shape.map((n) => (typeof n === "string" ? n : formatCount(n))).join(" × ") : "1");

export function Flow({ data, model, context }) {
  const steps = listSteps(model.structure, model.values, context);
  const [chosen, choose] = useState(0);
  if (!steps) return <p>The steps of this model depend on a size, so this page does not have them. Run `paramcount trace {model.id}`.</p>;
  const rows = listRows(steps);
  const placed = new Map(rows.flatMap((row, i) => (row.step ? [[row.step.i, i]] : [])));
  const lanes = placeArcs(steps, placed);
  const indent = (i) => rows[i].depth * INDENT;
  const width = 12 + LANE * (1 + Math.max(0, ...lanes.map(({ lane }) => lane)));
  return (
    <div class="flow">
      <div class="steps">
        <svg aria-hidden="true" width={width + INDENT * MOST_SCOPES} height={rows.length * ROW}>
          {lanes.map(({ from, to, lane }) => {
            const x = width - 4 - LANE * lane;
            const [y, z] = [from * ROW + ROW / 2 + 4, to * ROW + ROW / 2 - 4];
            const start = `M${width + indent(from)} ${y}H${x + 4}Q${x} ${y} ${x} ${y + 4}`;
            return <path key={`${from}-${to}`} d={`${start}V${z - 4}Q${x} ${z} ${x + 4} ${z}H${width + indent(to)}`} />;
          })}
        </svg>
        <ol style={{ paddingLeft: `${width}px` }}>
          {rows.map((row, i) =>
            row.step ? (
              <li key={i} style={{ marginLeft: `${row.depth * INDENT}px` }}>
                <button type="button" aria-pressed={row.step.i === chosen} onClick={() => choose(row.step.i)}>
                  <i class="swatch" style={{ background: data.colors[row.step.component] ?? "var(--frame)" }} />
                  {row.step.text}
                  <small>{formatShape(row.step.out)}</small>
                </button>
              </li>
            ) : (
              <li key={i} class="scope" style={{ marginLeft: `${row.depth * INDENT}px` }}>{row.heading}</li>
            ),
          )}
        </ol>
      </div>
      <Details step={steps[chosen] ?? steps[0]} steps={steps} choose={choose} />
    </div>
  );
}

/** The steps, and a heading where layers or experts begin. */
function listRows(steps) {
  const rows = [];
  let open = [];
  for (const step of steps) {
    const names = step.scopes.map((scope) => `${scope.axis} ${scope.name} ${scope.kind} ${scope.copies}`);
    const shared = names.findIndex((name, i) => name !== open[i]);
    for (let i = shared < 0 ? names.length : shared; i < names.length; i++) rows.push({ heading: describeScope(step.scopes[i]), depth: i });
    open = names;
    rows.push({ step, depth: names.length });
  }
  return rows;
}

function describeScope({ axis, copies, active, kind }) {
  const name = axis === "expert" ? "experts" : copies === 1n ? "layer" : "layers";
  const used = axis === "expert" && active !== copies ? `, ${formatCount(active)} for each token` : "";
  return `${formatCount(copies)} ${kind ? kind + " " : ""}${name}${used}`;
}

/** Arcs from each step that is not read by the next row alone, in lanes that do not overlap. */
function placeArcs(steps, placed) {
  const arcs = steps
    .flatMap((step) => step.reads.map((read) => ({ from: placed.get(read), to: placed.get(step.i) })))
    .filter(({ from, to }) => from !== undefined && to - from > 1)
    .sort((a, b) => a.to - a.from - (b.to - b.from));
  const lanes = [];
  for (const arc of arcs) {
    let lane = 0;
    while (lanes[lane]?.some((other) => arc.from < other.to && other.from < arc.to)) lane++;
    (lanes[lane] ??= []).push(arc);
    arc.lane = lane;
  }
  return arcs;
}

function Details({ step, steps, choose }) {
  const layers = step.scopes.filter(({ axis }) => axis === "layer").reduce((n, { copies }) => n * copies, 1n);
  return (
    <section class="details" aria-live="polite" aria-labelledby="step">
      <h3 id="step">{step.text}</h3>
      <p>{describeStep(step)}</p>
      <dl class="pairs">
        {step.inputs.map((shape, i) => <><dt key={i}>Input{step.inputs.length > 1 ? ` ${i + 1}` : ""}</dt><dd>{formatShape(shape)}</dd></>)}
        {step.weights.map(([name, shape]) => <><dt key={name}>{name}</dt><dd>{formatShape(shape)}</dd></>)}
        <dt>Output</dt><dd>{formatShape(step.out)}</dd>
        <dt>FLOPs</dt>
        <dd>
          {step.flops === null ? "depend on the input"
            : step.flops === 0n ? "no matrix product"
              : `2 · ${formatCount(step.products)}${layers > 1n ? ` · ${formatCount(layers)} layers` : ""} = ${formatCount(step.flops)} (${formatShort(step.flops)})`}
        </dd>
        {step.reads.length > 0 && (
          <>
            <dt>Reads</dt>
            <dd>
              {step.reads.map((i) => (
                <button type="button" key={i} onClick={() => choose(i)}>{steps[i].text}</button>
              ))}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

/** A sentence about a step. */
function describeStep(step) {
  const weights = step.weights.map(([name]) => name).join(" and ");
  const how = step.note ? `${step.note[0].toUpperCase()}${step.note.slice(1)}. ` : "";
  return how + (weights ? `Its weights are ${weights}.` : "It has no weights.");
}
