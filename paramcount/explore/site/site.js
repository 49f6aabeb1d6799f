// Copies numbers and commands, filters and sorts tables, and finds models. All pages can be read without it.

const status = document.body.appendChild(document.createElement("p"));
status.className = "copied";
status.setAttribute("role", "status");

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = `Copied ${text.length > 60 ? text.slice(0, 60) + "…" : text}`;
  } catch {
    status.textContent = "The browser does not allow copying.";
  }
  clearTimeout(copy.timer);
  copy.timer = setTimeout(() => (status.textContent = ""), 2500);
}

document.addEventListener("click", ({ target }) => {
  const number = target.closest("[data-copy]");
  const command = target.closest(".command");
  if (number && !target.closest("a")) copy(number.dataset.copy);
  else if (command) copy(command.textContent);
});

// The tables of models: a click on a heading sorts, the filter hides rows.

const value = (row, column) => {
  const cell = row.cells[column];
  const exact = cell.querySelector("[data-copy]")?.dataset.copy ?? cell.textContent;
  return /^[\d,]+$/.test(exact) ? Number(exact.replaceAll(",", "")) : exact.toLowerCase();
};

for (const table of document.querySelectorAll("table.models")) {
  const [body] = table.tBodies;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const descending = heading.ariaSort === "ascending" || (heading.ariaSort === null && heading.className === "number");
      for (const other of heading.parentNode.cells) other.ariaSort = null;
      heading.ariaSort = descending ? "descending" : "ascending";
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      const sign = descending ? -1 : 1;
      rows.sort(([a], [b]) => (a === "") - (b === "") || sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

const filter = document.getElementById("filter");
if (filter) {
  const rows = [...document.querySelector("table.models").tBodies[0].rows].map((row) => [row.textContent.toLowerCase(), row]);
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [text, row] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    document.getElementById("number").textContent = `${shown.toLocaleString("en")} model${shown === 1 ? "" : "s"}.`;
  };
  filter.form.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("input", show);
  filter.value = new URLSearchParams(location.search).get("q") ?? "";
  if (filter.value) show();
}

// The search of the start page, whose names are loaded when it is used.

const search = document.getElementById("search");
if (search) {
  const found = document.getElementById("found");
  const simplify = (text) => text.toLowerCase().replace(/[^a-z0-9.]+/g, "");
  let models = [];
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).map(simplify).filter(Boolean);
    const matches = words.length ? models.filter(([text]) => words.every((word) => text.includes(word))) : [];
    const whole = words.join("");
    matches.sort(([a], [b]) => b.startsWith(whole) - a.startsWith(whole) || a.length - b.length);
    found.replaceChildren(
      ...matches.slice(0, 8).map(([, name, place, size]) => {
        const link = document.createElement("a");
        link.href = `models/${place}/`;
        link.append(name, Object.assign(document.createElement("small"), { textContent: size }));
        const item = document.createElement("li");
        item.append(link);
        return item;
      }),
    );
    found.hidden = matches.length === 0;
  };
  window.showModels = (list) => {
    models = list.map(([name, id, place, size]) => [simplify(name) + " " + simplify(id), name, place, size]);
    show();
  };
  const load = () => document.head.append(Object.assign(document.createElement("script"), { src: "models.js" }));
  search.addEventListener("focus", load, { once: true });
  if (document.activeElement === search) load();
  search.addEventListener("input", show);
  search.form.addEventListener("submit", (event) => {
    const first = found.querySelector("a");
    if (!first) return;
    event.preventDefault();
    first.click();
  });
  search.form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") found.hidden = true;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [search, ...found.querySelectorAll("a")];
    stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(document.activeElement) + step))].focus();
  });
}
