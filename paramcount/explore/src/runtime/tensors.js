// Tensors: a shape and its values in a row, and those in a file of weights.

/** {shape, data} with these values, or with zeros. */
export const tensor = (shape, data = new Float64Array(count(shape))) => ({ shape, data });

export const count = (shape) => shape.reduce((n, size) => n * size, 1);

/** The values of one row of the first axis, not copied. */
export function row({ shape, data }, i) {
  const size = count(shape.slice(1));
  return data.subarray(i * size, (i + 1) * size);
}

/** A tensor of the same shape with a function of each value. */
export const map = ({ shape, data }, f) => tensor(shape, data.map(f));

/** The rows of tensors one after the other. */
export function stack(tensors) {
  const [, ...rest] = tensors[0].shape;
  const found = tensor([tensors.reduce((n, { shape }) => n + shape[0], 0), ...rest]);
  let at = 0;
  for (const { data } of tensors) {
    found.data.set(data, at);
    at += data.length;
  }
  return found;
}

/** The value of a float of 16 bits. */
export function readHalf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

const READERS = {
  F16: [2, (view, at) => readHalf(view.getUint16(at, true))],
  F32: [4, (view, at) => view.getFloat32(at, true)],
};

/** {name: tensor} of the bytes of a safetensors file. */
export function readSafetensors(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  delete header.__metadata__;
  return new Map(
    Object.entries(header).map(([name, { dtype, shape, data_offsets: [start] }]) => {
      const [size, read] = READERS[dtype];
      return [name, tensor(shape, Float64Array.from({ length: count(shape) }, (_, i) => read(view, 8 + length + start + i * size)))];
    }),
  );
}
