// Attention through training: every stored score of an example on the same axes, step by step.

import { unpacked } from "./bytes.js";
import { chart, curveSpec, facts } from "./charts.js";
import { ink } from "./colour.js";
import { el, hideTip, labelled, option, showTip, swatch, term } from "./dom.js";
import { cellAt, drawMap } from "./heatmap.js";
import { blocks, drawStrip, wordAt } from "./strip.js";
import { number, short, word } from "./text.js";
import { endsOf, matrixOf, merged, mergedWords } from "./words.js";

const PLAY_EVERY = 600;
const ALL = "all";
const ORDER = ["attention", "lexical_probe", "uniform_probe", "proxy", "saliency", "optimal_attention", "ibm_model1"];

export class AttentionView {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.state = { scene: 0, unit: 0, example: 0, place: Infinity, scale: "all", words: true, terms: false };
    this.marked = null;
    this.frames = new Map();
    this.watcher = new ResizeObserver(() => this.drawMaps());
    if (!data.scenes.length) {
      root.replaceChildren(el("p", { className: "notice" }, "These folders hold no stored scores: results without their units. Give the workspace of a run (its --out folder) to see attention being learned."));
      return;
    }
    this.build();
    this.open(0);
  }

  build() {
    this.sceneSelect = el("select", { id: "scene", onchange: () => this.open(Number(this.sceneSelect.value)) });
    this.unitSelect = el("select", { id: "unit", onchange: () => this.set({ unit: this.unitSelect.value === ALL ? ALL : Number(this.unitSelect.value) }) });
    this.exampleSelect = el("select", { id: "example", onchange: () => this.set({ example: Number(this.exampleSelect.value) }) });
    this.slider = el("input", { id: "step", type: "range", min: 0, step: 1, oninput: () => this.set({ place: Number(this.slider.value) }) });
    this.slider.setAttribute("aria-label", "Training step");
    this.stepText = el("output", { htmlFor: "step", className: "step" });
    this.playButton = el("button", { type: "button", id: "play", onclick: () => this.play() }, "▶ Play");
    this.wordsBox = el("input", { type: "checkbox", id: "words", checked: true, onchange: () => this.set({ words: this.wordsBox.checked }) });
    this.wordsLabel = el("label", { className: "check" }, this.wordsBox, " whole words");
    this.termsBox = el("input", { type: "checkbox", id: "terms", onchange: () => this.set({ terms: this.termsBox.checked }) });
    this.termsLabel = el("label", { className: "check" }, this.termsBox, " ", term("terms of the logit", "Queries and keys are sums of what a state says about time, about its word, and the rest: nine products make up the logit before the softmax."));
    this.scaleSelect = el("select", { id: "scale", onchange: () => this.set({ scale: this.scaleSelect.value }) }, option("all", "the same at every step"), option("step", "of each step by itself"), option("row", "of each output word by itself"));
    this.note = el("p", { className: "faint" });
    this.text = el("div", { className: "sentences" });
    this.readout = el("div", { className: "readout", role: "status" });
    this.maps = el("div", { className: "maps", tabIndex: 0, role: "group", onkeydown: (event) => this.key(event) });
    this.maps.setAttribute("aria-label", "Heat maps. Arrow keys move the marked cell; comma and full stop change the step.");
    this.curves = el("div", { className: "curves" });
    this.sliderRow = el("div", { className: "slider" }, this.playButton, this.slider, this.stepText);
    this.root.replaceChildren(
      el("p", { className: "asked" }, "What the model looks at, what it knows about single words, and what is known without it: the same example under every score, at every step of training that was stored."),
      el("div", { className: "controls" }, labelled("data", this.sceneSelect), labelled("model", this.unitSelect), labelled("example", this.exampleSelect), labelled("darkest colour", this.scaleSelect), this.wordsLabel, this.termsLabel),
      this.note,
      this.sliderRow,
      this.text,
      this.readout,
      this.maps,
      this.curves,
    );
    this.watcher.observe(this.maps);
  }

  get scene() {
    return this.data.scenes[this.state.scene];
  }

  get example() {
    return this.scene.examples[this.state.example];
  }

  get units() {
    return this.state.unit === ALL ? this.scene.units.map((_, index) => index) : [this.state.unit];
  }

  async open(index) {
    this.stop();
    hideTip();
    const scene = this.data.scenes[index];
    scene.bytes ??= await unpacked(scene.data);
    this.state.scene = index;
    this.fillSelects();
    this.state.example = Math.min(this.state.example, scene.examples.length - 1);
    const fixed = scene.maps.every((map) => map.steps[0] === null);
    this.set({ unit: fixed && scene.units.length > 1 ? ALL : 0, example: 0, place: Infinity });
  }

  fillSelects() {
    const { scene } = this;
    this.sceneSelect.replaceChildren(...this.data.scenes.map((each, index) => option(index, short(each.title, 60))));
    this.sceneSelect.value = String(this.state.scene);
    this.unitSelect.replaceChildren(
      ...scene.units.map((unit, index) => option(index, short(unit.label, 50) + (unit.running ? " (training)" : ""))),
      ...(scene.units.length > 1 ? [option(ALL, "all side by side")] : []),
    );
    this.exampleSelect.replaceChildren(...scene.examples.map((example, index) => option(index, short(`${example.key}: ${this.sentence(example, "inputs")}`, 60))));
  }

  sentence(example, side) {
    const groups = example[side === "inputs" ? "inputGroups" : "outputGroups"];
    return (groups ? mergedWords(example[side], groups) : example[side]).map((text) => short(text, 24)).join(" ");
  }

  set(change) {
    Object.assign(this.state, change);
    const { scene, state } = this;
    if (this.unitSelect.value !== String(state.unit)) this.unitSelect.value = String(state.unit);
    if (this.exampleSelect.value !== String(state.example)) this.exampleSelect.value = String(state.example);
    this.steps = [...new Set(this.shownMaps().flatMap((map) => map.steps).filter((step) => step !== null))].sort((a, b) => a - b);
    state.place = Math.max(0, Math.min(state.place, this.steps.length - 1));
    this.sliderRow.hidden = this.steps.length < 2;
    this.slider.max = String(Math.max(0, this.steps.length - 1));
    this.slider.value = String(state.place);
    const step = this.steps[state.place] ?? null;
    const told = `step ${number(step)}`;
    this.slider.setAttribute("aria-valuetext", told);
    this.stepText.textContent = `${told} of ${number(this.steps.at(-1) ?? null)}`;
    this.wordsLabel.hidden = !this.example.inputGroups;
    this.termsLabel.hidden = !scene.maps.some((map) => map.score.startsWith("term_"));
    const circles = this.example.gold && !this.whole ? "Circles mark the input word that an output word really comes from." : "";
    this.note.textContent = [scene.note, this.example.cut, circles].filter(Boolean).join(" ");
    if ("example" in change || "scene" in change || "words" in change || "unit" in change) this.marked = null;
    this.tellSentence();
    this.drawMaps();
    if ("unit" in change || "example" in change) this.drawCurves();
    else this.curveView?.signal("now", step).runAsync();
  }

  shownMaps() {
    const shown = this.scene.maps.filter((map) => (map.unit < 0 || this.units.includes(map.unit)) && (this.state.terms || !map.score.startsWith("term_")) && this.hasExample(map));
    return shown.sort((a, b) => rank(a.score) - rank(b.score));
  }

  hasExample(map) {
    const count = map.steps.length;
    return map.ends.slice(this.state.example * count, (this.state.example + 1) * count).some(Boolean);
  }

  get whole() {
    return Boolean(this.state.words && this.example.inputGroups);
  }

  words() {
    const { example } = this;
    if (!this.whole) return { inputs: example.inputs, outputs: example.outputs, gold: example.gold };
    return { inputs: mergedWords(example.inputs, example.inputGroups), outputs: mergedWords(example.outputs, example.outputGroups), gold: null };
  }

  tellSentence() {
    const { inputs, outputs } = this.words();
    const most = 60;
    const line = (name, list) => el("p", {}, el("span", { className: "faint" }, `${name} `), list.slice(0, most).map((text) => [word(text, 40), " "]), list.length > most ? `… (${list.length} words)` : null);
    this.text.replaceChildren(line("input", inputs), line(this.scene.classification ? "label" : "output", outputs));
  }

  // The matrix of a map at a place among its steps, made once.
  matrix(map, place) {
    const { example, scene, state } = this;
    const key = `${state.scene}/${scene.maps.indexOf(map)}/${state.example}/${place}/${this.whole}`;
    if (!this.frames.has(key)) {
      const ends = map.ends[state.example * map.steps.length + place];
      let matrix = null;
      if (ends) {
        matrix = matrixOf(scene.bytes, this.offset(map, place), example.outputs.length, example.inputs.length, ends);
        if (this.whole) matrix = merged(matrix, example.inputGroups, example.outputGroups, map.merge);
      }
      this.frames.set(key, matrix);
    }
    return this.frames.get(key);
  }

  offset(map, place) {
    let offset = map.start;
    this.scene.examples.forEach((example, index) => {
      const size = example.inputs.length * example.outputs.length;
      map.steps.forEach((_, at) => {
        const before = index < this.state.example || (index === this.state.example && at < place);
        if (before && map.ends[index * map.steps.length + at]) offset += size;
      });
    });
    return offset;
  }

  // What a map shows now: its last step that is not later than the slider's.
  frame(map) {
    const now = this.steps[this.state.place] ?? Infinity;
    const places = map.steps.map((step, place) => [step, place]).filter(([step, place]) => (step === null || step <= now) && this.matrix(map, place));
    const [step, place] = places.at(-1) ?? [map.steps[0], 0];
    const matrix = this.matrix(map, place) ?? map.steps.map((_, at) => this.matrix(map, at)).find(Boolean);
    return { map, step, matrix, ends: this.ends(map, matrix) };
  }

  // Which values have the strongest colours. Terms of a logit are parts of one sum: one scale.
  ends(map, matrix) {
    const alike = map.score.startsWith("term_") ? this.scene.maps.filter((other) => other.unit === map.unit && other.score.startsWith("term_")) : [map];
    if (this.state.scale !== "all" && alike.length === 1) return endsOf([matrix]);
    return endsOf(alike.flatMap((each) => each.steps.map((_, at) => this.matrix(each, at))).filter(Boolean));
  }

  // Each row by itself: values over the row's largest.
  scaled({ matrix, ends }) {
    if (this.state.scale !== "row" || this.scene.classification) return { matrix, ends };
    const values = matrix.values.slice();
    for (let t = 0; t < matrix.rows; t += 1) {
      const row = values.subarray(t * matrix.columns, (t + 1) * matrix.columns);
      const most = row.reduce((top, value) => (Number.isNaN(value) ? top : Math.max(top, Math.abs(value))), 0) || 1;
      row.forEach((value, l) => (row[l] = value / most));
    }
    return { matrix: { ...matrix, values }, ends: endsOf([{ values }]) };
  }

  label(map) {
    const score = this.data.scores[map.score];
    const several = this.state.unit === ALL && map.unit >= 0;
    return several ? `${symbolOf(score)} ${this.scene.units[map.unit].label}` : score.label;
  }

  drawMaps() {
    if (this.root.hidden || !this.scene?.bytes || !this.steps) return;
    this.drawn = this.shownMaps().map((map) => this.frame(map)).filter((frame) => frame.matrix);
    if (this.scene.classification) this.drawStrips();
    else this.drawGrid();
    this.tellCell();
  }

  drawGrid() {
    const figures = this.reused("grid", this.drawn.length, () => el("canvas", { role: "img" }));
    const { inputs, outputs, gold } = this.words();
    const across = this.maps.clientWidth < 700 ? 1 : this.drawn.length > 3 && this.maps.clientWidth > 1000 ? 3 : 2;
    const room = Math.floor(this.maps.clientWidth / across) - 28;
    this.drawn.forEach((frame, index) => {
      const figure = figures[index];
      const canvas = figure.querySelector("canvas");
      this.caption(figure, frame);
      const { matrix, ends } = this.scaled(frame);
      const colour = this.data.scores[frame.map.score].colour;
      canvas.ariaLabel = `${this.label(frame.map)}: ${matrix.rows} output by ${matrix.columns} input words`;
      frame.place = drawMap(canvas, matrix, { inputs, outputs, colour, ends, gold, marked: this.marked, room });
      canvas.onpointermove = canvas.onpointerdown = (event) => this.point(cellAt(frame.place, matrix, event.offsetX, event.offsetY), event);
      canvas.onpointerleave = () => this.point(null);
    });
  }

  caption(figure, frame) {
    const score = this.data.scores[frame.map.score];
    const when = frame.step === null ? frame.map.note : [`step ${number(frame.step)}`, frame.map.note].filter(Boolean).join(", ");
    figure.querySelector("figcaption").replaceChildren(swatch(ink(score.colour)), term(word(this.label(frame.map), 60), score.meaning), el("span", { className: "faint" }, ` ${when}`));
  }

  // The same elements again, so that nothing flickers while the slider moves.
  reused(kind, count, make) {
    const children = [...this.maps.children];
    if (this.maps.dataset.kind === kind && children.length === count) return children;
    const figures = Array.from({ length: count }, () => el("figure", {}, el("figcaption", {}), el("div", { className: "scroll" }, make())));
    this.maps.dataset.kind = kind;
    this.maps.replaceChildren(...figures);
    return figures;
  }

  drawStrips() {
    const { inputs } = this.words();
    const narrow = this.maps.clientWidth < 560;
    const pieces = blocks(inputs.length, this.maps.clientWidth, narrow ? 96 : 230);
    const dash = (map) => (map.unit < 0 ? 1 : this.state.unit === ALL ? map.unit : 0);
    const rows = this.drawn.map((frame) => ({ label: narrow && this.state.unit !== ALL ? symbolOf(this.data.scores[frame.map.score]) : this.label(frame.map), colour: this.data.scores[frame.map.score].colour, values: frame.matrix.values, ends: frame.ends }));
    const lines = this.drawn.filter((frame) => frame.map.score.endsWith("_probe")).map((frame) => ({ colour: this.data.scores[frame.map.score].colour, values: frame.matrix.values, dash: dash(frame.map) }));
    const figures = this.reused("strip", pieces.length, () => el("canvas", { role: "img" }));
    pieces.forEach((block, index) => {
      const canvas = figures[index].querySelector("canvas");
      canvas.ariaLabel = `Words ${block.from + 1} to ${block.to}: ${rows.map((row) => row.label).join(", ")}`;
      figures[index].querySelector("figcaption").replaceChildren(...(index === 0 ? this.legend(lines) : []));
      drawStrip(canvas, block, inputs, rows, lines, this.marked);
      canvas.onpointermove = canvas.onpointerdown = (event) => this.point(wordAt(block, event.offsetX), event);
      canvas.onpointerleave = () => this.point(null);
    });
  }

  legend(lines) {
    const parts = this.drawn.map((frame) => {
      const score = this.data.scores[frame.map.score];
      const when = frame.step === null ? frame.map.note : `step ${number(frame.step)}`;
      return el("span", { className: "key" }, swatch(ink(score.colour)), term(word(this.label(frame.map), 60), score.meaning), el("span", { className: "faint" }, ` ${when}`));
    });
    const line = term("The line", "What each word alone would make the model say: the probability of the label if all attention were on that word (tutek, figure 2).");
    return [...parts, ...(lines.length ? [el("p", { className: "faint" }, line, " is β, the probability of the label from each word alone.")] : [])];
  }

  point(cell, event) {
    const same = cell?.t === this.marked?.t && cell?.l === this.marked?.l;
    if (!cell) hideTip();
    if (!cell && event === undefined) {
      // The mark stays where the pointer left, so that its numbers can be read.
      return;
    }
    if (cell && !same) {
      this.marked = cell;
      this.drawMaps();
    }
    if (cell && event) showTip(event.clientX, event.clientY, ...this.cellFacts(cell));
  }

  cellFacts(cell) {
    const { inputs, outputs } = this.words();
    return [
      el("div", { className: "pair" }, word(outputs[cell.t], 40), " ← ", word(inputs[cell.l], 40)),
      ...this.drawn.map(({ map, matrix }) => el("div", {}, swatch(ink(this.data.scores[map.score].colour)), `${this.label(map)} `, el("b", {}, valueText(matrix.values[cell.t * matrix.columns + cell.l])))),
    ];
  }

  tellCell() {
    if (!this.marked) {
      this.readout.replaceChildren(el("span", { className: "faint" }, "Point at a cell, or reach the maps with Tab and move with the arrow keys: every map marks the same pair of words."));
      return;
    }
    this.readout.replaceChildren(...this.cellFacts(this.marked));
  }

  key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "," || event.key === ".") {
      this.set({ place: this.state.place + (event.key === "." ? 1 : -1) });
    } else if (moves[event.key]) {
      const { inputs, outputs } = this.words();
      const [down, across] = moves[event.key];
      const { t, l } = this.marked ?? { t: 0, l: 0 };
      this.marked = this.marked ? { t: clamped(t + down, outputs.length), l: clamped(l + across, inputs.length) } : { t, l };
      this.drawMaps();
    } else return;
    event.preventDefault();
  }

  play() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.state.place >= this.steps.length - 1) this.set({ place: 0 });
    this.playButton.textContent = "⏸ Pause";
    this.timer = setInterval(() => {
      this.set({ place: this.state.place + 1 });
      if (this.state.place >= this.steps.length - 1) this.stop();
    }, PLAY_EVERY);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = "▶ Play";
  }

  async drawCurves() {
    const units = this.units.map((index) => this.scene.units[index]).filter((unit) => Object.keys(unit.curves).length);
    this.curveView = null;
    if (!units.length) {
      this.curves.replaceChildren();
      return;
    }
    const rows = [];
    const series = new Map();
    for (const unit of units) {
      for (const [name, points] of Object.entries(unit.curves)) {
        const label = curveLabel(name, this.data) + (units.length > 1 ? `, ${unit.label}` : "");
        series.set(label, this.curveColour(name));
        points.forEach(([step, value]) => rows.push({ series: label, step, value }));
      }
    }
    const target = el("div", { className: "chart" });
    const agreement = units.some((unit) => Object.keys(unit.curves).length > 1);
    const note = el("p", { className: "faint" }, term("Agreement", "How often the input word with the highest attention is among the top 5 % of the other score, over the first stored examples: the probe at the same step, the uniform model's probe after its training."), " with attention, in percent; the dashed line is the step shown above.");
    this.curves.replaceChildren(el("h3", {}, agreement ? "Accuracy and agreement over training" : "Accuracy over training"), target, ...(agreement ? [note] : []));
    const names = [...series].map(([name, colour]) => ({ name, colour: ink(colour) }));
    const now = this.steps[this.state.place] ?? 0;
    const view = await chart(target, curveSpec(rows, names, now), facts);
    this.curveView = view;
    view?.signal("now", this.steps[this.state.place] ?? 0).runAsync();
  }

  curveColour(name) {
    const other = /^A\(attention,(\w+)\)$/.exec(name)?.[1];
    return this.data.scores[other]?.colour ?? (other ? "#5F5F63" : "#000000");
  }

  // New data of the same folders: stay where the reader is, follow the last step if they were there.
  update(data) {
    const old = this.data.scenes[this.state.scene];
    const last = !this.steps || this.state.place >= this.steps.length - 1;
    this.data = data;
    this.frames.clear();
    const index = Math.max(0, data.scenes.findIndex((scene) => scene.key === old?.key));
    if (!this.sceneSelect) return new AttentionView(this.root, data);
    unpacked(data.scenes[index].data).then((bytes) => {
      data.scenes[index].bytes = bytes;
      this.state.scene = index;
      this.fillSelects();
      const unit = this.state.unit === ALL ? ALL : Math.min(this.state.unit, this.scene.units.length - 1);
      const example = Math.min(this.state.example, this.scene.examples.length - 1);
      this.set({ unit, example, place: last ? Infinity : this.state.place });
    });
    return this;
  }

  redraw() {
    if (!this.sceneSelect) return;
    this.drawMaps();
    this.drawCurves();
  }
}

// Values are kept in 255 levels: what is in the lowest one is near nothing.
function valueText(value) {
  return value === 0 ? "≈ 0" : number(value);
}

function rank(score) {
  const place = ORDER.indexOf(score);
  return place < 0 ? ORDER.length : place;
}

// The letter of a score where it has one, its name otherwise.
function symbolOf(score) {
  const [first] = score.label.split(" ");
  return /^[α-ωΔ]/u.test(first) ? first : score.label;
}

function clamped(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}

function curveLabel(name, data) {
  const other = /^A\(attention,(\w+)\)$/.exec(name)?.[1];
  return other ? `agreement of α and ${data.scores[other] ? symbolOf(data.scores[other]) : other}` : name;
}

