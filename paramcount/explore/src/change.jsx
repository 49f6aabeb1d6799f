// One model with its sizes to change: every count, formula, cache and cost follows.

import { useMemo, useState } from "preact/hooks";
import { Bar } from "./bar.jsx";
import { formatCommand, formatConfig, formatYaml } from "./copies.js";
import {
  count, countCache, countFlops, explainFlops, findErrors, findList, nameFlops, nameValues,
} from "./count.js";
import { countWeights, fitGpus } from "./memory.js";
import { fillFormula, formatBytes, formatCount, formatShare, formatShort } from "./format.js";
import { ModelPicker } from "./picker.jsx";
import { copyText } from "./table.js";

const DEFAULT_CONTEXT = 8192n;
const DEFAULT_GPU = "H100 SXM";

/** The sizes that the address changes, where it names sizes of the structure and integers. */
export function readValues(variant, options) {
  return variant.values.map((value, i) => {
    const [path, smallest] = variant.structure.sizes[i];
    return smallest !== undefined && /^\d{1,18}$/.test(options[path] ?? "") ? BigInt(options[path]) : value;
  });
}

export function Change({ data, state, go }) {
  const model = data.byId.get(state.ids[0]) ?? data.byId.get("gpt2-small") ?? data.models[0];
  const { options } = state;
  const variant = model.variants.find(({ label }) => label === options.variant) ?? model.variants[0];
  const { structure } = variant;
  const values = readValues(variant, options);
  const context = /^\d{1,9}$/.test(options.context ?? "") && options.context !== "0" ? BigInt(options.context)
    : BigInt(Math.min(Number(DEFAULT_CONTEXT), model.context ?? Number(DEFAULT_CONTEXT)));
  const errors = findErrors(structure, values);
  const lists = useMemo(() => variant.values.map((_, i) => findList(structure, variant.values, i)), [variant]);
  const set = (name, value) => go({ ids: [model.id], options: { ...options, [name]: value } });
  const setSize = (i, value) => {
    const [path] = structure.sizes[i];
    set(path, value === variant.values[i].toString() ? undefined : value);
  };
  const changed = structure.sizes.flatMap(([path], i) => (values[i] === variant.values[i] ? [] : [[path, values[i]]]));
  const difference = changed.length || variant !== model.variants[0] ? "" : model.release_difference;
  return (
    <>
      <h1>{model.name}{changed.length > 0 && ", changed"}</h1>
      <div class="filters">
        <ModelPicker data={data} id={model.id} choose={(id) => go({ ids: [id], options: {} }, { replace: false })} />
        {model.variants.length > 1 && (
          <label>
            Variant
            <select value={variant.label} onChange={(event) => set("variant", event.target.value)}>
              {model.variants.map(({ label }) => (
                <option key={label} value={label}>{label}</option>
              ))}
            </select>
          </label>
        )}
        <label>
          Context (tokens)
          <input
            type="number"
            min="1"
            max="999999999"
            value={context.toString()}
            onInput={(event) => set("context", event.target.value)}
          />
        </label>
        <button type="button" disabled={!changed.length} onClick={() => go({ options: {} })}>Reset</button>
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
          <h3>Architecture flags</h3>
          <dl class="pairs">
            {Object.entries(structure.structure).map(([path, value]) => (
              <><dt key={path}>{path}</dt><dd>{value}</dd></>
            ))}
          </dl>
        </section>
        <section aria-labelledby="results" aria-live="polite">
          <h2 id="results">Parameters</h2>
          {errors.length > 0 ? (
            <ul class="errors">{errors.map(({ text }) => <li key={text}>{text}</li>)}</ul>
          ) : (
            <Results
              data={data}
              structure={structure}
              values={values}
              difference={difference}
              context={context}
              gpu={options.gpu}
              chooseGpu={(name) => set("gpu", name)}
            />
          )}
          <Copies model={model} variant={variant} changed={changed} difference={difference} />
        </section>
      </div>
    </>
  );
}

/** The middle of the slider is the published value; its ends are a quarter and four times that. */
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
  const lowest = published / 4n > BigInt(limits[0]) ? (published / 4n / step) * step || step : BigInt(limits[0]);
  const highest = published * 4n > 8n ? published * 4n : 8n;
  return (
    <div class={wrong ? "size wrong" : value === published ? "size" : "size changed"}>
      <label for={id}>{path}</label>
      <input
        type="range"
        aria-label={`${path}, slider`}
        min={lowest.toString()}
        max={highest.toString()}
        step={step.toString()}
        value={value.toString()}
        onInput={(event) => set(event.target.value)}
      />
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

/** The largest power of two that divides a value, at most a sixteenth of it. */
function findStep(value) {
  let step = 1n;
  while (value % (step * 2n) === 0n && step * 32n <= value) step *= 2n;
  return step;
}

function Results({ data, structure, values, difference, context, gpu, chooseGpu }) {
  const counted = count(structure, values);
  const sizes = nameValues(structure, values);
  const present = data.components.filter((name) => counted.components[name] > 0n);
  const cache = countCache(structure, values, context);
  const flops = countFlops(structure, values, context);
  return (
    <>
      <p class="answer">
        <b>{formatCount(counted.total)}</b> parameters ({formatShort(counted.total)})
        {counted.active !== counted.total && <>, of which <b>{formatCount(counted.active)}</b> are active for one token</>}
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
              <th scope="col">Formula</th>
            </tr>
          </thead>
          <tbody>
            {present.map((name) => (
              <tr key={name}>
                <th scope="row"><i class="swatch" style={{ background: data.colors[name] }} /> {name}</th>
                <td class="number">{formatCount(counted.components[name])}</td>
                <td class="number">{formatShare(counted.components[name], counted.total)}</td>
                <td class="formula">
                  {structure.formulas[name]}
                  <br />
                  <small>= {fillFormula(structure.formulas[name], sizes)}</small>
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">total</th>
              <td class="number"><b>{formatCount(counted.total)}</b></td>
              <td />
              <td />
            </tr>
          </tfoot>
        </table>
      </div>
      <h2>Memory and compute</h2>
      <dl class="pairs">
        {cache && (
          <>
            <dt>KV cache per token (BF16)</dt>
            <dd>{formatCount(cache.perToken)} bytes</dd>
            <dt>KV cache at {formatCount(context)} tokens</dt>
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
            <dd>{formatBytes(countWeights(structure, values, i))}</dd>
          </>
        ))}
      </dl>
      {cache && <Fits data={data} structure={structure} values={values} context={context} chosen={gpu} choose={chooseGpu} />}
    </>
  );
}

function Fits({ data, structure, values, context, chosen, choose }) {
  const gpu = data.gpus.find(({ name }) => name === chosen) ?? data.gpus.find(({ name }) => name === DEFAULT_GPU) ?? data.gpus[0];
  const fewest = fitGpus(structure, values, context, BigInt(gpu.usable));
  return (
    <p>
      BF16 weights and one sequence of {formatCount(context)} tokens{" "}
      <b>{fewest === null ? "need more than 8 GPUs (tensor parallel)" : `fit on ${fewest} ×`} </b>
      <select aria-label="GPU" value={gpu.name} onChange={(event) => choose(event.target.value)}>
        {data.gpus.map(({ name }) => <option key={name}>{name}</option>)}
      </select>{" "}
      <small>
        with {formatBytes(BigInt(data.overhead))} assumed for the runtime and {data.margin}% of the memory left on each, sharing
        every matrix
      </small>
    </p>
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
