// Buttons that copy a changed model as text.

import { useMemo, useState } from "preact/hooks";
import { formatCommand, formatConfig, formatYaml } from "./copies.js";
import { copyText } from "./clipboard.js";

export function Copies({ model, variant, changed, difference }) {
  const [message, setMessage] = useState("");
  const config = useMemo(() => formatConfig(model, variant, changed), [model, variant, JSON.stringify(changed.map(String))]);
  const copies = [
    ["YAML", model.yaml && (() => formatYaml(model, variant, changed))],
    ["config.json", config.text && (() => config.text)],
    ["command", () => formatCommand(model, variant, changed)],
    ["link", () => location.href],
  ];
  return (
    <>
      <p class="actions">
        {copies.map(([name, write]) =>
          write && (
            <button
              type="button"
              key={name}
              onClick={() => copyText(write()).then((done) => setMessage(done ? `Copied the ${name}` : "The browser did not allow copying"))}
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
