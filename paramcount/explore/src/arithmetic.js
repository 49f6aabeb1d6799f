// Exact integers: polynomials and expressions as Python exported them, evaluated with BigInt.

/** The value of a number or of a polynomial: terms of [coefficient, index of a size, …]. */
export function evaluate(polynomial, values) {
  if (!Array.isArray(polynomial)) return BigInt(polynomial);
  let sum = 0n;
  for (const term of polynomial) {
    let product = BigInt(term[0]);
    for (let i = 1; i < term.length; i++) product *= values[term[i]];
    sum += product;
  }
  return sum;
}

export const multiply = (numbers) => numbers.reduce((product, n) => product * n, 1n);
export const least = (a, b) => (a < b ? a : b);

/** Floor division and its remainder, as in Python; 0 for a division by zero, where an earlier check has failed. */
function floorDivide(a, b) {
  if (b === 0n) return 0n;
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

const OPERATORS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "//": floorDivide,
  "%": (a, b) => (b === 0n ? 0n : a - floorDivide(a, b) * b),
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

/** The value of an expression: an integer, the name of a size, [operator, left, right], or ["share", size, number]. */
export function calculate(expression, sizes) {
  if (typeof expression === "string") return sizes[expression];
  if (typeof expression === "number") return BigInt(expression);
  const [operator, left, right] = expression;
  if (operator === "share") return BigInt(Math.trunc(Number(calculate(left, sizes)) * right)); // in floats, as in Python
  return OPERATORS[operator](calculate(left, sizes), calculate(right, sizes));
}

/** What a tree of decisions says of sizes: the error of its leaf, or null. */
export function decide(tree, sizes) {
  let node = tree;
  while (Array.isArray(node)) node = calculate(node[0], sizes) ? node[1] : node[2];
  return node;
}
