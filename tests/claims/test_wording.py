"""Evidence in words: an interval is formatted as one, and a list stays a list."""

import math

from attnscope.analysis.intervals import Interval
from attnscope.claims.wording import formatted, sentence
from cases import for_each


@for_each(
    ("interval", "words"),
    [
        (Interval(0.4127, 0.3618, 0.4591, 300), "0.413 (0.362 to 0.459)"),
        (Interval(1.0, 1.0, 1.0, 20), "1 (1 to 1)"),
        (Interval(-13.37, -14.95, -11.76, 9), "-13.4 (-14.9 to -11.8)"),
        (Interval(0.5, math.nan, math.nan, 1), "0.5"),
        (Interval(math.nan, math.nan, math.nan, 0), "–"),
    ],
)
def test_an_interval_is_formatted_with_its_ends_where_it_has_them(interval, words):
    assert formatted(interval) == words


def test_three_numbers_that_are_no_interval_stay_a_list():
    assert sentence({"optimal attention": [0.0, 0.5, 0.5]}) == "optimal attention: [0, 0.5, 0.5]"


def test_what_belongs_to_one_name_stands_in_brackets_and_its_intervals_are_formatted():
    deep = {"aed": {"rates": [Interval(0.5, 0.25, 0.75, 4)], "seeds": 4}}
    assert sentence(deep) == "aed (rates: [0.5 (0.25 to 0.75)], seeds: 4)"
