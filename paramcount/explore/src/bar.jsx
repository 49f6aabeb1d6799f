// A bar of components: the parts of one whole, to scale.

import { formatCount, formatShare } from "./format.js";

export function Bar({ data, counted }) {
  const present = data.components.filter((name) => counted.components[name] > 0n);
  const label = present.map((name) => `${name} ${formatShare(counted.components[name], counted.total)}`).join(", ");
  return (
    <div class="bar" role="img" aria-label={label}>
      {present.map((name) => (
        <span
          key={name}
          style={{ flexGrow: Number(counted.components[name]), background: data.colors[name] }}
          title={`${name}: ${formatCount(counted.components[name])}`}
        />
      ))}
    </div>
  );
}
