"""A progress display that counts what it is told."""

from __future__ import annotations

from attnscope.training.progress import Silent


class Counted(Silent):
    """Counts steps, evaluations and units, and keeps what it was told."""

    def __init__(self):
        self.told, self.steps, self.evaluations, self.done, self.notes = [], 0, 0, [], []

    def begin(self, title, units, steps, evaluations):
        self.told.append((title, units, steps, evaluations))

    def advance(self, steps):
        self.steps += steps

    def evaluated(self, evaluations):
        self.evaluations += evaluations

    def finished(self, unit):
        self.done.append(unit)

    def note(self, sentence):
        self.notes.append(sentence)

    def end(self):
        self.told.append("end")
