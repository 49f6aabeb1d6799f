// The KV cache, the FLOPs and the weights of a model in every dtype.

import { useMemo } from "preact/hooks";
import { countCache, countFlops, explainFlops, nameFlops } from "./count.js";
import { formatBytes, formatCount, formatShort } from "./format.js";
import { countWeights } from "./memory.js";

export function Costs({ data, structure, values, context }) {
  const cache = countCache(structure, values, context);
  const flops = countFlops(structure, values, context);
  const weights = useMemo(() => data.dtypes.map((_, i) => countWeights(structure, values, i)), [structure, ...values]);
  return (
    <dl class="pairs">
      {cache && (
        <>
          <dt>KV cache per token (BF16)</dt>
          <dd>{formatCount(cache.perToken)} bytes</dd>
          <dt>KV cache of one sequence of {formatCount(context)} tokens</dt>
          <dd>{formatBytes(cache.bytes)}{cache.states > 0n && ` + ${formatBytes(cache.states)} of recurrent state`}</dd>
        </>
      )}
      <dt>{nameFlops(structure, context)}</dt>
      <dd>{flops ? `${formatCount(flops.total)} (${formatShort(flops.total)})` : explainFlops(structure, values)}</dd>
      {flops && flops.expanded !== flops.total && (
        <>
          <dt>With MLA latents expanded to keys and values, as in the reference</dt>
          <dd>{formatCount(flops.expanded)} ({formatShort(flops.expanded)})</dd>
        </>
      )}
      {data.dtypes.map((name, i) => (
        <>
          <dt key={name}>Weights in {name}</dt>
          <dd>{formatBytes(weights[i])}</dd>
        </>
      ))}
    </dl>
  );
}
