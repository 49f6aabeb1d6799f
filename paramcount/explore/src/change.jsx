// One model with its sizes to change: every count, formula, cache and cost follows, beside the published ones.

import { useMemo, useRef, useState } from "preact/hooks";
import { Bar } from "./bar.jsx";
import { describeDifference, findNearestValid, listChanges, readVariant } from "./changes.js";
import { readChoice } from "./choices.js";
import { formatCommand, formatConfig, formatYaml } from "./copies.js";
import { count, countCache, countFlops, explainFlops, findErrors, findList, nameFlops, nameValues } from "./count.js";
import { copyText } from "./clipboard.js";
import { chooseModel, countPublished } from "./data.js";
import { CHOICES, Fitting } from "./fit.jsx";
import { countWeights } from "./memory.js";
import { fillFormula, formatBytes, formatCount, formatShare, formatShort } from "./format.js";
import { ModelPicker } from "./picker.jsx";
import { formatFragment } from "./state.js";

export function Change({ data, state, go }) {
  const model = chooseModel(data, state);
  const { options } = state;
  const { variant, values } = readVariant(model, options);
  const { structure } = variant;
  const errors = findErrors(structure, values);
  const valid = useRef({});
  if (valid.current.variant !== variant) valid.current = { variant, values: variant.values };
  if (!errors.length) valid.current.values = values;
  const shown = valid.current.values;
  const lists = useMemo(() => variant.values.map((_, i) => findList(structure, variant.values, i)), [variant]);
  const set = (chosen) => go({ ids: [model.id], options: { ...options, ...chosen } });
  const setSize = (i, value) => set({ [structure.sizes[i][0]]: value === variant.values[i].toString() ? undefined : value });
  const changed = listChanges(variant, values);
  const difference = changed.length || variant !== model.variants[0] ? "" : model.release_difference;
  const choices = Object.fromEntries(Object.entries(options).filter(([name]) => CHOICES.includes(name)));
  return (
    <>
      <h1>{model.name}{changed.length > 0 && ", changed"}</h1>
      <div class="filters">
        <ModelPicker data={data} id={model.id} choose={(id) => go({ ids: [id], options: choices }, { replace: false })} />
        {model.variants.length > 1 && (
          <label>
            Variant
            <select value={variant.label} onChange={(event) => set({ variant: event.target.value })}>
              {model.variants.map(({ label }) => (
                <option key={label} value={label}>{label}</option>
              ))}
            </select>
          </label>
        )}
        <button type="button" disabled={!changed.length} onClick={() => go({ options: choices })}>Reset</button>
      </div>
      <div class="columns">
        <section aria-labelledby="sizes">
          <h2 id="sizes">Sizes</h2>
          {structure.sizes.map(([path, smallest, largest], i) => (
            <Size
              key={path}
              path={path}
              limits={smallest === undefined ? null : [smallest, largest]}
              value={values[i]}
              published={variant.values[i]}
              list={lists[i]}
              wrong={errors.some(({ where }) => where.split(" × ").includes(path))}
              set={(value) => setSize(i, value)}
            />
          ))}
          {Object.keys(structure.structure).length > 0 && <h3>Architecture flags</h3>}
          <dl class="pairs">
            {Object.entries(structure.structure).map(([path, value]) => (
              <><dt key={path}>{path}</dt><dd>{value}</dd></>
            ))}
          </dl>
        </section>
        <section aria-labelledby="results" aria-live="polite">
          <h2 id="results">Parameters</h2>
          {errors.length > 0 && (
            <Errors structure={structure} values={values} errors={errors} changed={changed} set={set} />
          )}
          <div class={errors.length > 0 ? "stale" : ""}>
            <Results
              data={data}
              model={model}
              variant={variant}
              values={shown}
              difference={difference}
              options={options}
              set={set}
            />
          </div>
          {errors.length === 0 && <Copies model={model} variant={variant} changed={changed} difference={difference} />}
        </section>
      </div>
    </>
  );
}

