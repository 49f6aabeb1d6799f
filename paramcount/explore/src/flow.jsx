// The flow of a model: the drawing that `paramcount draw` makes, in which each step is a button, and its details.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { listSteps } from "./count.js";
import { readDrawing, traceCards } from "./drawing.js";
import { formatCount, formatShort } from "./format.js";

const MARGIN = 4; // around a step, in pixels

const formatShape = (shape) => (shape.length ? shape.map((n) => (typeof n === "string" ? n : formatCount(n))).join(" × ") : "1");

export function Flow({ data, model, context }) {
  const steps = listSteps(model.structure, model.values, context);
  const [chosen, choose] = useState(0);
  return (
    <div class="flow">
      {model.drawing ? <Drawing data={data} model={model} steps={steps} chosen={chosen} choose={choose} />
        : <p>The drawing of this model is too large for this page. Run `paramcount draw {model.id}`.</p>}
      <Details data={data} model={model} step={steps[chosen]} steps={steps} choose={choose} />
    </div>
  );
}

function Drawing({ data, model, steps, chosen, choose }) {
  const [isFitted, fit] = useState(false);
  const sheet = useRef(null);
  const { boxes, lines, texts, signs, frames, places } = useMemo(() => readDrawing(model.drawing, data.roles), [model]);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) sheet.current.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
    isFirst.current = false;
  }, [chosen]);
  const [width, height] = model.drawing.size;
  return (
    <div>
      <p>
        <label><input type="checkbox" checked={isFitted} onChange={() => fit(!isFitted)} /> Fit to width.</label>{" "}
        Matrices are to scale, {model.drawing.scale} elements per pixel. Blue: activations; grey: weights; a break marks a shortened side.
      </p>
      <div class="sheet" ref={sheet}>
        <svg class={isFitted ? "drawing fitted" : "drawing"} width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={`Forward pass of ${model.name}`}>
          <defs>
            <marker id="head" viewBox="0 0 6 6" refX="5.6" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path class="head" d="M0 0L6 3L0 6Z" /></marker>
          </defs>
          <g aria-hidden="true">
            {frames.map((frame, i) => <path key={i} class="frame" d={traceCards(frame)} />)}
            {lines.map(({ path, hasHead }, i) => <path key={i} class="line" d={path} marker-end={hasHead ? "url(#head)" : undefined} />)}
            {boxes.map((box, i) => <Box key={i} box={box} />)}
            {signs.map(({ x, y, text }, i) => (
              <g key={i}><circle class="joint" cx={x} cy={y} r="8" /><text class="name" x={x} y={y + 4}>{text}</text></g>
            ))}
            {texts.map(({ x, y, role, text }, i) => <text key={i} class={role} x={x} y={y}>{text}</text>)}
          </g>
          {places.map((place, i) => <Place key={i} place={place} steps={steps} chosen={chosen} choose={choose} />)}
        </svg>
      </div>
    </div>
  );
}

function Box({ box }) {
  return (
    <>
      <path class={`${box.isData ? "data" : "weight"}${box.isUnknown ? " unknown" : ""}`} d={traceCards(box)} />
      {box.gap && <path class="gap" d={box.gap} />}
    </>
  );
}

/** The area of a step. A click chooses the step that is drawn there, or one without shapes of its own from its details. */
function Place({ place: { x, y, width, height, steps: [first, ...others] }, steps, chosen, choose }) {
  return (
    <g
      role="button"
      tabindex="0"
      aria-pressed={chosen === first || others.includes(chosen)}
      aria-label={`${steps[first].text}, ${formatShape(steps[first].out)}`}
      onClick={() => choose(first)}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(first))}
    >
      <rect x={x - MARGIN} y={y - MARGIN} width={width + 2 * MARGIN} height={height + 2 * MARGIN} rx="4" />
    </g>
  );
}

function Details({ data, model, step, steps, choose }) {
  const sentence = model.drawing?.words[model.drawing.sentences[step.i]];
  const isUsed = ({ scopes }) => scopes.every(({ copies }) => copies > 0n); // a model may have no layers of some kind
  const [before, after] = [steps.slice(0, step.i).findLast(isUsed), steps.slice(step.i + 1).find(isUsed)];
  const layers = step.scopes.filter(({ axis }) => axis === "layer");
  const times = layers.reduce((n, { copies }) => n * copies, 1n);
  return (
    <section class="details" aria-live="polite" aria-labelledby="step">
      <h3 id="step"><i class="swatch" style={{ background: data.colors[step.component] ?? "var(--frame)" }} /> {step.text}</h3>
      {sentence && <p>{sentence}</p>}
      <dl class="pairs">
        {step.scopes.map((scope, i) => <><dt key={i}>{i ? "" : "In"}</dt><dd>{describeScope(scope)}</dd></>)}
        {step.inputs.map((shape, i) => <><dt key={i}>Input{step.inputs.length > 1 ? ` ${i + 1}` : ""}</dt><dd>{formatShape(shape)}</dd></>)}
        {step.weights.map(([name, shape]) => <><dt key={name}>Weight</dt><dd>{name}: {formatShape(shape)}</dd></>)}
        <dt>Output</dt><dd>{formatShape(step.out)}</dd>
        <dt>FLOPs</dt>
        <dd>
          {step.flops === null ? "depend on the input"
            : step.flops === 0n ? "no matmul"
              : `2 · ${formatCount(step.products)}${times > 1n ? ` · ${formatCount(times)} layers` : ""} = ${formatCount(step.flops)} (${formatShort(step.flops)})`}
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
      <p class="actions">
        <button type="button" disabled={!before} onClick={() => choose(before.i)}>Previous step</button>
        <button type="button" disabled={!after} onClick={() => choose(after.i)}>Next step</button>
      </p>
    </section>
  );
}

function describeScope({ axis, copies, active, kind }) {
  const name = axis === "expert" ? "experts" : copies === 1n ? "layer" : "layers";
  const used = axis === "expert" && active !== copies ? `, ${formatCount(active)} for each token` : "";
  return `${formatCount(copies)} ${kind ? kind + " " : ""}${name}${used}`;
}
