// The steps of a pass, one after the other, as `paramcount trace` lists them, with the values of one token.

import { Heat, formatRange } from "./heat.jsx";
import { takeToken } from "./read.js";

const nameStep = ({ node, place }) => (place.expert === undefined ? node.title : `${node.title}, expert ${place.expert}`);

const formatShape = (shape) => `[${shape.join(", ")}]`;

export function Steps({ model, steps, at, tokens, sentences, chosen, choose }) {
  const groups = [];
  steps.forEach((step, i) => {
    const layer = step.place.layer;
    if (!groups.length || groups.at(-1).layer !== layer) groups.push({ layer, name: layer === undefined ? (i ? "After the layers" : "Before the layers") : `Layer ${layer}`, steps: [] });
    groups.at(-1).steps.push({ ...step, i });
  });
  const current = steps[chosen] ?? steps[0];
  const open = groups.findIndex((group) => group.steps.some(({ i }) => steps[i] === current));
  const move = (by) => choose(Math.min(steps.length - 1, Math.max(0, steps.indexOf(current) + by)));
  const values = takeToken(current, at);
  const follow = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    move(by);
    const buttons = [...event.currentTarget.querySelectorAll("button")];
    buttons[buttons.indexOf(document.activeElement) + by]?.focus();
  };
  return (
    <section class="steps">
      <h3>Step by step</h3>
      <p>
        Every operation in order, as <code>paramcount trace {model.id}</code> lists them, with the values of <b>{tokens[at]}</b>, token {at + 1}: blue below 0, orange above.
      </p>
      <nav class="actions" aria-label={`Parts of ${model.id}`}>
        {groups.map((group, g) => (
          <button type="button" key={g} aria-pressed={g === open} onClick={() => choose(group.steps[0].i)}>{group.name}</button>
        ))}
      </nav>
      <div class="flow">
        <ol onKeyDown={follow}>
          {groups[open].steps.map((step) => {
            const own = takeToken(step, at);
            return (
              <li key={step.i}>
                <button type="button" aria-pressed={steps[step.i] === current} onClick={() => choose(step.i)}>{nameStep(step)}</button>
                {own ? <Heat values={own} label={`${nameStep(step)}: ${formatRange(own)}`} /> : <small>not for this token</small>}
              </li>
            );
          })}
        </ol>
        <div class="details" aria-live="polite">
          <h4>{nameStep(current)}</h4>
          <p>{sentences[current.node.operation]}</p>
          <dl class="pairs">
            <dt>Operation</dt><dd>{current.node.label}</dd>
            {current.node.note && <><dt>Here</dt><dd>{current.node.note}</dd></>}
            <dt>Output</dt><dd>{formatShape(current.value.shape)}</dd>
            {(current.node.weights ?? []).map(({ name, shape }) => <><dt key={name}>Weight</dt><dd>{fillName(name, current.place)} {formatShape(shape)}</dd></>)}
            <dt>This token</dt><dd>{values ? `${values.length} values, ${formatRange(values)}` : "not routed to this expert"}</dd>
          </dl>
          {values && <Heat values={values} width={Math.min(values.length, 24)} label={`All values: ${formatRange(values)}`} />}
          <p class="actions">
            <button type="button" disabled={current === steps[0]} onClick={() => move(-1)}>Previous step</button>
            <button type="button" disabled={current === steps.at(-1)} onClick={() => move(1)}>Next step</button>
          </p>
        </div>
      </div>
    </section>
  );
}

const fillName = (name, place) => name.replace(/\{(\w+)\}/g, (_, axis) => place[axis]);
