// Whether a model fits on GPUs, what fills their memory, and what else fits.

import { useMemo } from "preact/hooks";
import { listRemedies, readChoice, writeCommands } from "./choices.js";
import { Choices } from "./choices.jsx";
import { formatSettings } from "./copies.js";
import { describeChanges, listChanges, readVariant } from "./changes.js";
import { findErrors } from "./count.js";
import { formatBytes, formatCount } from "./format.js";
import { FITS, findFewest, findLongest, findMostUsers, measure } from "./memory.js";
import { ModelPicker } from "./picker.jsx";
import { formatFragment } from "./state.js";
import { copyText } from "./clipboard.js";
import { chooseModel } from "./data.js";

const USUAL_MODEL = "llama-3.1-8b";

export function Fit({ data, state, go }) {
  const { options } = state;
  const model = data.byId.get(state.ids[0] ?? USUAL_MODEL) ?? chooseModel(data, state);
  const { variant, values } = readVariant(model, options);
  const changed = listChanges(variant, values);
  const errors = findErrors(variant.structure, values);
  const set = (chosen) => go({ ids: [model.id], options: { ...options, ...chosen } });
  const changes = describeChanges(variant, changed);
  return (
    <>
      <h1>Does {model.name} fit?</h1>
      {changes && (
        <p>
          Changed: {changes}. <a href={formatFragment({ view: "change", ids: [model.id], options })}>Change its sizes</a> ·{" "}
          <button type="button" onClick={() => go({ options: keepChoice(options) })}>As published</button>
        </p>
      )}
      <div class="filters">
        <ModelPicker data={data} id={model.id} choose={(id) => go({ ids: [id], options: keepChoice(options) }, { replace: false })} />
      </div>
      {errors.length > 0 ? (
        <ul class="errors">{errors.map(({ text }) => <li key={text}>{text}</li>)}</ul>
      ) : (
        <WholeFitting data={data} model={model} variant={variant} values={values} changed={changed} options={options} set={set} />
      )}
    </>
  );
}

export const CHOICES = ["gpu", "n", "dtype", "kv", "context", "users"];

const keepChoice = (options) => Object.fromEntries(Object.entries(options).filter(([name]) => CHOICES.includes(name)));

/** What `options` choose for a model at some sizes, as readChoice has it. */
export function useChoice(data, model, variant, values, changed, options) {
  const isChanged = changed.length > 0 || variant !== model.variants[0];
  const key = [model.id, variant.label, ...values].join();
  const subjects = useMemo(() => new Map(), [key]); // what was computed for other GPUs and contexts is used again
  return readChoice(data, model, variant.structure, values, isChanged, options, subjects);
}

function WholeFitting(props) {
  const { data, model, variant, values, changed, options } = props;
  return <Fitting {...props} read={useChoice(data, model, variant, values, changed, options)} more />;
}

/** The choices and the answer; `more`: with the fewest GPUs of each kind, and the commands. */
export function Fitting({ data, model, variant, changed, options, read, set, more = false }) {
  const { structure } = variant;
  const isChanged = changed.length > 0 || variant !== model.variants[0];
  const commands = writeCommands(data, model, read, formatSettings(variant, changed));
  return (
    <>
      <Choices data={data} read={read} options={options} set={set} />
      {read.errors.length > 0 && (
        <div role="alert">
          <ul class="errors">{read.errors.map(({ text }) => <li key={text}>{text}</li>)}</ul>
        </div>
      )}
      {!structure.caches ? (
        <p class="answer">
          The KV cache of this model depends on an input other than text. This command gives the answer:{" "}
          <code>{commands.memory}</code>
        </p>
      ) : (
        read.errors.length === 0 && <Answer data={data} name={isChanged ? `${model.name}, changed,` : model.name} read={read} />
      )}
      {structure.caches && read.errors.length === 0 && <Limits data={data} read={read} more={more} set={set} />}
      {more && <Commands commands={commands} />}
    </>
  );
}

const each = ({ gpus }) => (gpus > 1 ? " per GPU" : "");

const describeUsers = ({ users, context }) =>
  `${formatCount(users)} ${users === 1 ? "user" : "users"} of ${formatCount(context)} tokens`;

/** The answer as one sentence. */
export function describeAnswer(name, label, choice, found) {
  const on = `on ${choice.gpus} × ${choice.gpu.name} for ${describeUsers(choice)}`;
  if (found.verdict === FITS) return `${name} in ${label} fits ${on}, with ${formatBytes(found.free)} to spare${each(choice)}.`;
  const needs = `it needs ${formatBytes(found.needed)}${each(choice)}, and ${formatBytes(found.budget)} is available`;
  const verdict = found.verdict === "too close to call" ? "is too close to call" : found.verdict;
  return `${name} in ${label} ${verdict} ${on}: ${needs}.`;
}

