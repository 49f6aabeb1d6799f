// The fields of what people choose about memory: GPUs, dtypes, context and users.

import { useMemo } from "preact/hooks";
import { listNumbers } from "./choices.js";
import { formatBytes } from "./format.js";

export function Choices({ data, read, options, set }) {
  const { choice, dtype, dtypes, subject } = read;
  const valid = listNumbers(data, subject);
  const numbers = Array.from({ length: data.most_gpus }, (_, i) => [i + 1, `${i + 1} ×`, valid.includes(i + 1)]);
  const gpus = useMemo(() => data.gpus.map(({ name, memory }) => [name, `${name} (${formatBytes(BigInt(memory))})`]), [data]);
  const caches = data.kv_dtypes.map(({ name, label }) => [name, label]);
  const isWrong = (name) => read.errors.some(({ where }) => where === name) || undefined;
  return (
    <div class="filters">
      <label>
        GPUs
        <Select value={choice.gpus} name="n" options={numbers} set={set} />
      </label>
      <label>
        GPU
        <Select value={choice.gpu.name} name="gpu" options={gpus} set={set} />
      </label>
      <label>
        Weights
        <Select value={dtype} name="dtype" options={[...dtypes]} set={set} />
      </label>
      <label>
        KV cache
        <Select value={choice.kv.name} name="kv" options={caches} set={set} />
      </label>
      <NumberField label="Context (tokens)" value={options.context ?? choice.context} wrong={isWrong("context")} set={(text) => set({ context: text })} />
      <NumberField label="Users" value={options.users ?? choice.users} wrong={isWrong("users")} set={(text) => set({ users: text })} />
    </div>
  );
}

/** A choice of one of [value, label, whether it is valid], drawn again only if something differs. */
function Select({ value, name, options, set }) {
  return useMemo(
    () => (
      <select value={value} onChange={(event) => set({ [name]: event.target.value })}>
        {options.map(([key, label, isValid = true]) => <option key={key} value={key} disabled={!isValid}>{label}</option>)}
      </select>
    ),
    [value, options.join(), set],
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
