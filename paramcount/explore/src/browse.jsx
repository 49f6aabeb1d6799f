// The zoo as a table: search, filters, columns, selection, and copies of what is shown.

import { useMemo, useState } from "preact/hooks";
import { COLUMNS, copyText, filterModels, formatTable, sortModels } from "./table.js";
import { formatFragment } from "./state.js";

const DEFAULT_COLUMNS = ["name", "total", "active", "released", "family"];

export function Browse({ data, state, go }) {
  const { options, ids } = state;
  const names = (options.columns ? options.columns.split(",") : DEFAULT_COLUMNS).filter((name) => name in COLUMNS);
  const sort = options.sort || "";
  const shown = useMemo(
    () => sortModels(filterModels(data.models, options), sort, data),
    [data, options.q, options.family, options.architecture, options.from, options.to, options.since, sort],
  );
  const set = (name, value) => go({ options: { ...options, [name]: value } });
  const select = (id, chosen) => go({ ids: chosen ? [...ids, id] : ids.filter((other) => other !== id) });
  const [message, setMessage] = useState("");
  const copy = (format) => {
    const chosen = ids.length ? shown.filter((model) => ids.includes(model.id)) : shown;
    copyText(formatTable(chosen, names, format, data)).then((done) =>
      setMessage(done ? `Copied ${chosen.length} models` : "The browser did not allow copying"),
    );
  };
  return (
    <>
      <h1>Models</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Search
          <input type="search" value={options.q ?? ""} onInput={(event) => set("q", event.target.value)} />
        </label>
        <Choice label="Family" name="family" data={data} value={options.family} set={set} />
        <Choice label="Architecture" name="architecture" data={data} value={options.architecture} set={set} />
        <label>
          Parameters from
          <input size="6" placeholder="1B" value={options.from ?? ""} onInput={(event) => set("from", event.target.value)} />
        </label>
        <label>
          to
          <input size="6" placeholder="10B" value={options.to ?? ""} onInput={(event) => set("to", event.target.value)} />
        </label>
        <label>
          Released since
          <input type="date" value={options.since ?? ""} onInput={(event) => set("since", event.target.value)} />
        </label>
        <details>
          <summary>Columns</summary>
          <fieldset>
            <legend>Columns of the table</legend>
            {Object.entries(COLUMNS).map(([name, column]) => (
              <label key={name}>
                <input
                  type="checkbox"
                  checked={names.includes(name)}
                  onChange={(event) =>
                    set(
                      "columns",
                      Object.keys(COLUMNS)
                        .filter((other) => (other === name ? event.target.checked : names.includes(other)))
                        .join(","),
                    )
                  }
                />
                {column.heading}
              </label>
            ))}
          </fieldset>
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
      <div class="scroll" tabindex="0" role="group" aria-label="Table of models">
        <table>
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
            {shown.map((model) => (
              <Row key={model.id} model={model} names={names} chosen={ids.includes(model.id)} select={select} data={data} />
            ))}
          </tbody>
        </table>
      </div>
    </>
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
  const direction = sort === name ? "ascending" : sort === `-${name}` ? "descending" : undefined;
  const next = direction === "descending" ? name : direction === "ascending" ? "" : column.numeric ? `-${name}` : name;
  return (
    <th scope="col" class={column.numeric ? "number" : ""} aria-sort={direction}>
      <button type="button" onClick={() => set("sort", next)}>
        {column.heading}
        <span aria-hidden="true">{direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

function Row({ model, names, chosen, select, data }) {
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
        const text = COLUMNS[name].format(model, data);
        if (name !== "name") return <td key={name} class={COLUMNS[name].numeric ? "number" : ""}>{text}</td>;
        return (
          <th scope="row" key={name}>
            <a href={formatFragment({ view: "change", ids: [model.id] })}>{text}</a>
            {model.own && <small> your own</small>}
          </th>
        );
      })}
    </tr>
  );
}
