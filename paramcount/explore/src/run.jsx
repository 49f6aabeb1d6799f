// Tiny trained models that run on the page: they sort letters, and every value on the way can be seen.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Attention, Caches, Experts, State } from "./run/pictures.jsx";
import { listLayers, listSwitches } from "./run/read.js";
import { Steps } from "./run/steps.jsx";
import { readTinyModels, sortLetters, watch } from "./runtime/models.js";

const EXAMPLE = "dbca";
const EXAMPLES = [
  ["#run/tiny-gpt2,tiny-mixtral,tiny-mamba?text=paramcount", "all three on one word"],
  ["#run/tiny-gpt2?text=dbca&off=0.0", "GPT-2 without one head"],
  ["#run/tiny-mixtral?text=dbca&off=0.e3", "Mixtral without one expert"],
  ["#run/tiny-mamba?text=dbca&off=0.state", "Mamba without the memory of its first layer"],
];
const PACE = 700; // milliseconds per token
let reading; // the tiny models, read once

export function Run({ state, go }) {
  const [tiny, setTiny] = useState(null);
  useEffect(() => {
    const element = document.querySelector("script.tiny-models");
    reading ??= element && readTinyModels(element);
    reading?.then(setTiny);
  }, []);
  return (
    <>
      <h1>Watch one run</h1>
      <p>
        Three tiny models that were trained to sort letters, with the layers of GPT-2, Mixtral and Mamba. They run in your browser: type letters and see every
        value on the way to the answer.
      </p>
      <p>
        Try{" "}
        {EXAMPLES.map(([address, name], i) => (
          <>{i > 0 && (i < EXAMPLES.length - 1 ? ", " : " or ")}<a key={address} href={address}>{name}</a></>
        ))}.
      </p>
      {tiny ? <Trial tiny={tiny} state={state} go={go} /> : <p role="status">Reading the models …</p>}
    </>
  );
}

function Trial({ tiny, state, go }) {
  const { options } = state;
  const known = tiny.models.filter(({ id }) => state.ids.includes(id));
  const unknown = state.ids.filter((id) => !tiny.models.some((model) => model.id === id));
  const models = known.length ? known : [tiny.models[0]];
  const letters = clean(options.text ?? EXAMPLE, tiny);
  const off = useMemo(() => new Set((options.off ?? "").split(",").filter(Boolean)), [options.off]);
  const runs = useMemo(() => models.map((model) => ({ model, ...sortLetters(tiny, model, letters, off) })), [state.ids.join(), letters, off]);
  const last = Math.max(...runs.map(({ tokens }) => tokens.length)) - 2; // the token before the end
  const at = Math.min(last, Math.max(0, Number.parseInt(options.at ?? letters.length, 10) || 0));
  const set = (change) => go({ ids: state.ids, options: { ...options, ...change } });
  const toggle = (id) => {
    const after = new Set(off);
    after.delete(id) || after.add(id);
    set({ off: [...after].sort().join(",") });
  };
  const [isPlaying, play] = useState(false);
  useEffect(() => {
    if (!isPlaying) return undefined;
    if (at >= last) return void play(false);
    const timer = setTimeout(() => set({ at: at + 1 }), PACE);
    return () => clearTimeout(timer);
  }, [isPlaying, at, last]);
  const start = () => {
    set({ at: at >= last ? letters.length : at });
    play(true);
  };
  return (
    <>
      {unknown.length > 0 && <p role="alert" class="wrong">There is no tiny model {unknown.join(", ")}. There are {tiny.models.map(({ id }) => id).join(", ")}.</p>}
      <div class="filters">
        <label class="letters">
          Letters to sort (a–z, at most {tiny.longest})
          <input value={letters} maxlength={tiny.longest} spellcheck={false} autocapitalize="off" autocomplete="off" onInput={(event) => set({ text: (event.target.value = clean(event.target.value, tiny)), at: undefined, step: undefined })} />
        </label>
        <fieldset>
          <legend>Models</legend>
          {tiny.models.map(({ id }) => (
            <label key={id}>
              <input type="checkbox" checked={models.some((model) => model.id === id)} onChange={() => go({ ids: choose(tiny, models, id), options: { ...options, step: undefined } })} /> {id}
            </label>
          ))}
        </fieldset>
      </div>
      {!letters && <p>Type at least one letter.</p>}
      {letters && (
        <>
          <div class="filters">
            <button type="button" disabled={at === 0} onClick={() => set({ at: at - 1 })}>◀ Previous token</button>
            <button type="button" onClick={isPlaying ? () => play(false) : start}>{isPlaying ? "Pause" : "Play the answer"}</button>
            <button type="button" disabled={at >= last} onClick={() => set({ at: at + 1 })}>Next token ▶</button>
            {off.size > 0 && <button type="button" onClick={() => set({ off: undefined })}>Switch everything on</button>}
          </div>
          <div class={`runs runs${models.length}`}>
            {runs.map((run) => (
              <OneRun key={run.model.id} tiny={tiny} run={run} at={at} off={off} toggle={toggle} isPlaying={isPlaying} set={set} step={options.step} isAlone={models.length === 1} />
            ))}
          </div>
        </>
      )}
    </>
  );
}

