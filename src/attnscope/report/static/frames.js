// What a scene's bytes say: the matrix of a score at a step, and which values are its strongest.

import { endsOf, matrixOf, merged } from "./words.js";

export function isTerm(map) {
  return map.score.startsWith("term_");
}

export class Frames {
  constructor(scene) {
    this.scene = scene;
    this.made = new Map();
  }

  // Whether a map has anything of an example.
  has(map, example) {
    const count = map.steps.length;
    return map.ends.slice(example * count, (example + 1) * count).some(Boolean);
  }

  // The matrix of a map at a place among its steps, made once; whole: pieces put together.
  matrix(map, example, place, whole) {
    const key = `${this.scene.maps.indexOf(map)}/${example}/${place}/${whole}`;
    if (!this.made.has(key)) this.made.set(key, this.make(map, example, place, whole));
    return this.made.get(key);
  }

  make(map, example, place, whole) {
    const ends = map.ends[example * map.steps.length + place];
    if (!ends) return null;
    const { inputs, outputs, inputGroups, outputGroups } = this.scene.examples[example];
    const matrix = matrixOf(this.scene.bytes, this.offset(map, example, place), outputs.length, inputs.length, ends);
    return whole ? merged(matrix, inputGroups, outputGroups, map.merge) : matrix;
  }

  // Blocks of bytes lie in the order of examples, then steps; what is missing has none.
  offset(map, example, place) {
    let offset = map.start;
    this.scene.examples.slice(0, example + 1).forEach(({ inputs, outputs }, index) => {
      const steps = index < example ? map.steps.length : place;
      const first = index * map.steps.length;
      offset += inputs.length * outputs.length * map.ends.slice(first, first + steps).filter(Boolean).length;
    });
    return offset;
  }

  matrices(map, example, whole) {
    return map.steps.map((_, place) => this.matrix(map, example, place, whole));
  }

  // What a map shows at a step: its last matrix that is not later, or else its first.
  latest(map, example, whole, now) {
    const all = this.matrices(map, example, whole);
    const past = all.map((matrix, place) => (matrix && (map.steps[place] === null || map.steps[place] <= now) ? place : -1));
    const last = Math.max(...past);
    const place = last >= 0 ? last : all.findIndex(Boolean);
    return { map, step: map.steps[place], matrix: all[place] };
  }

  // Which values have the strongest colours. Terms of a logit are parts of one sum: one scale.
  ends({ map, matrix }, example, whole, scale) {
    const alike = isTerm(map) ? this.scene.maps.filter((other) => other.unit === map.unit && isTerm(other)) : [map];
    if (scale !== "all" && alike.length === 1) return endsOf([matrix]);
    return endsOf(alike.flatMap((each) => this.matrices(each, example, whole)).filter(Boolean));
  }
}

// Each row by itself: values over the row's largest.
export function rowByRow(matrix) {
  const values = matrix.values.slice();
  for (let t = 0; t < matrix.rows; t += 1) {
    const row = values.subarray(t * matrix.columns, (t + 1) * matrix.columns);
    const most = row.reduce((top, value) => (Number.isNaN(value) ? top : Math.max(top, Math.abs(value))), 0) || 1;
    row.forEach((value, l) => (row[l] = value / most));
  }
  return { ...matrix, values };
}