function Answer({ data, name, read: { choice, dtype, dtypes, subject } }) {
  const found = measure(data, subject, choice);
  const parts = [
    ["weights", found.weights, "var(--data-edge)"],
    ["KV cache", found.kv, "var(--active)"],
    ["recurrent states", found.states, "var(--total)"],
    ["overhead (assumed)", found.overhead, "var(--weight-edge)"],
    ["free", found.free, "var(--inside)"],
  ].filter(([, n]) => n > 0n);
  const whole = found.needed > found.budget ? found.needed : found.budget;
  return (
    <section aria-live="polite">
      <p class={`answer verdict-${found.verdict.replaceAll(" ", "-")}`}><b>{describeAnswer(name, dtypes.get(dtype), choice, found)}</b></p>
      <div class="bar fill" role="img" aria-label={`Of ${formatBytes(found.budget)}${each(choice)}: ${parts.map(([part, n]) => `${part} ${formatBytes(n)}`).join(", ")}`}>
        {parts.map(([part, n, color]) => (
          <span key={part} style={{ flexGrow: Number((n * 100000n) / whole), background: color }} title={`${part}: ${formatCount(n)} bytes`} />
        ))}
        {found.free < 0n && <i class="end" style={{ left: `${Number((found.budget * 10000n) / whole) / 100}%` }} title={`${formatBytes(found.budget)} available`} />}
      </div>
      <ul class="legend">
        {parts.map(([part, n, color]) => (
          <li key={part} title={`${formatCount(n)} bytes`}><i class="swatch" style={{ background: color }} /> {part} {formatBytes(n)}</li>
        ))}
        {found.free < 0n && <li>{formatBytes(-found.free)} short</li>}
      </ul>
      <p>
        <small>
          Assumed: {formatBytes(found.overhead)} for the runtime on each GPU. The answer is “fits” if at least{" "}
          {formatBytes(found.margin)} ({data.margin}% of the memory{found.padding > 0n && ", and what kernels may add to the weights"}) stays free;
          closer cases depend on the engine.
          {choice.gpu.note && ` ${choice.gpu.note}.`}
        </small>
      </p>
    </section>
  );
}

function Limits({ data, read, more, set }) {
  const { choice, subject } = read;
  const longest = findLongest(data, subject, choice);
  const users = findMostUsers(data, subject, choice);
  const fewest = findFewest(data, subject, choice);
  const remedies = measure(data, subject, choice).verdict === FITS ? [] : listRemedies(data, read);
  const use = (name, n) => n > 0 && <button type="button" onClick={() => set({ [name]: String(n) })}>Use</button>;
  return (
    <>
      <dl class="pairs">
        <dt>Longest context with {formatCount(choice.users)} {choice.users === 1 ? "user" : "users"}</dt>
        <dd>
          {longest === null ? "no limit" : longest === 0 ? "does not fit" : <><b>{formatCount(longest)}</b> tokens{longest === subject.limit && ", the model's limit"}</>}{" "}
          {longest !== choice.context && use("context", longest)}
        </dd>
        <dt>Most users at {formatCount(choice.context)} tokens</dt>
        <dd>
          {users === null ? "no limit" : users === 0 ? "does not fit" : <b>{formatCount(users)}</b>}{" "}
          {users !== choice.users && use("users", users)}
        </dd>
        <dt>Minimum number of {choice.gpu.name}</dt>
        <dd>
          {fewest === null ? `more than ${data.most_gpus}` : <><b>{fewest.gpus}</b>, with {formatBytes(fewest.free)} to spare{fewest.gpus > 1 && " per GPU"}</>}{" "}
          {fewest && fewest.gpus !== choice.gpus && use("n", fewest.gpus)}
        </dd>
        {remedies.length > 0 && (
          <>
            <dt>It fits with</dt>
            <dd class="names">
              {remedies.map(({ label, options }) => <button type="button" key={label} onClick={() => set(options)}>{label}</button>)}
            </dd>
          </>
        )}
      </dl>
      {subject.limit !== null && choice.context > subject.limit && (
        <p class="errors">{formatCount(choice.context)} tokens exceed the published context length of {formatCount(subject.limit)}.</p>
      )}
      {more && <Fewest data={data} subject={subject} choice={choice} set={set} />}
    </>
  );
}

/** The fewest of each GPU that hold the same. */
function Fewest({ data, subject, choice, set }) {
  const groups = new Map();
  for (const gpu of data.gpus) {
    const fewest = findFewest(data, subject, { ...choice, gpu });
    const key = fewest ? fewest.gpus : 0;
    groups.set(key, [...(groups.get(key) ?? []), { gpu, fewest }]);
  }
  const order = [...groups.keys()].filter(Boolean).sort((a, b) => a - b);
  return (
    <>
      <h2>Minimum number of each GPU</h2>
      <dl class="pairs">
        {order.map((n) => (
          <>
            <dt key={n}>{n} GPU{n > 1 && "s"}</dt>
            <dd class="names">
              {groups.get(n).map(({ gpu, fewest }) => (
                <button type="button" class="link" key={gpu.name} title={`${formatBytes(fewest.free)} to spare${n > 1 ? " per GPU" : ""}`} onClick={() => set({ gpu: gpu.name, n: String(n) })}>
                  {gpu.name}
                </button>
              ))}
            </dd>
          </>
        ))}
        {groups.has(0) && (
          <>
            <dt>more than {data.most_gpus}</dt>
            <dd class="names">{groups.get(0).map(({ gpu }) => gpu.name).join(", ")}</dd>
          </>
        )}
      </dl>
    </>
  );
}

function Commands({ commands }) {
  return (
    <>
      <h2>On the command line</h2>
      <p>These commands give the same figures; their options cover engines, other dtypes, more GPUs and pipeline stages:</p>
      {Object.entries(commands).map(([name, command]) => (
        <p key={name}>
          <code>{command}</code>{" "}
          <button type="button" aria-label={`Copy the ${name} command`} onClick={() => copyText(command)}>Copy</button>
        </p>
      ))}
    </>
  );
}
