// One model with its sizes to change: every count, formula, cache and cost follows, beside the published ones.

import { useCallback, useMemo, useRef } from "preact/hooks";
import { Bar } from "./bar.jsx";
import { describeDifference, findNearestValid, listChanges, readVariant } from "./changes.js";
import { Copies } from "./copies.jsx";
import { Costs } from "./costs.jsx";
import { count, findErrors, findList, nameValues } from "./count.js";
import { chooseModel, countPublished } from "./data.js";
import { CHOICES, Fitting, useChoice } from "./fit.jsx";
import { fillFormula, formatCount, formatShare, formatShort } from "./format.js";
import { ModelPicker } from "./picker.jsx";
import { Size } from "./size.jsx";
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
  const set = useCallback((chosen) => go(({ options }) => ({ ids: [model.id], options: { ...options, ...chosen } })), [model]);
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
              smallest={smallest}
              largest={largest}
              value={values[i]}
              published={variant.values[i]}
              list={lists[i]}
              wrong={errors.some(({ where }) => where.split(" × ").includes(path))}
              set={set}
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
        The results below are for the last valid sizes.
      </p>
    </div>
  );
}

function Results({ data, model, variant, values, difference, options, set }) {
  const { structure } = variant;
  const counted = useMemo(() => count(structure, values), [structure, ...values]);
  const published = countPublished(model);
  const sizes = nameValues(structure, values);
  const changed = listChanges(variant, values);
  const isChanged = changed.length > 0 || variant !== model.variants[0];
  const read = useChoice(data, model, variant, values, changed, options);
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
        <table class="components">
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
      <Fitting data={data} model={model} variant={variant} changed={changed} options={options} read={read} set={set} />
      <p><a href={formatFragment({ view: "fit", ids: [model.id], options })}>Minimum number of each GPU, and the commands</a></p>
      <Costs data={data} structure={structure} values={values} context={BigInt(read.choice.context)} />
    </>
  );
}
