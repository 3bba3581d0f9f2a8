// Classification: one row for each score over the words of the text, and above them the line of
// what each word alone would make the model say. A long text goes on in further blocks.

import { isDark, ink, ramp } from "./colour.js";
import { drawMark, inkOfPage, prepared, slanted } from "./heatmap.js";
import { short } from "./text.js";

const LINE = 84;
const ROW = 20;
const LABELS = 74;
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
export const LINE_NAMES = ["solid", "dashed", "dotted", "dash-dotted"];
const LABEL_FONT = "12px system-ui, 'Liberation Sans', Arial, sans-serif";
const MOST_LABEL = 30;

// How many words a block has, how wide they are, and how much room their labels take; blocks of one
// text are about as long.
export function blocks(count, room, labels, most) {
  const gutter = Math.min(most, widest(labels) + 14);
  const cell = count > 120 ? 15 : Math.max(24, Math.min(54, Math.floor((room - gutter - 40) / count)));
  const fitting = Math.max(6, Math.floor((room - gutter - 40) / cell));
  const lines = Math.ceil(count / fitting);
  const size = Math.ceil(count / lines);
  return Array.from({ length: lines }, (_, index) => ({
    from: index * size,
    to: Math.min(count, (index + 1) * size),
    cell,
    gutter,
  }));
}

function widest(labels) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = LABEL_FONT;
  return Math.ceil(Math.max(24, ...labels.map((label) => pen.measureText(short(label, MOST_LABEL)).width)));
}

// rows: {label, colour, values, ends}; lines: {label, colour, values, dash}.
export function drawStrip(canvas, block, words, rows, lines, marked) {
  const { from, to, cell, gutter } = block;
  const top = lines.length ? LINE + 8 : 0;
  const cells = top + LABELS;
  const width = gutter + (to - from) * cell + 40;
  const pen = prepared(canvas, width, cells + rows.length * ROW + 6);
  if (lines.length) drawLines(pen, block, lines);
  pen.fillStyle = inkOfPage();
  pen.textBaseline = "middle";
  for (let l = from; l < to; l += 1) {
    slanted(pen, short(words[l], 11), gutter + (l - from + 0.5) * cell, cells - 6, cell > 15 ? 12 : 10);
  }
  rows.forEach((row, index) => {
    const fill = ramp(row.colour, ...row.ends);
    const y = cells + index * ROW;
    for (let l = from; l < to; l += 1) {
      if (Number.isNaN(row.values[l])) continue;
      pen.fillStyle = fill(row.values[l]);
      pen.fillRect(gutter + (l - from) * cell, y, cell - 1, ROW - 2);
    }
    pen.strokeStyle = isDark() ? "#45454d" : "#dcdce1";
    pen.strokeRect(gutter - 0.5, y - 0.5, (to - from) * cell, ROW - 1);
    pen.fillStyle = inkOfPage();
    pen.textAlign = "right";
    pen.font = LABEL_FONT;
    pen.fillText(short(row.label, MOST_LABEL), gutter - 6, y + ROW / 2 - 1);
    pen.textAlign = "left";
  });
  if (marked && marked.l >= from && marked.l < to) {
    const x = gutter + (marked.l - from) * cell;
    drawMark(pen, x, cells - 1, cell, rows.length * ROW);
  }
  return { top: cells, height: rows.length * ROW };
}

function drawLines(pen, { from, to, cell, gutter }, lines) {
  const y = (value) => 7 + (1 - value) * (LINE - 14);
  const right = gutter + (to - from) * cell;
  pen.strokeStyle = isDark() ? "#45454d" : "#dcdce1";
  pen.fillStyle = inkOfPage();
  pen.font = "10px system-ui, 'Liberation Sans', Arial, sans-serif";
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of [0, 0.5, 1]) {
    pen.setLineDash(value === 0.5 ? [3, 3] : []);
    pen.beginPath();
    pen.moveTo(gutter, y(value));
    pen.lineTo(right, y(value));
    pen.stroke();
    pen.fillText(String(value), gutter - 6, y(value));
  }
  pen.textAlign = "left";
  for (const line of lines) {
    pen.strokeStyle = pen.fillStyle = ink(line.colour);
    pen.setLineDash(DASHES[line.dash % DASHES.length]);
    pen.lineWidth = 1.6;
    pen.beginPath();
    let drawing = false;
    for (let l = from; l < to; l += 1) {
      const value = line.values[l];
      const x = gutter + (l - from + 0.5) * cell;
      if (Number.isNaN(value)) drawing = false;
      else if (drawing) pen.lineTo(x, y(value));
      else {
        pen.moveTo(x, y(value));
        drawing = true;
      }
    }
    pen.stroke();
    pen.setLineDash([]);
    for (let l = from; l < to; l += 1) {
      if (Number.isNaN(line.values[l])) continue;
      pen.beginPath();
      pen.arc(gutter + (l - from + 0.5) * cell, y(line.values[l]), 2.4, 0, 2 * Math.PI);
      pen.fill();
    }
    pen.lineWidth = 1;
  }
}

export function wordAt(block, x) {
  const l = block.from + Math.floor((x - block.gutter) / block.cell);
  return l >= block.from && l < block.to && x >= block.gutter ? { t: 0, l } : null;
}
