// The sheet that one draws on, with a mouse, a pen or a finger.

const PEN = 0.05; // the width of a line on the sheet, as a share of its side

// The networks are shown the drawing as it fills a square, so that a small one is as fine as a large one, with lines
// as wide, for the size of a digit, as those of MNIST.
const FILLED = 0.8;
const PEN_OF_DIGIT = 0.15;
const SMALLEST = 0.06; // a dot is not blown up to a disc as large as a digit

export class Pad {
  #canvas;
  #strokes = [];
  #pointer = null;
  #changed;
  #ended;

  constructor(canvas, changed, ended) {
    this.#canvas = canvas;
    this.#changed = changed;
    this.#ended = ended;
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#go(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      canvas.addEventListener(end, (event) => this.#end(event));
    }
    new ResizeObserver(() => this.show()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
  }

  get empty() {
    return this.#strokes.length === 0;
  }

  clear() {
    this.#strokes = [];
    this.#pointer = null;
    this.show();
  }

  // The drawing for the networks: a byte for each of side x side pixels, of how much ink it has.
  bytes(side) {
    const canvas = Object.assign(document.createElement("canvas"), { width: side, height: side });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const points = this.#strokes.flat();
    const [left, top] = [Math.min(...points.map((p) => p.x)), Math.min(...points.map((p) => p.y))];
    const [right, bottom] = [Math.max(...points.map((p) => p.x)), Math.max(...points.map((p) => p.y))];
    const extent = Math.max(right - left, bottom - top, SMALLEST);
    const scale = (FILLED * side) / extent;
    context.translate(side / 2 - (scale * (left + right)) / 2, side / 2 - (scale * (top + bottom)) / 2);
    context.scale(scale, scale);
    this.#paint(context, PEN_OF_DIGIT * extent, "#fff");
    const { data } = context.getImageData(0, 0, side, side);
    const ink = new Uint8Array(side * side);
    for (let pixel = 0; pixel < ink.length; pixel++) ink[pixel] = data[4 * pixel + 3];
    return ink;
  }

  // Paint the sheet anew, at the size and in the colours that it has now.
  show() {
    const side = Math.round(this.#canvas.clientWidth * devicePixelRatio);
    if (this.#canvas.width !== side) this.#canvas.width = this.#canvas.height = side;
    const context = this.#canvas.getContext("2d");
    context.setTransform(side, 0, 0, side, 0, 0);
    context.clearRect(0, 0, 1, 1);
    this.#paint(context, PEN, getComputedStyle(this.#canvas).color);
  }

  #paint(context, width, colour) {
    Object.assign(context, { lineWidth: width, lineCap: "round", lineJoin: "round", strokeStyle: colour });
    for (const [first, ...others] of this.#strokes) {
      context.beginPath();
      context.moveTo(first.x, first.y);
      const dot = { x: first.x + width / 100, y: first.y }; // a line of no length at all would not be painted
      for (const point of others.length ? others : [dot]) context.lineTo(point.x, point.y);
      context.stroke();
    }
  }

  #begin(event) {
    if (this.#pointer !== null || event.button !== 0) return;
    event.preventDefault();
    this.#pointer = event.pointerId;
    try {
      this.#canvas.setPointerCapture(event.pointerId);
    } catch {
      // a pointer that has gone already: what it drew stays
    }
    this.#strokes.push([]);
    this.#add(event);
  }

  #go(event) {
    if (event.pointerId === this.#pointer) this.#add(event);
  }

  #end(event) {
    if (event.pointerId !== this.#pointer) return;
    this.#pointer = null;
    this.#ended();
  }

  #add(event) {
    const box = this.#canvas.getBoundingClientRect();
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const { clientX, clientY } of passed.length ? passed : [event]) {
      this.#strokes.at(-1).push({ x: (clientX - box.left) / box.width, y: (clientY - box.top) / box.height });
    }
    this.show();
    this.#changed(performance.now());
  }
}
