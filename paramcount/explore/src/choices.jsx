// The fields of what people choose about memory: GPUs, dtypes, context and users.

import { useMemo } from "preact/hooks";
import { listNumbers } from "./choices.js";
import { formatBytes } from "./format.js";

export function Choices({ data, read, options, set }) {
  const { choice, dtype, dtypes, subject } = read;
  const valid = listNumbers(data, subject);
  const isWrong = (name) => read.errors.some(({ where }) => where === name) || undefined;
  // made once, so that a slider that moves does not compare them
  const numbers = useMemo(
    () => Array.from({ length: data.most_gpus }, (_, i) => i + 1).map((n) => <option key={n} value={n} disabled={!valid.includes(n)}>{n} ×</option>),
    [data, valid.join()],
  );
  const weights = useMemo(
    () => [...dtypes].map(([name, label]) => <option key={name} value={name}>{label}</option>),
    [[...dtypes].join()],
  );
  const gpus = useMemo(
    () => data.gpus.map(({ name, memory }) => <option key={name} value={name}>{name} ({formatBytes(BigInt(memory))})</option>),
    [data],
  );
  return (
    <div class="filters">
      <label>
        GPUs
        <select value={choice.gpus} onChange={(event) => set({ n: event.target.value })}>
          {numbers}
        </select>
      </label>
      <label>
        GPU
        <select value={choice.gpu.name} onChange={(event) => set({ gpu: event.target.value })}>
          {gpus}
        </select>
      </label>
      <label>
        Weights
        <select value={dtype} onChange={(event) => set({ dtype: event.target.value })}>
          {weights}
        </select>
      </label>
      <label>
        KV cache
        <select value={choice.kv.name} onChange={(event) => set({ kv: event.target.value })}>
          {data.kv_dtypes.map(({ name, label }) => <option key={name} value={name}>{label}</option>)}
        </select>
      </label>
      <NumberField label="Context (tokens)" value={options.context ?? choice.context} wrong={isWrong("context")} set={(text) => set({ context: text })} />
      <NumberField label="Users" value={options.users ?? choice.users} wrong={isWrong("users")} set={(text) => set({ users: text })} />
    </div>
  );
}

function NumberField({ label, value, wrong, set }) {
  return (
    <label>
      {label}
      <input inputmode="numeric" size={9} value={value} aria-invalid={wrong} onInput={(event) => set(event.target.value)} />
    </label>
  );
}
