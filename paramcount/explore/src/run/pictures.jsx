// Pictures of one layer: attention by head, the chosen experts, what is kept for later tokens.

import { count, row } from "../runtime/tensors.js";
import { Heat, formatValue } from "./heat.jsx";

const CELL = 12;
const LEAST = 0.02; // a weight that is drawn

export function Switch({ name, id, off, toggle }) {
  return (
    <label class="switch">
      <input type="checkbox" checked={!off.has(id)} onChange={() => toggle(id)} /> {name}
    </label>
  );
}

/** A square per pair of tokens: how much the one of the row attends to the one of the column. */
function Pattern({ weights, head, tokens }) {
  const [, n, m] = weights.shape;
  const at = (i, j) => weights.data[(head * n + i) * m + j];
  const cells = [];
  for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) if (at(i, j) >= LEAST) cells.push([i, j, at(i, j)]);
  const most = [...Array(m).keys()].reduce((best, j) => (at(n - 1, j) > at(n - 1, best) ? j : best), 0);
  const label = `Head ${head}: ${tokens[n - 1]}, token ${n}, attends most to ${tokens[most]}, token ${most + 1}, with ${Math.round(100 * at(n - 1, most))}%`;
  const size = CELL * (Math.max(n, 6) + 1);
  return (
    <svg class="pattern" width={size} height={size} viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <rect class="now" x={CELL} y={CELL * n} width={CELL * m} height={CELL} />
      {tokens.map((token, i) => (
        <>
          <text key={`row${i}`} x={CELL / 2} y={CELL * (i + 1) + 9}>{token}</text>
          <text key={`column${i}`} x={CELL * (i + 1.5)} y={9}>{token}</text>
        </>
      ))}
      {cells.map(([i, j, weight]) => <rect key={i * m + j} class="cell" x={CELL * (j + 1)} y={CELL * (i + 1)} width={CELL - 1} height={CELL - 1} style={{ opacity: weight }} />)}
    </svg>
  );
}

export function Attention({ layer, weights, tokens, off, toggle }) {
  return (
    <section>
      <h4>Attention</h4>
      <p>Each row is a token, each column a token that it attends to: the stronger the colour, the larger the weight. The framed row predicts the next token. Switch a head off and see whether the answer survives.</p>
      <div class="pieces">
        {Array.from({ length: weights.shape[0] }, (_, head) => (
          <div key={head} class={off.has(`${layer}.${head}`) ? "isOff" : undefined}>
            <Switch name={`head ${head}`} id={`${layer}.${head}`} off={off} toggle={toggle} />
            <Pattern weights={weights} head={head} tokens={tokens} />
          </div>
        ))}
      </div>
    </section>
  );
}

export function Experts({ layer, weights, tokens, off, toggle }) {
  const [, n] = weights.shape;
  const experts = Array.from({ length: n }, (_, e) => e);
  const chosen = row(weights, 0).filter((weight) => weight !== 0).length;
  return (
    <section>
      <h4>Experts</h4>
      <p>A router sends each token to {chosen} of {n} experts, with the weights shown in percent. An empty cell means that the token does not use the expert, whose parameters are then inactive. An expert that is switched off adds nothing.</p>
      <div class="scroll" role="region" aria-label={`Experts of layer ${layer}`} tabindex="0">
        <table class="experts">
          <thead><tr><th scope="col">Expert</th>{tokens.map((token, t) => <th key={t} scope="col">{token}</th>)}</tr></thead>
          <tbody>
            {experts.map((e) => (
              <tr key={e} class={off.has(`${layer}.e${e}`) ? "isOff" : undefined}>
                <th scope="row"><Switch name={`expert ${e}`} id={`${layer}.e${e}`} off={off} toggle={toggle} /></th>
                {tokens.map((_, t) => {
                  const share = Math.round(100 * row(weights, t)[e]);
                  return <td key={t} style={{ "--share": `${share}%` }}>{share ? `${share}` : ""}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function Caches({ layer, caches, tokens }) {
  const perToken = caches.reduce((n, { value }) => n + count(value.shape.slice(1)), 0);
  return (
    <section>
      <h4>KV cache</h4>
      <p>
        Each token adds its key and its value: {perToken} elements in this layer, {(perToken * tokens.length).toLocaleString("en")} for {tokens.length} tokens so far. The cache
        grows with the text; its entries never change.
      </p>
      {caches.map(({ value }, i) => (
        <div key={i} class="cache">
          <span>{i ? "values" : "keys"}</span>
          <div>
            {tokens.map((token, t) => (
              <div key={t} class="strip"><b>{token}</b><Heat values={row(value, t)} label={`${i ? "Value" : "Key"} of ${token}, token ${t + 1}, layer ${layer}`} /></div>
            ))}
          </div>
        </div>
      ))}
    </section>
  );
}

export function State({ layer, scan, off, toggle }) {
  const { state } = scan.state;
  const [channels, size] = state.shape;
  const most = state.data.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  return (
    <section class={off.has(`${layer}.state`) ? "isOff" : undefined}>
      <h4>Recurrent state</h4>
      <p>
        All that this layer remembers of the text: {channels} channels with {size} values each, {channels * size} in all, however long the text is. Each token
        overwrites a part of it. The largest value is {formatValue(most)}. Without it, the layer sees only the last few tokens.
      </p>
      <Switch name="read the state" id={`${layer}.state`} off={off} toggle={toggle} />
      <Heat values={transpose(state)} width={channels} label={`Recurrent state of layer ${layer}: ${channels} channels, ${size} values each`} />
    </section>
  );
}

const transpose = ({ shape: [n, m], data }) => Float64Array.from(data, (_, i) => data[(i % n) * m + Math.floor(i / n)]);
