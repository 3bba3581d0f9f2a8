"""Every damaged file is one sentence, or is accepted rightly: no traceback, no hang, no wrong read.

The cases are data (``damage.py``); ``make attack`` tries more draws of each.
"""

from __future__ import annotations


def test_damaged_inputs_are_one_sentence_or_accepted_rightly(attacked):
    table = attacked("--draws", "1")
    assert table.failures == []
    assert sum(counts.total() for counts in table.counts.values()) >= 600
    assert all(counts["sentence"] > 10 for counts in table.counts.values())
