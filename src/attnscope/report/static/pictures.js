// The maps of one example side by side, or the strip of a classified text: captions, canvases, marks.

import { ink } from "./colour.js";
import { el, swatch, term } from "./dom.js";
import { rowByRow } from "./frames.js";
import { cellAt, drawMap } from "./heatmap.js";
import { blocks, drawStrip, LINE_NAMES, wordAt } from "./strip.js";
import { number, word } from "./text.js";
import { endsOf } from "./words.js";

// The letter of a score where it has one, its name otherwise.
export function symbolOf(score) {
  const [first] = score.label.split(" ");
  return /^[α-ωΔ]/u.test(first) ? first : score.label;
}

export class Pictures {
  // point(cell, event) is told where the reader points; without a cell the pointer has left.
  constructor(element, point) {
    this.element = element;
    this.point = point;
  }

  // frames: {map, step, matrix, ends, score, label}; words: {inputs, outputs, gold}.
  drawGrid(frames, { inputs, outputs, gold }, marked, byRow) {
    const figures = this.reused("grid", frames.length);
    const width = this.element.clientWidth;
    const across = width < 700 ? 1 : Math.min(frames.length, width > 1000 ? 3 : 2);
    const room = Math.floor(width / across) - 28;
    this.element.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
    frames.forEach((frame, index) => {
      const { score, label } = frame;
      const canvas = figures[index].querySelector("canvas");
      figures[index].querySelector("figcaption").replaceChildren(...caption(frame));
      const matrix = byRow ? rowByRow(frame.matrix) : frame.matrix;
      const ends = byRow ? endsOf([matrix]) : frame.ends;
      canvas.ariaLabel = `${label}: ${matrix.rows} output by ${matrix.columns} input words`;
      const place = drawMap(canvas, matrix, { inputs, outputs, colour: score.colour, ends, gold, marked, room });
      this.listen(canvas, (event) => cellAt(place, matrix, event.offsetX, event.offsetY));
    });
  }

  // several: units are side by side, and their lines are told apart by dashes.
  drawStrips(frames, { inputs }, marked, several) {
    const narrow = this.element.clientWidth < 560;
    const rows = frames.map(({ label, score, matrix, ends }) => ({ label: narrow && !several ? symbolOf(score) : label, colour: score.colour, values: matrix.values, ends }));
    const dash = ({ map }) => (map.unit < 0 ? 1 : several ? map.unit : 0);
    const lines = frames.filter(({ map }) => map.score.endsWith("_probe")).map((frame) => ({ label: frame.label, colour: frame.score.colour, values: frame.matrix.values, dash: dash(frame) }));
    const pieces = blocks(inputs.length, this.element.clientWidth, rows.map((row) => row.label), narrow ? 96 : 230);
    const figures = this.reused("strip", pieces.length);
    pieces.forEach((block, index) => {
      const canvas = figures[index].querySelector("canvas");
      canvas.ariaLabel = `Words ${block.from + 1} to ${block.to}: ${rows.map((row) => row.label).join(", ")}`;
      figures[index].querySelector("figcaption").replaceChildren(...(index === 0 ? legend(frames, lines) : []));
      drawStrip(canvas, block, inputs, rows, lines, marked);
      this.listen(canvas, (event) => wordAt(block, event.offsetX));
    });
  }

  listen(canvas, cellOf) {
    canvas.onpointermove = canvas.onpointerdown = (event) => this.point(cellOf(event), event);
    canvas.onpointerleave = () => this.point(null);
  }

  // The same elements again, so that nothing flickers while the slider moves.
  reused(kind, count) {
    const children = [...this.element.children];
    if (this.element.dataset.kind === kind && children.length === count) return children;
    const figures = Array.from({ length: count }, () => el("figure", {}, el("figcaption", {}), el("div", { className: "scroll" }, el("canvas", { role: "img" }))));
    this.element.dataset.kind = kind;
    this.element.replaceChildren(...figures);
    return figures;
  }
}

function caption({ map, step, score, label }) {
  const when = [step === null ? "" : `step ${number(step)}`, map.note].filter(Boolean).join(", ");
  return [swatch(ink(score.colour)), term(word(label, 60), score.meaning), el("span", { className: "faint" }, ` ${when}`)];
}

function legend(frames, lines) {
  const keys = frames.map((frame) => el("span", { className: "key" }, ...caption(frame)));
  if (!lines.length) return keys;
  const meaning = "What each word alone would make the model say: the probability of the label if all attention were on that word (tutek, figure 2).";
  const named = lines.map((line) => `${line.label} ${LINE_NAMES[line.dash % LINE_NAMES.length]}`).join(", ");
  const told = lines.length > 1 ? ["The ", term("lines", meaning), ` above the words are probabilities of the label from each word alone: ${named}.`] : ["The ", term("line", meaning), " above the words is β, the probability of the label from each word alone."];
  return [...keys, el("p", { className: "faint" }, ...told)];
}
