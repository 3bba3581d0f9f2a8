// One score of one example as a picture: output words down, input words across.

import { GOLD, isDark, ramp } from "./colour.js";
import { isolated, short } from "./text.js";

const FONT = "12px system-ui, 'Liberation Sans', Arial, sans-serif";
const SMALL = "10px system-ui, 'Liberation Sans', Arial, sans-serif";

export function inkOfPage() {
  return isDark() ? "#d6d6dd" : "#222222";
}

// A canvas as sharp as the screen; sizes are in CSS pixels.
export function prepared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

export function slanted(pen, text, x, y, size) {
  pen.save();
  pen.translate(x, y);
  pen.rotate(-Math.PI / 3);
  pen.font = size < 11 ? SMALL : FONT;
  pen.fillText(isolated(text), 0, 0);
  pen.restore();
}

// Where the cells of a map lie, in CSS pixels.
export function layout(pen, inputs, outputs, room) {
  pen.font = FONT;
  const widest = Math.max(...outputs.map((text) => pen.measureText(text).width), 10);
  const tallest = Math.max(...inputs.map((text) => pen.measureText(text).width), 10);
  const left = Math.min(130, widest + 10);
  const top = Math.min(105, tallest * 0.87 + 14);
  // The last words lean out to the right.
  const right = Math.min(52, tallest * 0.5 + 8);
  const fitting = Math.floor((room - left - right) / Math.max(1, inputs.length));
  const cell = Math.max(5, Math.min(26, fitting));
  return { left, top, cell, width: left + cell * inputs.length + right, height: top + cell * outputs.length + 4 };
}

// Draw a matrix; ends fix the colours, gold marks known positions, marked is {t, l} or null.
export function drawMap(canvas, matrix, { inputs, outputs, colour, ends, gold, marked, room }) {
  const shortInputs = inputs.map((text) => short(text, 14));
  const shortOutputs = outputs.map((text) => short(text, 16));
  const place = layout(canvas.getContext("2d"), shortInputs, shortOutputs, room);
  const pen = prepared(canvas, place.width, place.height);
  const { left, top, cell } = place;
  const fill = ramp(colour, ...ends);
  for (let t = 0; t < matrix.rows; t += 1) {
    for (let l = 0; l < matrix.columns; l += 1) {
      const value = matrix.values[t * matrix.columns + l];
      if (Number.isNaN(value)) continue;
      pen.fillStyle = fill(value);
      pen.fillRect(left + l * cell, top + t * cell, cell, cell);
    }
  }
  pen.strokeStyle = isDark() ? "#55555f" : "#c9c9cf";
  pen.strokeRect(left - 0.5, top - 0.5, matrix.columns * cell + 1, matrix.rows * cell + 1);
  drawGold(pen, gold, place);
  pen.fillStyle = inkOfPage();
  pen.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(11 / cell));
  shortInputs.forEach((text, l) => {
    if (l % every === 0 || marked?.l === l) {
      pen.fillStyle = marked?.l === l ? strongInk() : inkOfPage();
      slanted(pen, text, left + (l + 0.5) * cell, top - 6, cell);
    }
  });
  pen.textAlign = "right";
  shortOutputs.forEach((text, t) => {
    if (t % every === 0 || marked?.t === t) {
      pen.font = cell < 11 ? SMALL : FONT;
      pen.fillStyle = marked?.t === t ? strongInk() : inkOfPage();
      pen.fillText(isolated(text), left - 5, top + (t + 0.5) * cell);
    }
  });
  pen.textAlign = "left";
  if (marked) drawMark(pen, left + marked.l * cell, top + marked.t * cell, cell, cell);
  return place;
}

function strongInk() {
  return isDark() ? "#ffb45c" : "#b3370a";
}

export function drawMark(pen, x, y, width, height) {
  pen.lineWidth = 2;
  pen.strokeStyle = strongInk();
  pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  pen.lineWidth = 1;
}

// Circles with a rim of paper, so that they are seen on every colour.
function drawGold(pen, gold, { left, top, cell }) {
  for (const [colour, width] of [[isDark() ? "#131418" : "#ffffff", 2.6], [GOLD, 1.4]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    (gold ?? []).forEach((l, t) => {
      if (l < 0) return;
      pen.beginPath();
      pen.arc(left + (l + 0.5) * cell, top + (t + 0.5) * cell, Math.max(1.5, cell * 0.16), 0, 2 * Math.PI);
      pen.stroke();
    });
  }
  pen.lineWidth = 1;
}

export function cellAt(place, matrix, x, y) {
  const l = Math.floor((x - place.left) / place.cell);
  const t = Math.floor((y - place.top) / place.cell);
  return t >= 0 && l >= 0 && t < matrix.rows && l < matrix.columns ? { t, l } : null;
}
