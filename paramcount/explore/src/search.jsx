// A field that finds models while one types: arrow keys choose, Enter opens the model.

import { useState } from "preact/hooks";
import { findModels, findNearest } from "./find.js";
import { formatShort } from "./format.js";
import { formatFragment } from "./state.js";

export function Search({ data, initial = "" }) {
  const [query, setQuery] = useState(initial);
  const [at, setAt] = useState(0);
  const [isOpen, setOpen] = useState(initial !== "");
  const matching = findModels(data.models, query);
  const found = matching.length ? matching : findNearest(data.models, query);
  const isShown = isOpen && query.trim() !== "";
  const choose = (model) => {
    setOpen(false);
    location.hash = formatFragment({ view: "model", ids: [model.id] });
  };
  const press = (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && found.length) {
      event.preventDefault();
      setOpen(true);
      setAt((at + move + found.length) % found.length);
    } else if (event.key === "Enter" && found[at]) choose(found[at]);
    else if (event.key === "Escape") setOpen(false);
  };
  return (
    <>
      <input
        type="search"
        role="combobox"
        aria-label="Search models"
        aria-expanded={isShown && found.length > 0}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={isShown && found[at] ? `found-${at}` : undefined}
        placeholder="DeepSeek-V3, Qwen3 8B, llama …"
        autocomplete="off"
        value={query}
        onInput={(event) => (setQuery(event.target.value), setAt(0), setOpen(true))}
        onKeyDown={press}
        onBlur={() => setOpen(false)}
      />
      <ul id="found" role="listbox" aria-label="Models" hidden={!isShown || !found.length}>
        {found.map((model, i) => (
          <li
            key={model.id}
            id={`found-${i}`}
            role="option"
            aria-selected={i === at}
            onMouseDown={(event) => (event.preventDefault(), choose(model))}
          >
            {model.name} <small>{formatShort(model.total)}{model.active !== model.total && `, ${formatShort(model.active)} active`}</small>
          </li>
        ))}
      </ul>
      <p class="hint" role="status">
        {isShown && !matching.length && (found.length ? "No model has this name; these are similar." : "No model has this name.")}
      </p>
    </>
  );
}
