// A card for each network: the digit that it reads, ten bars, and its hidden units as cells that light up.

const CLASSES = 10;
const SHOWN = 4096; // of the units of a layer: so many the server tells of

export class NetworkCard {
  #digit;
  #share;
  #bars = [];
  #layers;

  constructor(place, { operator, accuracy }, hidden, index) {
    const card = clone("network");
    card.dataset.colour = index % 4;
    card.setAttribute("aria-label", operator);
    card.querySelector(".operator").textContent = operator;
    card.querySelector(".accuracy").textContent =
      accuracy === null ? "" : `reads ${(100 * accuracy).toFixed(1)} % of the test digits`;
    this.#digit = card.querySelector(".digit");
    this.#share = card.querySelector(".share");
    for (let number = 0; number < CLASSES; number++) {
      const bar = clone("bar");
      bar.querySelector(".class").textContent = number;
      card.querySelector(".bars").append(bar);
      this.#bars.push(bar);
    }
    this.#layers = hidden.map((width, number) => new Layer(card.querySelector(".layers"), width, number, hidden.length));
    place.append(card);
    this.clear();
  }

  // Show an answer; `largest` has for each hidden layer the value that lights a cell fully, `best` the verdict.
  show({ probabilities, hidden }, largest, best) {
    this.#bars.forEach((bar, number) => {
      const share = probabilities[number];
      bar.querySelector(".fill").style.transform = `scaleX(${share ?? 0})`;
      bar.querySelector(".percent").textContent = best === null ? "" : (100 * share).toFixed(1);
      bar.classList.toggle("best", number === best);
    });
    this.#digit.textContent = best ?? "?";
    this.#share.textContent = best === null ? "unsure" : `${(100 * probabilities[best]).toFixed(1)} %`;
    this.#layers.forEach((layer, number) => layer.show(hidden[number], largest[number]));
  }

  clear() {
    for (const bar of this.#bars) {
      bar.querySelector(".fill").style.transform = "scaleX(0)";
      bar.querySelector(".percent").textContent = "";
      bar.classList.remove("best");
    }
    this.#digit.textContent = "–";
    this.#share.textContent = "";
    for (const layer of this.#layers) layer.show(null, 0);
  }
}

// The units of a hidden layer: a canvas with a pixel for each, shown as large cells.
class Layer {
  #cells;
  #caption;
  #width;
  #name;
  #shown = [null, 0];

  constructor(place, width, number, count) {
    const figure = clone("layer");
    this.#cells = figure.querySelector("canvas");
    this.#caption = figure.querySelector("figcaption");
    this.#width = width;
    this.#name = count > 1 ? `Layer ${number + 1}: ` : "";
    this.#cells.width = columnsFor(Math.min(width, SHOWN));
    this.#cells.height = Math.ceil(Math.min(width, SHOWN) / this.#cells.width);
    const frame = figure.querySelector(".cells");
    frame.style.setProperty("--columns", this.#cells.width);
    frame.style.setProperty("--rows", this.#cells.height);
    place.append(figure);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paint());
  }

  show(values, largest) {
    this.#shown = [values, largest];
    this.#caption.textContent = this.#name + (values ? this.#lit(values) : `${this.#width} hidden units`);
    this.#cells.setAttribute("aria-label", this.#caption.textContent);
    this.#paint();
  }

  // How many units are at work, in words.
  #lit(values) {
    const lit = values.filter((value) => value !== null && value !== 0).length;
    const grey = values.some((value) => value < 0) ? "; grey: below zero" : "";
    const some = this.#width > SHOWN ? "the first " : "";
    return `${lit} of ${some}${values.length} hidden units not zero${grey}`;
  }

  #paint() {
    const [values, largest] = this.#shown;
    const { width, height } = this.#cells;
    const context = this.#cells.getContext("2d");
    const image = context.createImageData(width, height);
    const style = getComputedStyle(this.#cells);
    const [off, above, below] = ["--cell", "--colour", "--below"].map((name) => rgb(style.getPropertyValue(name)));
    for (let unit = 0; unit < Math.min(this.#width, SHOWN); unit++) {
      const value = values?.[unit] ?? 0;
      const light = largest ? Math.sqrt(Math.min(1, Math.abs(value) / largest)) : 0;
      const full = value > 0 ? above : below;
      for (let part = 0; part < 3; part++) image.data[4 * unit + part] = off[part] + light * (full[part] - off[part]);
      image.data[4 * unit + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }
}

// The three parts of a colour that is written as #rrggbb.
function rgb(colour) {
  const number = parseInt(colour.trim().slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

const SURE = 0.5; // a digit that is not as likely as all others together is none to be named
const [FULL, ROUND] = [0.7, 0.6]; // two of MNIST's 10,000 test digits fill more of a box as square as this

// The digit that a network reads in a picture; null where it is unsure, or shown a blot, of which networks that know
// nothing but digits are as sure as of digits.
export function verdict(probabilities, picture, size) {
  if (probabilities.includes(null) || isBlot(picture, size)) return null;
  const most = Math.max(...probabilities);
  return most < SURE ? null : probabilities.indexOf(most);
}

function isBlot(picture, size) {
  const inked = picture.flatMap((light, place) => (light > 127 ? [place] : []));
  const extent = (places) => Math.max(...places) - Math.min(...places) + 1;
  const [rows, columns] = [extent(inked.map((at) => Math.floor(at / size))), extent(inked.map((at) => at % size))];
  return inked.length > FULL * rows * columns && Math.min(rows, columns) > ROUND * Math.max(rows, columns);
}

// About twice as many columns as rows, and the last row full where that can be had.
function columnsFor(count) {
  const wanted = Math.sqrt(2 * count);
  const far = (columns) => Math.abs(Math.log(columns / wanted));
  let best = Math.max(1, Math.ceil(wanted));
  let full = null;
  for (let columns = 1; columns <= count; columns++) {
    if (count % columns === 0 && (full === null || far(columns) <= far(full))) full = columns;
  }
  if (full !== null && far(full) < Math.log(1.6)) best = full;
  return best;
}

function clone(name) {
  return document.getElementById(name).content.firstElementChild.cloneNode(true);
}
