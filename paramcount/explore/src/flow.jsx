// The flow of a model: the drawing that `paramcount draw` makes, in which each step is a button, and its details.

import { useMemo, useRef } from "preact/hooks";
import { listSteps, listTensors } from "./count.js";
import { readDrawing, traceCards } from "./drawing.js";
import { formatCount, formatShort } from "./format.js";
import { nameInBlock } from "./tree.js";
import { Viewport } from "./viewport.jsx";

const MARGIN = 4; // around a step, in pixels

const formatShape = (shape) => (shape.length ? shape.map((n) => (typeof n === "string" ? n : formatCount(n))).join(" × ") : "1");

/** The name of a step with the block that it is in: "attention: queries", "expert 1 of 256: gate". */
function nameStep({ text, component, scopes }, blocks = {}) {
  const experts = scopes.find(({ axis }) => axis === "expert");
  return nameInBlock(experts ? `expert 1 of ${formatCount(experts.copies)}` : blocks[component], text);
}

export function Flow({ data, model, context, state, go }) {
  const steps = useMemo(
    () => (listSteps(model.structure, model.values, context) ?? []).map((step) => ({ ...step, name: nameStep(step, data.places) })),
    [model],
  );
  const chosen = /^[0-9]+$/.test(state.options.step ?? "") && steps[state.options.step - 1] ? Number(state.options.step) - 1 : 0;
  const choose = (i) => go({ ids: [model.id], options: { ...state.options, step: i + 1 } });
  if (!steps.length) return <p>The steps of this model are not on this page. Run <code>paramcount trace {model.id}</code>.</p>;
  return (
    <div class="flow">
      {model.drawing ? <Drawing data={data} model={model} steps={steps} chosen={chosen} choose={choose} isAsked={Boolean(state.options.step)} />
        : <p>The drawing of this model is too large for this page. Run <code>paramcount draw {model.id}</code>.</p>}
      <Details data={data} model={model} step={steps[chosen]} steps={steps} choose={choose} />
    </div>
  );
}

function Drawing({ data, model, steps, chosen, choose, isAsked }) {
  const { boxes, lines, texts, signs, frames, places } = useMemo(() => readDrawing(model.drawing, data.roles), [model]);
  const buttons = useRef(null);
  const at = Math.max(0, places.findIndex(({ steps: all }) => all.includes(chosen)));
  const keys = ({ key }) => {
    const ways = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: places.length - 1 };
    const next = places[ways[key]];
    if (!next) return false;
    choose(next.steps[0]);
    buttons.current.children[ways[key]].focus({ preventScroll: true });
    return true;
  };
  return (
    <div>
      <p>
        Matrices are to scale, {model.drawing.scale} elements per pixel. Blue: activations; grey: weights; a break marks a shortened side.
        Drag to move; pinch, Ctrl + wheel, + and − zoom; 0 or Escape shows all; the arrow keys go from step to step.
      </p>
      <Viewport size={model.drawing.size} area={isAsked ? places[at] : undefined} label={`Forward pass of ${model.name}`} keys={keys}>
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
        <g ref={buttons}>
          {places.map((place, i) => <Place key={i} place={place} steps={steps} chosen={chosen} choose={choose} isCurrent={i === at} />)}
        </g>
      </Viewport>
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
function Place({ place: { x, y, width, height, steps: [first, ...others] }, steps, chosen, choose, isCurrent }) {
  const names = steps[first].weights.map(([name]) => name);
  return (
    <g
      role="button"
      tabindex={isCurrent ? 0 : -1}
      aria-pressed={chosen === first || others.includes(chosen)}
      aria-label={`${steps[first].name}, ${formatShape(steps[first].out)}`}
      onClick={() => choose(first)}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(first))}
    >
      <title>{[steps[first].name, ...names].join("\n")}</title>
      <rect x={x - MARGIN} y={y - MARGIN} width={width + 2 * MARGIN} height={height + 2 * MARGIN} rx="4" />
    </g>
  );
}

function Details({ data, model, step, steps, choose }) {
  const tensors = useMemo(() => new Map(listTensors(model.structure, model.values).map((tensor) => [tensor.name, tensor])), [model]);
  const sentence = model.drawing?.words[model.drawing.sentences[step.i]];
  const [what, why, paper, url] = data.lessons?.[step.lesson] ?? [];
  const isUsed = ({ scopes }) => scopes.every(({ copies }) => copies > 0n); // a model may have no layers of some kind
  const [before, after] = [steps.slice(0, step.i).findLast(isUsed), steps.slice(step.i + 1).find(isUsed)];
  const layers = step.scopes.filter(({ axis }) => axis === "layer");
  const times = layers.reduce((n, { copies }) => n * copies, 1n);
  return (
    <section class="details" aria-live="polite" aria-labelledby="step">
      <h3 id="step">{data.colors[step.component] && <><i class="swatch" style={{ background: data.colors[step.component] }} /> </>}{step.name}</h3>
      {what && <p>{what}</p>}
      {why && <p class="why">Why: {why}</p>}
      {url && <p>Read: <a href={url} rel="noopener">{paper}</a></p>}
      {sentence && !sentence.startsWith("An input of") && <p><small>Here: {sentence}</small></p>}
      <dl class="pairs">
        {step.scopes.map((scope, i) => <><dt key={i}>{i ? "" : "In"}</dt><dd>{describeScope(scope)}</dd></>)}
        {step.inputs.map((shape, i) => <><dt key={i}>Input{step.inputs.length > 1 ? ` ${i + 1}` : ""}</dt><dd>{formatShape(shape)}</dd></>)}
        {step.weights.map(([name, shape]) => <WeightUse key={name} name={name} shape={shape} tensor={tensors.get(name)} />)}
        <dt>Output</dt><dd>{formatShape(step.out)}{step.axes?.length > 0 && ` (${step.axes.join(" × ")})`}</dd>
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
                <button type="button" key={i} onClick={() => choose(i)}>{steps[i].name}</button>
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

/** A weight: its shape, and its parameters in all layers and experts if the total includes it. */
function WeightUse({ name, shape, tensor }) {
  const one = tensor?.shape.reduce((n, size) => n * size, 1n);
  return (
    <>
      <dt>Weight</dt>
      <dd>
        {tensor?.title ? `${tensor.title}: ` : ""}{formatShape(shape)}
        {tensor && ` = ${formatCount(one)} parameters`}
        {tensor?.copies > 1n && ` × ${formatCount(tensor.copies)} copies = ${formatCount(tensor.parameters)}`}
        <br /><code>{name}</code>
      </dd>
    </>
  );
}

function describeScope({ axis, copies, active, kind }) {
  const name = axis === "expert" ? "experts" : copies === 1n ? "layer" : "layers";
  const used = axis === "expert" && active !== copies ? `, ${formatCount(active)} for each token` : "";
  return `${formatCount(copies)} ${kind ? kind + " " : ""}${name}${used}`;
}