/** What is wrong, and the nearest values of each changed size that are valid with the others as they are. */
function Errors({ structure, values, errors, changed, set }) {
  const nearest = changed
    .map(([path]) => [path, findNearestValid(structure, values, structure.sizes.findIndex(([other]) => other === path))])
    .filter(([, found]) => found.length);
  return (
    <div role="alert">
      <ul class="errors">{errors.map(({ text }) => <li key={text}>{text}</li>)}</ul>
      <p>
        {nearest.map(([path, found]) => (
          <span key={path}>
            {path} works with{" "}
            {found.map((n, i) => (
              <>{i > 0 && " or "}<button type="button" key={n} onClick={() => set({ [path]: n.toString() })}>{formatCount(n)}</button></>
            ))}.{" "}
          </span>
        ))}
        Below are the last valid sizes.
      </p>
    </div>
  );
}

const LOWEST = 8n; // the slider begins at an eighth of the published value, and ends at twice it
const EIGHT = 8n; // the least end of a slider

/** A slider and a field; a mark shows where the published value is. */
function Size({ path, limits, value, published, list, wrong, set }) {
  const id = `size-${path}`;
  if (!limits || (list && value === published)) {
    return (
      <div class="size">
        <span>{path}</span> <output>{formatCount(value)}</output>
        <small>{list ? `It follows from ${list}.` : "The structure depends on it."}</small>
      </div>
    );
  }
  const step = findStep(published);
  const least = BigInt(limits[0]);
  const lowest = published - ((published - (published / LOWEST > least ? published / LOWEST : least)) / step) * step;
  const highest = published * 2n > EIGHT ? published * 2n : EIGHT;
  const share = Number(published - lowest) / Number(highest - lowest);
  return (
    <div class={wrong ? "size wrong" : value === published ? "size" : "size changed"}>
      <label for={id}>{path}</label>
      <span class="slider" style={{ "--published": share }} title={`published: ${formatCount(published)}`}>
        <input
          type="range"
          aria-label={`${path}, slider; published: ${formatCount(published)}`}
          min={lowest.toString()}
          max={highest.toString()}
          step={step.toString()}
          value={value.toString()}
          onInput={(event) => set(event.target.value)}
        />
      </span>
      <input
        type="number"
        id={id}
        min={limits[0]}
        max={limits[1]}
        value={value.toString()}
        aria-invalid={wrong}
        onInput={(event) => /^\d+$/.test(event.target.value) && set(event.target.value)}
      />
    </div>
  );
}

/** The largest power of two that divides a value, at most a 32nd of it. */
function findStep(value) {
  let step = 1n;
  while (value % (step * 2n) === 0n && step * 64n <= value) step *= 2n;
  return step;
}

