// Attention through training: every stored score of an example on the same axes, step by step.

import { unpacked } from "./bytes.js";
import { ink } from "./colour.js";
import { Curves } from "./curves.js";
import { el, hideTip, labelled, option, showTip, swatch, term } from "./dom.js";
import { Frames, isTerm } from "./frames.js";
import { Pictures, symbolOf } from "./pictures.js";
import { number, short, word } from "./text.js";
import { mergedWords } from "./words.js";

const PLAY_EVERY = 600;
const ALL = "all";
const MOST_WORDS = 60;
const BOUNDARIES = ["<bos>", "<eos>"];
const ORDER = ["attention", "lexical_probe", "uniform_probe", "proxy", "saliency", "optimal_attention", "ibm_model1"];
const TERMS = "Queries and keys are sums of what a state says about time, about its word, and the rest: nine products make up the logit before the softmax.";

export class AttentionView {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.state = { scene: 0, unit: 0, example: 0, place: Infinity, scale: "all", words: true, terms: false };
    this.marked = null;
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
    this.scaleSelect = el("select", { id: "scale", onchange: () => this.set({ scale: this.scaleSelect.value }) }, option("all", "the same at every step"), option("step", "of each step by itself"), option("row", "of each output word by itself"));
    this.scaleLabel = labelled("darkest colour", this.scaleSelect);
    this.slider = el("input", { id: "step", type: "range", min: 0, step: 1, oninput: () => this.set({ place: Number(this.slider.value) }) });
    this.slider.setAttribute("aria-label", "Training step");
    this.stepText = el("output", { htmlFor: "step", className: "step" });
    this.playButton = el("button", { type: "button", id: "play", onclick: () => this.play() }, "▶ Play");
    this.sliderRow = el("div", { className: "slider" }, this.playButton, this.slider, this.stepText);
    this.wordsBox = el("input", { type: "checkbox", id: "words", checked: true, onchange: () => this.set({ words: this.wordsBox.checked }) });
    this.wordsLabel = el("label", { className: "check" }, this.wordsBox, " whole words");
    this.termsBox = el("input", { type: "checkbox", id: "terms", onchange: () => this.set({ terms: this.termsBox.checked }) });
    this.termsLabel = el("label", { className: "check" }, this.termsBox, " ", term("terms of the logit", TERMS));
    this.note = el("p", { className: "faint" });
    this.text = el("div", { className: "sentences" });
    this.readout = el("div", { className: "readout", role: "status" });
    this.maps = el("div", { className: "maps", tabIndex: 0, role: "group", onkeydown: (event) => this.key(event) });
    this.maps.setAttribute("aria-label", "Heat maps. Arrow keys move the marked cell; comma and full stop change the step.");
    this.pictures = new Pictures(this.maps, (cell, event) => this.point(cell, event));
    const below = el("div", { className: "curves" });
    this.curves = new Curves(below);
    this.root.replaceChildren(
      el("p", { className: "asked" }, "What the model looks at, what it knows about single words, and what is known without it: the same example under every score, at every step of training that was stored."),
      el("div", { className: "controls" }, labelled("data", this.sceneSelect), labelled("model", this.unitSelect), labelled("example", this.exampleSelect), this.scaleLabel, this.wordsLabel, this.termsLabel),
      this.note,
      this.sliderRow,
      this.text,
      this.readout,
      this.maps,
      below,
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

  // Whether the pieces of words are put together.
  get whole() {
    return Boolean(this.state.words && this.example.inputGroups);
  }

  get step() {
    return this.steps[this.state.place] ?? null;
  }

  async open(index) {
    this.stop();
    hideTip();
    await this.load(index);
    const { scene } = this;
    const fixed = scene.maps.every((map) => map.steps[0] === null);
    this.set({ unit: fixed && scene.units.length > 1 ? ALL : 0, example: 0, place: Infinity });
  }

  async load(index) {
    const scene = this.data.scenes[index];
    scene.bytes ??= await unpacked(scene.data);
    this.frames = new Frames(scene);
    this.state.scene = index;
    this.state.example = Math.min(this.state.example, scene.examples.length - 1);
    this.fillSelects();
  }

  fillSelects() {
    const { scene } = this;
    this.sceneSelect.replaceChildren(...this.data.scenes.map((each, index) => option(index, short(each.title, 60))));
    this.sceneSelect.value = String(this.state.scene);
    this.unitSelect.replaceChildren(
      ...scene.units.map((unit, index) => option(index, short(unit.label, 50) + (unit.running ? " (training)" : unit.stopped ? " (stopped)" : ""))),
      ...(scene.units.length > 1 ? [option(ALL, "all side by side")] : []),
    );
    this.exampleSelect.replaceChildren(...scene.examples.map((example, index) => option(index, short(`${example.key}: ${inputsOf(example)}`, 60))));
  }

  set(change) {
    Object.assign(this.state, change);
    const { state } = this;
    if (this.unitSelect.value !== String(state.unit)) this.unitSelect.value = String(state.unit);
    if (this.exampleSelect.value !== String(state.example)) this.exampleSelect.value = String(state.example);
    this.steps = [...new Set(this.shownMaps().flatMap((map) => map.steps).filter((step) => step !== null))].sort((a, b) => a - b);
    state.place = Math.max(0, Math.min(state.place, this.steps.length - 1));
    if ("example" in change || "scene" in change || "words" in change || "unit" in change) this.marked = null;
    this.tellStep();
    this.tellExample();
    this.drawMaps();
    this.curves.mark(this.step ?? 0);
    if ("unit" in change || "example" in change) this.drawCurves();
  }

  tellStep() {
    const { scene, steps } = this;
    const told = `step ${number(this.step)}`;
    this.sliderRow.hidden = steps.length < 2;
    this.slider.max = String(Math.max(0, steps.length - 1));
    this.slider.value = String(this.state.place);
    this.slider.setAttribute("aria-valuetext", told);
    this.stepText.textContent = `${told} of ${number(steps.at(-1) ?? null)}`;
    // With one step and one row there is nothing to choose.
    this.scaleLabel.hidden = steps.length < 2 && scene.classification;
    this.wordsLabel.hidden = !this.example.inputGroups;
    this.termsLabel.hidden = !scene.maps.some(isTerm);
  }

  tellExample() {
    const { inputs, outputs } = this.words();
    const circles = this.example.gold && !this.whole ? "Circles mark the input word that an output word really comes from." : "";
    this.note.textContent = [this.scene.note, this.example.why, this.example.cut, circles].filter(Boolean).join(" ");
    const line = (name, list) => el("p", {}, el("span", { className: "faint" }, `${name} `), list.slice(0, MOST_WORDS).map((text) => [word(text, 40), " "]), list.length > MOST_WORDS ? `… (${list.length} words)` : null);
    const { answer } = this.example;
    const said = answer ? el("p", {}, el("span", { className: "faint" }, "model "), word(answer, 400)) : null;
    this.text.replaceChildren(...[line("input", inputs), line(this.scene.classification ? "label" : "output", outputs), said].filter(Boolean));
  }

  shownMaps() {
    const shown = this.scene.maps.filter((map) => (map.unit < 0 || this.units.includes(map.unit)) && (this.state.terms || !isTerm(map)) && this.frames.has(map, this.state.example));
    return shown.sort((a, b) => rank(a.score) - rank(b.score));
  }

  words() {
    const { example } = this;
    if (!this.whole) return { inputs: example.inputs, outputs: example.outputs, gold: example.gold };
    return { inputs: mergedWords(example.inputs, example.inputGroups), outputs: mergedWords(example.outputs, example.outputGroups), gold: null };
  }

  label(map) {
    const score = this.data.scores[map.score];
    const several = this.state.unit === ALL && map.unit >= 0;
    return several ? `${symbolOf(score)} ${this.scene.units[map.unit].label}` : score.label;
  }

  drawMaps() {
    if (this.root.hidden || !this.steps || this.frames?.scene !== this.scene) return;
    const { example, scale, unit } = this.state;
    const { classification } = this.scene;
    const now = this.step ?? Infinity;
    this.drawn = this.shownMaps().map((map) => {
      const frame = this.frames.latest(map, example, this.whole, now);
      return { ...frame, ends: this.frames.ends(frame, example, this.whole, scale), score: this.data.scores[map.score], label: this.label(map) };
    });
    if (classification) this.pictures.drawStrips(this.drawn, this.words(), this.marked, unit === ALL);
    else this.pictures.drawGrid(this.drawn, this.words(), this.marked, scale === "row");
    this.tellCell();
  }

  drawCurves() {
    return this.curves.draw(this.units.map((index) => this.scene.units[index]), this.data.scores);
  }

  point(cell, event) {
    if (!cell) {
      // The mark stays where the pointer left, so that its numbers can be read.
      hideTip();
      return;
    }
    if (cell.t !== this.marked?.t || cell.l !== this.marked?.l) {
      this.marked = cell;
      this.drawMaps();
    }
    showTip(event.clientX, event.clientY, ...this.cellFacts(cell));
  }

  cellFacts(cell) {
    const { inputs, outputs } = this.words();
    return [
      el("div", { className: "pair" }, word(outputs[cell.t], 40), " ← ", word(inputs[cell.l], 40)),
      ...this.drawn.map(({ matrix, score, label }) => el("div", {}, swatch(ink(score.colour)), `${label} `, el("b", {}, valueText(matrix.values[cell.t * matrix.columns + cell.l])))),
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

  // New data of the same folders: stay where the reader is, follow the last step if they were there.
  update(data) {
    if (!this.sceneSelect || !data.scenes.length) {
      this.watcher.disconnect();
      return new AttentionView(this.root, data);
    }
    const old = this.scene.key;
    const last = !this.steps || this.state.place >= this.steps.length - 1;
    this.data = data;
    this.load(Math.max(0, data.scenes.findIndex((scene) => scene.key === old))).then(() => {
      const unit = this.state.unit === ALL ? ALL : Math.min(this.state.unit, this.scene.units.length - 1);
      this.set({ unit, example: this.state.example, place: last ? Infinity : this.state.place });
    });
    return this;
  }

  redraw() {
    if (!this.sceneSelect) return;
    this.drawMaps();
    this.drawCurves();
  }
}

function inputsOf({ inputs, inputGroups }) {
  const words = inputGroups ? mergedWords(inputs, inputGroups) : inputs.filter((text) => !BOUNDARIES.includes(text));
  return words.map((text) => short(text, 24)).join(" ");
}

// Values are kept in 255 levels: what is in the lowest one is near nothing.
function valueText(value) {
  return value === 0 ? "≈ 0" : number(value);
}

function rank(score) {
  const place = ORDER.indexOf(score);
  return place < 0 ? ORDER.length : place;
}

function clamped(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}
