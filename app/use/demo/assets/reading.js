// Reads drawings in the browser, with networks that stand in the page: `app/use/demo/static.py` writes them there.
// A drawing is prepared as `app/vision/digits.py` does it.

const { about: told, networks } = JSON.parse(document.getElementById("data").textContent);
const { side: SIDE, size: SIZE } = told;
const BOX = 20;
const INK = 0.1; // from how much on a pixel has ink
const SPECK = 0.02; // how small a share of the largest part is none of the digit

for (const network of networks) {
  for (const layer of network.layers) {
    for (const name of ["weight", "bias", "table"]) if (layer[name]) layer[name] = floats(layer[name]);
  }
}

export const describe = async () => told;

// What the networks say of a drawing, a byte for each pixel.
export async function readDrawing(bytes) {
  const start = performance.now();
  const picture = prepared(Float32Array.from(bytes, (byte) => byte / 255));
  const said = networks.map((network) => read(network, picture));
  return { picture: [...picture], networks: said, milliseconds: performance.now() - start };
}

function floats(text) {
  return new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

// The network

function read({ layers, scale, shift }, picture) {
  let values = Float32Array.from(picture, (byte) => byte * scale + shift);
  const hidden = [];
  for (const layer of layers) {
    values = dense(values, layer);
    if (layer.table) {
      values = values.map((value) => operator(value, layer));
      hidden.push([...values].map(number));
    }
  }
  const largest = Math.max(...values);
  const powers = [...values].map((value) => Math.exp(value - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return { probabilities: powers.map((power) => number(power / total)), hidden };
}

const number = (value) => (Number.isFinite(value) ? value : null);

function dense(values, { weight, bias }) {
  const sums = Float64Array.from(bias);
  values.forEach((value, row) => {
    if (value === 0) return;
    const from = row * sums.length;
    for (let unit = 0; unit < sums.length; unit++) sums[unit] += value * weight[from + unit];
  });
  return Float32Array.from(sums);
}

// The operator between layers, read off a table; beyond its ends it goes on straight.
function operator(value, { table, low, step }) {
  const at = (value - low) / step;
  const place = Math.min(Math.max(Math.floor(at), 0), table.length - 2);
  return table[place] + (at - place) * (table[place + 1] - table[place]);
}

// The picture

function prepared(ink) {
  if (!ink.some((value) => value > INK)) throw new Error("nothing is drawn");
  return centred(fitted(cut(ink)));
}

// The part that has ink, without specks that lie around, as { values, rows, columns }.
function cut(ink) {
  const kept = withoutSpecks(ink);
  const near = ink.map((value, place) => (around(place).some((other) => kept[other]) ? value : 0));
  const inked = [...near.keys()].filter((place) => near[place] > INK);
  const [down, across] = [inked.map((place) => Math.floor(place / SIDE)), inked.map((place) => place % SIDE)];
  const [top, left] = [Math.min(...down), Math.min(...across)];
  const [rows, columns] = [Math.max(...down) - top + 1, Math.max(...across) - left + 1];
  const values = new Float32Array(rows * columns);
  for (let place = 0; place < values.length; place++) {
    values[place] = near[(top + Math.floor(place / columns)) * SIDE + left + (place % columns)];
  }
  return { values, rows, columns };
}

function withoutSpecks(ink) {
  const parts = new Int32Array(ink.length);
  const amounts = [0];
  for (let first = 0; first < ink.length; first++) {
    if (ink[first] <= INK || parts[first]) continue;
    const part = amounts.length;
    let amount = 0;
    const waiting = [first];
    parts[first] = part;
    while (waiting.length) {
      const place = waiting.pop();
      amount += ink[place];
      for (const other of around(place)) {
        if (ink[other] > INK && !parts[other]) {
          parts[other] = part;
          waiting.push(other);
        }
      }
    }
    amounts.push(amount);
  }
  const least = SPECK * Math.max(...amounts);
  return parts.map((part) => (part && amounts[part] >= least ? 1 : 0));
}

// A pixel and its neighbours.
function around(place) {
  const [row, column] = [Math.floor(place / SIDE), place % SIDE];
  const found = [];
  for (let y = Math.max(row - 1, 0); y <= Math.min(row + 1, SIDE - 1); y++) {
    for (let x = Math.max(column - 1, 0); x <= Math.min(column + 1, SIDE - 1); x++) found.push(y * SIDE + x);
  }
  return found;
}

// The ink brought into the box, its longer side as long as that of the box.
function fitted({ values, rows, columns }) {
  const scale = BOX / Math.max(rows, columns);
  const [height, width] = [rows, columns].map((side) => Math.max(1, rounded(side * scale)));
  const narrow = resized(values, rows, columns, width);
  const small = transposed(resized(transposed(narrow, rows, width), width, rows, height), width, height);
  const clipped = small.map((value) => Math.min(Math.max(value, 0), 1));
  const most = Math.max(...clipped, 0.1);
  return { values: clipped.map((value) => value / most), rows: height, columns: width };
}

// Rows of another length, by cubic interpolation over as many pixels as make one, as Pillow does it.
function resized(values, rows, columns, length) {
  const scale = columns / length;
  const wide = Math.max(scale, 1);
  const found = new Float32Array(rows * length);
  for (let at = 0; at < length; at++) {
    const centre = (at + 0.5) * scale;
    const first = Math.max(Math.floor(centre - 2 * wide + 0.5), 0);
    const last = Math.min(Math.floor(centre + 2 * wide + 0.5), columns);
    const shares = [];
    for (let place = first; place < last; place++) shares.push(cubic((place - centre + 0.5) / wide));
    const total = shares.reduce((sum, share) => sum + share, 0);
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      shares.forEach((share, index) => (sum += (share / total) * values[row * columns + first + index]));
      found[row * length + at] = sum;
    }
  }
  return found;
}

function cubic(distance) {
  const x = Math.abs(distance);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

function transposed(values, rows, columns) {
  return values.map((_, place) => values[(place % rows) * columns + Math.floor(place / rows)]);
}

// The box put where its centre of mass is in the middle, as far as all stays inside; as bytes.
function centred({ values, rows, columns }) {
  const total = values.reduce((sum, value) => sum + value, 0);
  const mean = (index) => values.reduce((sum, value, place) => sum + value * index(place), 0) / total;
  const put = (centre, size) => Math.min(Math.max(rounded(SIZE / 2 - centre), 0), SIZE - size);
  const top = put(mean((place) => Math.floor(place / columns)), rows);
  const left = put(mean((place) => place % columns), columns);
  const picture = new Uint8Array(SIZE * SIZE);
  values.forEach((value, place) => {
    picture[(top + Math.floor(place / columns)) * SIZE + left + (place % columns)] = rounded(255 * value);
  });
  return picture;
}

// A half goes to the even number, as Python rounds.
function rounded(value) {
  const near = Math.round(value);
  return Math.abs(value % 1) === 0.5 && near % 2 ? near - 1 : near;
}
