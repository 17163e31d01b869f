// Draws, asks the networks after every movement, and shows what they answer.

import { describe, readDrawing } from "/asking.js";
import { NetworkCard, verdict } from "/network.js";
import { Pad } from "/pad.js";

const $ = (name) => document.getElementById(name);
const times = []; // milliseconds from a movement of the pen to what is shown of it
const TIMES_KEPT = 500;

let about;
let cards = [];
let asking = false;
let movedAt = null; // when the pen moved, if that has not been asked about yet
let drawings = 0; // those that were begun: an answer to one that was cleared is not shown
let last = null;
let ended = false; // a line has ended, and its answer is still to be said

const pad = new Pad($("pad"), moved, () => {
  ended = true;
  if (!asking) speak();
});

async function begin() {
  about = await describe();
  $("run").textContent =
    `Read while you draw by ${about.run}: 784–${[...about.layers, 10].join("–")}.`;
  $("advice").textContent = about.advice;
  $("advice").hidden = !about.advice;
  cards = about.networks.map((network, index) => new NetworkCard($("networks"), network, about.hidden, index));
  $("clear").addEventListener("click", clear);
  addEventListener("keydown", (event) => event.key === "Escape" && clear());
  clear();
}

function moved(now) {
  $("hint").hidden = true;
  movedAt ??= now;
  if (!asking && about) ask();
}

async function ask() {
  asking = true;
  try {
    while (movedAt !== null) {
      const [since, drawing] = [movedAt, drawings];
      movedAt = null;
      const answer = await readDrawing(pad.bytes(about.side));
      if (drawing === drawings) show(answer, since);
    }
  } catch (error) {
    tell(error);
  } finally {
    asking = false;
    if (ended) speak();
  }
}

function show(answer, since) {
  last = answer;
  const largest = about.hidden.map((_, layer) =>
    Math.max(...answer.networks.map((network) => network.hidden[layer].reduce((most, v) => Math.max(most, Math.abs(v)), 0))),
  );
  const digits = answer.networks.map(({ probabilities }) => verdict(probabilities, answer.picture, about.size));
  cards.forEach((card, index) => card.show(answer.networks[index], largest, digits[index]));
  showSeen(answer.picture);
  $("problem").hidden = true;
  $("agreement").textContent = agreement(answer.networks, digits);
  times.push(performance.now() - since);
  if (times.length > TIMES_KEPT) times.shift();
  const sorted = [...times].sort((a, b) => a - b);
  const [now, middle, worst] = [times.at(-1), sorted[sorted.length >> 1], sorted.at(-1)].map((ms) => ms.toFixed(1));
  $("time").textContent = `${now} ms from pen to answer (median ${middle}, worst ${worst})`;
}

// How far the networks are apart, in words.
function agreement(networks, digits) {
  const [first, ...others] = networks;
  if (!others.length || digits.includes(null)) return "";
  const same = new Set(digits).size === 1;
  const apart = Math.max(...others.flatMap((o) => o.probabilities.map((share, digit) => Math.abs(share - first.probabilities[digit]))));
  if (!same) return "They disagree.";
  return apart ? `They agree; their probabilities differ by at most ${(100 * apart).toPrecision(2)} %.` : "They agree exactly.";
}

function showSeen(picture) {
  const context = $("seen").getContext("2d");
  const image = context.createImageData(about.size, about.size);
  picture.forEach((light, pixel) => image.data.set([light, light, light, 255], 4 * pixel));
  context.putImageData(image, 0, 0);
}

function clear() {
  drawings++;
  movedAt = last = null;
  pad.clear();
  showSeen(new Array(about.size ** 2).fill(0));
  for (const card of cards) card.clear();
  for (const name of ["agreement", "time", "spoken"]) $(name).textContent = "";
  $("hint").hidden = false;
}

// Say the answer, when a line ends, to those who cannot see it.
function speak() {
  ended = false;
  if (!last) return;
  $("spoken").textContent = about.networks
    .map(({ operator }, index) => `${operator}: ${verdict(last.networks[index].probabilities, last.picture, about.size) ?? "unsure"}`)
    .join(", ");
}

function tell(error) {
  $("problem").textContent = `${error.message}.`;
  $("problem").hidden = false;
}

begin().catch(tell);