function Results({ data, model, variant, values, difference, options, set }) {
  const { structure } = variant;
  const counted = useMemo(() => count(structure, values), [structure, ...values]);
  const published = countPublished(model);
  const sizes = nameValues(structure, values);
  const changed = listChanges(variant, values);
  const isChanged = changed.length > 0 || variant !== model.variants[0];
  const present = data.components.filter((name) => counted.components[name] > 0n || published.components[name] > 0n);
  return (
    <>
      <p class="answer">
        <b>{formatCount(counted.total)}</b> parameters ({formatShort(counted.total)})
        {counted.active !== counted.total && <>, of which <b>{formatCount(counted.active)}</b> ({formatShort(counted.active)}) are active per token</>}
        {isChanged && <>: <b>{describeDifference(published.total, counted.total)}</b> against the published model</>}
      </p>
      {difference && <p>As released; {difference}.</p>}
      <Bar data={data} counted={counted} />
      <div class="scroll" tabindex="0" role="group" aria-label="Parameters by component">
        <table>
          <caption class="hidden">Parameters by component</caption>
          <thead>
            <tr>
              <th scope="col">Component</th>
              <th scope="col" class="number">Parameters</th>
              <th scope="col" class="number">Share</th>
              {isChanged && <th scope="col" class="number">Change</th>}
              <th scope="col">Formula</th>
            </tr>
          </thead>
          <tbody>
            {present.map((name) => (
              <tr key={name}>
                <th scope="row"><i class="swatch" style={{ background: data.colors[name] }} /> {name}</th>
                <td class="number">{formatCount(counted.components[name])}</td>
                <td class="number">{formatShare(counted.components[name], counted.total)}</td>
                {isChanged && <td class="number">{describeDifference(published.components[name], counted.components[name])}</td>}
                <td class="formula">
                  {structure.formulas[name]}
                  <br />
                  <small>= {fillFormula(structure.formulas[name] ?? "0", sizes)}</small>
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">total</th>
              <td class="number"><b>{formatCount(counted.total)}</b></td>
              <td />
              {isChanged && <td class="number">{describeDifference(published.total, counted.total)}</td>}
              <td />
            </tr>
          </tfoot>
        </table>
      </div>
      <h2>Memory</h2>
      <Fitting data={data} model={model} variant={variant} values={values} changed={changed} options={options} set={set} />
      <p><a href={formatFragment({ view: "fit", ids: [model.id], options })}>The fewest of each GPU, and the commands</a></p>
      <Costs data={data} model={model} structure={structure} values={values} isChanged={isChanged} options={options} />
    </>
  );
}

function Costs({ data, model, structure, values, isChanged, options }) {
  const { choice } = readChoice(data, model, structure, values, isChanged, options, new Map());
  const context = BigInt(choice.context);
  const cache = countCache(structure, values, context);
  const flops = countFlops(structure, values, context);
  const weights = useMemo(() => data.dtypes.map((_, i) => countWeights(structure, values, i)), [structure, ...values]);
  return (
    <dl class="pairs">
      {cache && (
        <>
          <dt>KV cache per token (BF16)</dt>
          <dd>{formatCount(cache.perToken)} bytes</dd>
          <dt>KV cache of one sequence of {formatCount(context)} tokens</dt>
          <dd>{formatBytes(cache.bytes)}{cache.states > 0n && ` + ${formatBytes(cache.states)} of states`}</dd>
        </>
      )}
      <dt>{nameFlops(structure, context)}</dt>
      <dd>{flops ? `${formatCount(flops.total)} (${formatShort(flops.total)})` : explainFlops(structure, values)}</dd>
      {flops && flops.expanded !== flops.total && (
        <>
          <dt>the same if MLA expands all latents anew, as the reference does</dt>
          <dd>{formatCount(flops.expanded)} ({formatShort(flops.expanded)})</dd>
        </>
      )}
      {data.dtypes.map((name, i) => (
        <>
          <dt key={name}>Weights in {name}</dt>
          <dd>{formatBytes(weights[i])}</dd>
        </>
      ))}
    </dl>
  );
}

function Copies({ model, variant, changed, difference }) {
  const [message, setMessage] = useState("");
  const config = useMemo(() => formatConfig(model, variant, changed), [model, variant, JSON.stringify(changed.map(String))]);
  const copies = [
    ["YAML", formatYaml(model, variant, changed)],
    ["config.json", config.text],
    ["command", formatCommand(model, variant, changed)],
    ["link", location.href],
  ];
  return (
    <>
      <p class="actions">
        {copies.map(([name, content]) =>
          content && (
            <button
              type="button"
              key={name}
              onClick={() => copyText(content).then((done) => setMessage(done ? `Copied the ${name}` : "The browser did not allow copying"))}
            >
              Copy as {name}
            </button>
          ),
        )}
        <span role="status">{message}</span>
      </p>
      {config.reason && <p><small>No config.json: {config.reason}.</small></p>}
      {config.text && model.release_difference && (
        <p>
          <small>
            The config.json is for what {model.reference} builds, which is not what the released files contain
            {difference && `: ${difference}`}.
          </small>
        </p>
      )}
    </>
  );
}