const clean = (text, { longest }) => text.toLowerCase().replace(/[^a-z]/g, "").slice(0, longest);

/** The ids after one was switched on or off; at least one stays. */
function choose(tiny, models, id) {
  const chosen = tiny.models.map((model) => model.id).filter((one) => (one === id) !== models.some((model) => model.id === one));
  return chosen.length ? chosen : [id];
}

function OneRun({ tiny, run, at: chosenAt, off, toggle, isPlaying, set, step, isAlone }) {
  const { model, tokens, predictions } = run;
  const at = Math.min(chosenAt, tokens.length - 1);
  const steps = useMemo(() => watch(model, tokens.slice(0, at + 1), off), [model, tokens.join(), at, off]);
  const letters = tokens.slice(0, at + 1).map((id) => tiny.alphabet[id]);
  const layers = listLayers(steps);
  const active = model.active < model.total ? `, ${model.active.toLocaleString("en")} of them active for one token` : "";
  const switches = layers.flatMap(listSwitches);
  const switched = switches.filter(({ key }) => off.has(key));
  const missing = isAlone ? [...off].filter((key) => !switches.some((one) => one.key === key)) : []; // it may be another model's
  return (
    <article aria-label={model.id}>
      <h2>{model.id}</h2>
      <p>{model.description} {model.total.toLocaleString("en")} parameters{active}.</p>
      <Answer tiny={tiny} run={run} at={at} isPlaying={isPlaying} set={set} />
      {switched.length > 0 && <p>Switched off: {switched.map(({ key, name }) => `${name} of layer ${key.split(".")[0]}`).join(", ")}.</p>}
      {missing.length > 0 && <p role="alert" class="wrong">{model.id} has no {missing.join(", ")} to switch off. It has {switches.map(({ key }) => key).join(", ")}.</p>}
      <NextToken tiny={tiny} prediction={predictions[at]} token={letters[at]} isInput={at < run.n - 1} />
      {layers.map(({ layer, attention, caches, scan, router }) => (
        <details key={layer} class="layer" open>
          <summary><h3>Layer {layer}</h3></summary>
          {attention && <Attention layer={layer} weights={attention} tokens={letters} off={off} toggle={toggle} />}
          {router && <Experts layer={layer} weights={router} tokens={letters} off={off} toggle={toggle} />}
          {caches.length > 0 && <Caches layer={layer} caches={caches} tokens={letters} />}
          {scan && <State layer={layer} scan={scan} off={off} toggle={toggle} />}
        </details>
      ))}
      {isAlone
        ? <Steps model={model} steps={steps} at={at} tokens={letters} sentences={tiny.sentences} chosen={Number.parseInt(step ?? "0", 10) || 0} choose={(i) => set({ step: i })} />
        : <p>Select a single model to step through its operations.</p>}
    </article>
  );
}

/** The text as buttons, one for each token; the answer's letters are right or wrong. */
function Answer({ tiny, run: { tokens, n, expected, answer, isRight }, at, isPlaying, set }) {
  const hidden = isPlaying ? Math.max(n, at + 2) : tokens.length;
  const verdict = isRight ? `sorted: ${answer}` : `wrong: ${answer} instead of ${expected}`;
  return (
    <>
      <div class="tokens" role="group" aria-label="Tokens: choose one to see the model after it">
        {tokens.slice(0, hidden).map((id, i) => {
          const isWrong = i >= n && tiny.alphabet[id] !== expected[i - n];
          const kind = i < n ? "given" : isWrong ? "wrong" : "right";
          return (
            <button type="button" key={i} class={`${kind}${i > at ? " later" : ""}`} aria-pressed={i === at} aria-label={`token ${i + 1}: ${tiny.alphabet[id]}${isWrong ? `, wrong: ${expected[i - n] ?? "no more letters"}` : ""}`} onClick={() => set({ at: i })}>
              {tiny.alphabet[id]}
            </button>
          );
        })}
      </div>
      <p role="status" class={isRight ? "right" : "wrong"}>{isPlaying ? "…" : verdict}</p>
    </>
  );
}

function NextToken({ tiny, prediction: { probabilities }, token, isInput }) {
  const likeliest = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]).slice(0, 5);
  return (
    <section>
      <h3>After {token}</h3>
      <p>
        The model gives every token a probability.{" "}
        {isInput ? "Only the answer was trained, so predictions between the letters of the input mean nothing." : "The most likely one is appended to the text and is the next input."}
      </p>
      <table class="next">
        <tbody>
          {likeliest.map((id) => (
            <tr key={id}>
              <th scope="row">{tiny.alphabet[id]}</th>
              <td class="number">{(100 * probabilities[id]).toFixed(1)}%</td>
              <td aria-hidden="true"><span class="share" style={{ width: `${100 * probabilities[id]}%` }} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
