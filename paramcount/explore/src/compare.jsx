// Models side by side: components, active parameters, KV cache, memory against context, and the sizes that differ.

import { useMemo } from "preact/hooks";
import { countCache, nameValues } from "./count.js";
import { countPublished } from "./data.js";
import { fillFormula, formatBytes, formatCount, formatShare, formatShort } from "./format.js";
import { ModelPicker } from "./picker.jsx";
import { Chart, barX, lineY, ruleX, selectLast, stackX, text } from "./plot.jsx";

const CONTEXTS = [1n, 1024n, 4096n, 16384n, 65536n, 131072n, 262144n, 1048576n];
const BYTES = 2n; // BF16

export function Compare({ data, state, go }) {
  const models = useMemo(
    () => [...new Set(state.ids.map((id) => data.byId.get(id)).filter(Boolean))],
    [data, state.ids.join()],
  );
  const set = (ids) => go({ ids });
  const counts = models.map(countPublished);
  const present = data.components.filter((name) => counts.some((counted) => counted.components[name] > 0n));
  return (
    <>
      <h1>Compare</h1>
      <div class="filters">
        <ModelPicker data={data} id="" label="Add a model" choose={(id) => set([...state.ids, id])} />
        {models.map((model) => (
          <button type="button" key={model.id} onClick={() => set(models.filter((other) => other !== model).map(({ id }) => id))}>
            Remove {model.name}
          </button>
        ))}
      </div>
      {models.length === 0 ? (
        <p>Select models in <a href="#browse">Browse</a>, or add one here.</p>
      ) : (
        <>
          <Charts data={data} models={models} counts={counts} present={present} />
          {models.slice(1).map((model, i) => (
            <Difference key={model.id} first={models[0]} second={model} counts={[counts[0], counts[i + 1]]} present={present} />
          ))}
          <Numbers data={data} models={models} counts={counts} present={present} />
          <Sizes models={models} />
        </>
      )}
    </>
  );
}

function Charts({ data, models, counts, present }) {
  const names = models.map((model) => model.name);
  const totals = models.flatMap((model, i) => [
    { model: model.name, what: "total", n: Number(counts[i].total) },
    { model: model.name, what: "active", n: Number(counts[i].active) },
  ]);
  const shares = models.flatMap((model, i) =>
    present.map((name) => ({ model: model.name, component: name, share: Number((counts[i].components[name] * 1000000n) / counts[i].total) / 10000 })),
  );
  const memory = models.flatMap((model) =>
    CONTEXTS.filter((context) => !model.context || context <= BigInt(model.context)).flatMap((context) => {
      const cache = countCache(model.structure, model.values, context);
      return cache ? [{ model: model.name, context: Number(context), gigabytes: Number(BYTES * model.total + cache.bytes + cache.states) / 1e9 }] : [];
    }),
  );
  const left = Math.min(220, 20 + 7 * Math.max(...names.map((name) => name.length)));
  const of = [models];
  return (
    <div class="charts">
      <Chart
        label="Total parameters, and those active for one token"
        of={of}
        make={() => ({
          marginLeft: left,
          height: 60 + 34 * models.length,
          x: { label: "parameters", tickFormat: (n) => formatShort(BigInt(n)).replace(".0", ""), grid: true, nice: true },
          y: { domain: names, label: null },
          marks: [
            barX(totals.filter(({ what }) => what === "total"), { x: "n", y: "model", fill: "var(--total)" }),
            barX(totals.filter(({ what }) => what === "active"), { x: "n", y: "model", fill: "var(--active)", insetTop: 6, insetBottom: 6 }),
            ruleX([0]),
          ],
        })}
      />
      <Chart
        label="Components, in percent of the total"
        of={of}
        make={() => ({
          marginLeft: left,
          height: 60 + 34 * models.length,
          x: { label: "% of the parameters", domain: [0, 100] },
          y: { domain: names, label: null },
          color: { domain: present, range: present.map((name) => data.colors[name]), legend: true },
          marks: [barX(shares, stackX({ x: "share", y: "model", fill: "component", order: present }))],
        })}
      />
      {memory.length > 0 && (
        <Chart
          label="Memory of BF16 weights and the KV cache of one sequence, in GB"
          of={of}
          make={() => ({
            height: 300,
            marginRight: left,
            x: { label: "context (tokens)", type: "log", base: 2, tickFormat: (n) => (n < 1024 ? n : `${n / 1024}k`), grid: true },
            y: { label: "GB", zero: true, grid: true, nice: true },
            marks: [
              lineY(memory, { x: "context", y: "gigabytes", z: "model", stroke: "model" }),
              text(memory, selectLast({ x: "context", y: "gigabytes", z: "model", text: "model", textAnchor: "start", dx: 6 })),
            ],
          })}
        />
      )}
    </div>
  );
}

function Numbers({ data, models, counts, present }) {
  const rows = [
    ["total", (i) => formatCount(counts[i].total)],
    ...(models.some((model) => model.release_difference)
      ? [["total of the reference", (i) => formatCount(models[i].reference_total)]]
      : []),
    ["active", (i) => formatCount(counts[i].active)],
    ...present.map((name) => [
      name,
      (i) => `${formatCount(counts[i].components[name])} (${formatShare(counts[i].components[name], counts[i].total)})`,
    ]),
    ["KV cache per token", (i) => {
      const cache = countCache(models[i].structure, models[i].values, 1n);
      return cache ? formatBytes(cache.perToken) : "";
    }],
  ];
  return <Side caption="Parameters" models={models} rows={rows} />;
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
    architecture: model.architecture,
    ...Object.fromEntries(model.structure.sizes.map(([path], i) => [path, formatCount(model.values[i])])),
    ...model.structure.structure,
  }));
  const paths = [...new Set(sizes.flatMap(Object.keys))];
  return <Side caption="Sizes" models={models} rows={paths.map((path) => [path, (i) => sizes[i][path] ?? ""])} />;
}

/** A table with a column for each model; rows whose cells differ are marked. */
function Side({ caption, models, rows }) {
  return (
    <>
      <h2>{caption}</h2>
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
              const differs = new Set(cells).size > 1;
              return (
                <tr key={name} class={differs ? "differs" : ""}>
                  <th scope="row">{name}{differs && <span class="hidden"> (differs)</span>}</th>
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
