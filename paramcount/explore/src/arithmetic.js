// Exact integers: expressions as Python exported them, evaluated with BigInt.

export const multiply = (numbers) => numbers.reduce((product, n) => product * n, 1n);

/** Floor division, as in Python; null for a division by zero. */
function floorDivide(a, b) {
  if (b === 0n) return null;
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

const OPERATORS = {
  "+": (...numbers) => numbers.reduce((sum, n) => sum + n, 0n),
  "*": (...numbers) => multiply(numbers),
  power: (a, b) => a ** b,
  min: (a, b) => (a < b ? a : b),
  "//": floorDivide,
  "%": (a, b) => (b === 0n ? null : a - floorDivide(a, b) * b),
  "=": (a, b) => a === b,
  "<": (a, b) => a < b,
};

/**
 * The value of an expression: a number, the name of a value, [operator, operand, …], or anything else as it is. It is null
 * if it divides by zero. "if" has a condition and two expressions, "share" a size and a number, "apply" an expression and
 * its values, "integer" an integer as a string.
 */
export function evaluate(expression, values) {
  if (typeof expression === "string") return values[expression];
  if (typeof expression === "number") return BigInt(expression);
  if (!Array.isArray(expression)) return expression;
  const [operator, ...operands] = expression;
  if (operator === "integer") return BigInt(operands[0]);
  if (operator === "if") return evaluate(operands[evaluate(operands[0], values) ? 1 : 2], values);
  if (operator === "share") return BigInt(Math.trunc(Number(evaluate(operands[0], values)) * operands[1])); // in floats, as in Python
  if (operator === "apply") return evaluate(operands[0], operands.slice(1).map((operand) => evaluate(operand, values)));
  const numbers = operands.map((operand) => evaluate(operand, values));
  return numbers.includes(null) ? null : OPERATORS[operator](...numbers);
}
