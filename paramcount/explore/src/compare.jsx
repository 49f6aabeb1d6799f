// Models side by side: components, active parameters, KV cache, memory against context, and the sizes that differ.

import { useMemo } from "preact/hooks";
import { Charts } from "./charts.jsx";
import { describePair, differs, findContext } from "./compare.js";
import { parseNumber } from "./choices.js";
import { countCache, nameValues } from "./count.js";
import { countPublished } from "./data.js";
import { fillFormula, formatBytes, formatCount, formatShare } from "./format.js";
import { ModelPicker } from "./picker.jsx";

export function Compare({ data, state, go }) {
  const models = useMemo(
    () => [...new Set(state.ids.map((id) => data.byId.get(id)).filter(Boolean))],
    [data, state.ids.join()],
  );
  const set = (ids) => go({ ids });
  const typed = state.options.context;
  const usual = findContext(models);
  const context = typed === undefined ? usual : parseNumber(typed, true) || usual;
  const counts = models.map(countPublished);
  const present = data.components.filter((name) => counts.some((counted) => counted.components[name] > 0n));
  return (
    <>
      <h1>Compare</h1>
      <div class="filters">
        <ModelPicker data={data} id="" label="Add a model" choose={(id) => set([...state.ids, id])} />
        {models.length > 0 && (
          <label>
            Context (tokens)
            <input
              inputmode="numeric"
              size={9}
              value={typed ?? usual}
              aria-invalid={typed !== undefined && !parseNumber(typed, true)}
              onInput={(event) => go({ options: { ...state.options, context: event.target.value } })}
            />
          </label>
        )}
        {models.map((model) => (
          <button type="button" key={model.id} onClick={() => set(models.filter((other) => other !== model).map(({ id }) => id))}>
            Remove {model.name}
          </button>
        ))}
      </div>
      {models.length === 0 ? (
        <p>Select models in <a href="#browse">All models</a>, or add one here.</p>
      ) : (
        <>
          {models.slice(1).map((model, i) => (
            <p class="answer" key={model.id}>
              {describePair({ model: models[0], counted: counts[0] }, { model, counted: counts[i + 1] }, context)}
            </p>
          ))}
          <Charts data={data} models={models} counts={counts} present={present} />
          <Numbers models={models} counts={counts} present={present} context={context} />
          {models.slice(1).map((model, i) => (
            <Difference key={model.id} first={models[0]} second={model} counts={[counts[0], counts[i + 1]]} present={present} />
          ))}
          <Sizes models={models} />
          <Settings models={models} />
        </>
      )}
    </>
  );
}

const formatPart = (n, total) => (n === 0n ? "–" : `${formatCount(n)} (${formatShare(n, total)})`);

function Numbers({ models, counts, present, context }) {
  const rows = [
    ["total", (i) => formatCount(counts[i].total)],
    ...(models.some((model) => model.release_difference)
      ? [["total of the reference", (i) => formatCount(models[i].reference_total)]]
      : []),
    ["active", (i) => formatCount(counts[i].active)],
    ...present.map((name) => [
      name,
      (i) => formatPart(counts[i].components[name], counts[i].total),
    ]),
    ["KV cache per token", (i) => {
      const cache = countCache(models[i].structure, models[i].values, 1n);
      return cache ? formatBytes(cache.perToken) : "";
    }],
    [`KV cache and states at ${formatCount(context)} tokens`, (i) => {
      const cache = countCache(models[i].structure, models[i].values, BigInt(context));
      if (!cache) return "";
      const beyond = models[i].context && context > models[i].context ? ` (its limit: ${formatCount(models[i].context)})` : "";
      return formatBytes(cache.bytes + cache.states) + beyond;
    }],
  ];
  return <Side caption="Parameters and KV cache" models={models} rows={rows} marks={false} />;
}

