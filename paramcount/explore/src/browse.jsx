// The zoo as a table: search, filters, columns, selection, and copies of what is shown.

import { useEffect, useMemo, useState } from "preact/hooks";
import { copyText } from "./clipboard.js";
import { formatFragment } from "./state.js";
import { COLUMNS, filterModels, formatTable, sortModels } from "./table.js";

const DEFAULT_COLUMNS = ["name", "total", "active", "context", "released"];
const DEFAULT_SORT = "-released";
const SORTS = {
  "-released": "newest first", famous: "best known first", "-total": "largest first", total: "smallest first",
  "-context": "longest context first", name: "by name",
};
const FIRST = 60; // rows that are there at once
const MORE = 200; // rows that follow in each further step

export function Browse({ data, state, go }) {
  const { options, ids } = state;
  const names = (options.columns ? options.columns.split(",") : DEFAULT_COLUMNS).filter((name) => name in COLUMNS);
  const sort = options.sort || DEFAULT_SORT;
  const filters = [options.q, options.family, options.architecture, options.from, options.to, options.since, sort];
  const shown = useMemo(() => sortModels(filterModels(data.models, options), sort), [data, ...filters]);
  const rows = useGrowing(shown);
  const set = (name, value) => go({ options: { ...options, [name]: value } });
  const select = (id, chosen) => go({ ids: chosen ? [...ids, id] : ids.filter((other) => other !== id) });
  const [message, setMessage] = useState("");
  const copy = (format) => {
    const chosen = ids.length ? shown.filter((model) => ids.includes(model.id)) : shown;
    copyText(formatTable(chosen, names, format)).then((done) =>
      setMessage(done ? `Copied ${chosen.length} models` : "The browser did not allow copying"),
    );
  };
  return (
    <>
      <h1>All models</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Search
          <input type="search" value={options.q ?? ""} onInput={(event) => set("q", event.target.value)} />
        </label>
        <label>
          Sort
          <select value={sort} onChange={(event) => set("sort", event.target.value)}>
            {Object.entries(sort in SORTS ? SORTS : { ...SORTS, [sort]: describeSort(sort) }).map(([name, label]) => (
              <option key={name} value={name}>{label}</option>
            ))}
          </select>
        </label>
        <label>
          Parameters from
          <input size="6" placeholder="1B" value={options.from ?? ""} onInput={(event) => set("from", event.target.value)} />
        </label>
        <label>
          to
          <input size="6" placeholder="8B" value={options.to ?? ""} onInput={(event) => set("to", event.target.value)} />
        </label>
        <details open={Boolean(options.family || options.architecture || options.since || options.columns)}>
          <summary>More filters, columns</summary>
          <div class="filters">
            <Choice label="Family" name="family" data={data} value={options.family} set={set} />
            <Choice label="Architecture" name="architecture" data={data} value={options.architecture} set={set} />
            <label>
              Released since
              <input type="date" value={options.since ?? ""} onInput={(event) => set("since", event.target.value)} />
            </label>
          </div>
          <Columns names={names} set={set} />
        </details>
      </form>
      <div class="actions">
        <span role="status">
          {shown.length} of {data.models.length} models{ids.length ? `, ${ids.length} selected` : ""}. {message}
        </span>
        {ids.length > 0 && <a class="button" href={formatFragment({ view: "compare", ids })}>Compare {ids.length} selected</a>}
        {ids.length > 0 && <button type="button" onClick={() => go({ ids: [] })}>Clear selection</button>}
        {["Markdown", "CSV", "LaTeX"].map((format) => (
          <button type="button" key={format} onClick={() => copy(format)}>Copy as {format}</button>
        ))}
      </div>
      <table class="models">
        <caption class="hidden">Models and their parameters</caption>
        <thead>
          <tr>
            <th scope="col"><span class="hidden">Selected</span></th>
            {names.map((name) => (
              <Heading key={name} name={name} sort={sort} set={set} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((model) => (
            <Row key={model.id} model={model} names={names} chosen={ids.includes(model.id)} select={select} />
          ))}
        </tbody>
      </table>
    </>
  );
}

const describeSort = (sort) => `${COLUMNS[sort.replace(/^-/, "")]?.heading ?? sort}, ${sort.startsWith("-") ? "descending" : "ascending"}`;

/** The first elements of a list at once, and more of them whenever the browser has time. */
function useGrowing(list) {
  const [grown, setGrown] = useState({ list, length: FIRST });
  const length = grown.list === list ? grown.length : FIRST;
  useEffect(() => {
    if (length >= list.length) return undefined;
    const timer = setTimeout(() => setGrown({ list, length: length + MORE }), 50);
    return () => clearTimeout(timer);
  }, [list, length]);
  return list.slice(0, length);
}

function Columns({ names, set }) {
  const change = (name, isChosen) =>
    set("columns", Object.keys(COLUMNS).filter((other) => (other === name ? isChosen : names.includes(other))).join(","));
  return (
    <fieldset>
      <legend>Columns of the table</legend>
      {Object.entries(COLUMNS).map(([name, column]) => (
        <label key={name}>
          <input type="checkbox" checked={names.includes(name)} onChange={(event) => change(name, event.target.checked)} />
          {column.heading}
        </label>
      ))}
    </fieldset>
  );
}

function Choice({ label, name, data, value, set }) {
  const choices = useMemo(() => [...new Set(data.models.map((model) => model[name]).filter(Boolean))].sort(), [data]);
  return (
    <label>
      {label}
      <select value={value ?? ""} onChange={(event) => set(name, event.target.value)}>
        <option value="">all</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>{choice}</option>
        ))}
      </select>
    </label>
  );
}

function Heading({ name, sort, set }) {
  const column = COLUMNS[name];
  const isLargeFirst = column.numeric || name === "released";
  const direction = sort === name ? "ascending" : sort === `-${name}` ? "descending" : undefined;
  const next = direction === "descending" || (!direction && !isLargeFirst) ? name : `-${name}`;
  return (
    <th scope="col" class={column.numeric ? "number" : ""} aria-sort={direction}>
      <button type="button" onClick={() => set("sort", next)}>
        {column.heading}
        <span aria-hidden="true">{direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

function Row({ model, names, chosen, select }) {
  return (
    <tr class={chosen ? "chosen" : ""}>
      <td>
        <input
          type="checkbox"
          aria-label={`Select ${model.name}`}
          checked={chosen}
          onChange={(event) => select(model.id, event.target.checked)}
        />
      </td>
      {names.map((name) => {
        const { heading, numeric, format, shorten, value } = COLUMNS[name];
        if (name === "name") {
          return (
            <th scope="row" key={name}>
              <a href={formatFragment({ view: "model", ids: [model.id] })}>{model.name}</a>
              {model.own && <small> your own</small>}
            </th>
          );
        }
        if (!numeric) return <td key={name} data-label={heading}>{format(model)}</td>;
        const exact = value(model);
        return (
          <td key={name} class="number" data-label={heading}>
            {exact === null ? "" : <span title={format(model)} data-copy={exact.toString()}>{shorten(model)}</span>}
          </td>
        );
      })}
    </tr>
  );
}