/** What makes the second model larger or smaller than the first, the largest difference first. */
function Difference({ first, second, counts, present }) {
  const [before, after] = counts;
  const rows = present
    .map((name) => [name, after.components[name] - before.components[name]])
    .filter(([, n]) => n !== 0n)
    .sort(([, a], [, b]) => (absolute(a) < absolute(b) ? 1 : -1));
  const caption = `From ${first.name} to ${second.name}`;
  return (
    <>
      <h2>{caption}</h2>
      <p>
        {formatCount(before.total)} {after.total < before.total ? "−" : "+"} {formatCount(absolute(after.total - before.total))} ={" "}
        <b>{formatCount(after.total)}</b>
      </p>
      <div class="scroll" tabindex="0" role="group" aria-label={caption}>
        <table>
          <caption class="hidden">{caption}</caption>
          <tbody>
            {rows.map(([name, n]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="number">{n < 0n ? "−" : "+"}{formatCount(absolute(n))}</td>
                <td class="formula">{explain(second, name)} − {explain(first, name)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const absolute = (n) => (n < 0n ? -n : n);

/** The formula of a component with its numbers, in brackets if it is a sum; 0 if the model has none. */
function explain(model, name) {
  const formula = model.structure.formulas[name];
  if (!formula) return "0";
  const sizes = nameValues(model.structure, model.values);
  const filled = fillFormula(formula, sizes);
  return isSum(filled) ? `(${filled})` : filled;
}

/** Whether a formula adds outside of all brackets. */
function isSum(formula) {
  let depth = 0;
  return [...formula].some((character) => {
    depth += { "(": 1, ")": -1 }[character] ?? 0;
    return depth === 0 && (character === "+" || character === "−");
  });
}

function Sizes({ models }) {
  const sizes = models.map((model) => ({
    ...Object.fromEntries(model.structure.sizes.map(([path], i) => [path, formatCount(model.values[i])])),
    ...model.structure.structure,
  }));
  const architectures = models.map(({ architecture }) => ({ architecture }));
  return <Facts caption="Sizes and flags" models={models} facts={sizes.map((own, i) => ({ ...architectures[i], ...own }))} />;
}

const Settings = ({ models }) => (
  <Facts caption="Settings of the forward pass" models={models} facts={models.map((model) => model.settings ?? {})} />
);

/** A row for each fact: those that differ, then what only some models have; what is the same in all is folded up. */
function Facts({ caption, models, facts }) {
  const names = [...new Set(facts.flatMap(Object.keys))];
  const list = (name) => facts.map((own) => own[name]);
  const isSame = (name) => list(name).every((value) => value === facts[0][name]);
  const other = names.filter((name) => !isSame(name)).sort((a, b) => differs(list(b)) - differs(list(a)));
  const same = names.filter(isSame);
  const rows = (chosen) => chosen.map((name) => [name, (i) => facts[i][name] ?? ""]);
  if (models.length === 1) return names.length > 0 && <Side caption={caption} models={models} rows={rows(names)} />;
  return (
    <>
      {other.length > 0 && <Side caption={caption} models={models} rows={rows(other)} />}
      {same.length > 0 && (
        <details>
          <summary>{caption}: {same.length} identical</summary>
          <Side caption={`${caption}, identical`} hidden models={models} rows={rows(same)} />
        </details>
      )}
    </>
  );
}

/** A table with a column for each model; rows whose values differ are marked. */
function Side({ caption, models, rows, marks = true, hidden = false }) {
  return (
    <>
      {!hidden && <h2>{caption}</h2>}
      <div class="scroll" tabindex="0" role="group" aria-label={caption}>
        <table>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              <td />
              {models.map((model) => <th scope="col" class="number" key={model.id}>{model.name}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, format]) => {
              const cells = models.map((_, i) => format(i));
              const isMarked = marks && differs(cells);
              return (
                <tr key={name} class={isMarked ? "differs" : ""}>
                  <th scope="row">{name}{isMarked && <span class="hidden"> (differs)</span>}</th>
                  {cells.map((cell, i) => <td class="number" key={i}>{cell}</td>)}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}
