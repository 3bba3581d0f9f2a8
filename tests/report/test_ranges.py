"""Evidence as one line: short evidence as it is, long evidence as ranges over data sets."""

from attnscope.analysis.intervals import Interval
from attnscope.report.ranges import leaves, ranges
from attnscope.runs.result import Measurement


def test_short_evidence_is_shown_as_it_is() -> None:
    assert ranges({"learned": "3/20", "p": 0.25}) == "learned: 3/20; p: 0.25"


def test_long_evidence_is_a_range_by_name_with_the_papers_numbers() -> None:
    rows = {
        f"corpus-{n}": {
            "A(alpha,beta_uf)": Measurement(
                name="A", dataset="d", value=20.0 + n, n=5, published=10.0 + n
            ),
            "chance": Interval(5.0, 4.0, 6.0, 9),
            "note": "never exceeded",
        }
        for n in range(12)
    }
    assert ranges(rows) == (
        "A(α, βᵘᶠ): 20 to 31 (12 values; paper 10 to 21); chance: 5 (12 values); "
        "note: never exceeded"
    )


def test_more_names_than_a_line_holds_are_counted() -> None:
    evidence = {f"a rather long name of evidence, the {n}th": f"{n} of 20 seeds" for n in range(11)}
    assert ranges(evidence).endswith("the 7th: 7 of 20 seeds; and 3 more")


def test_every_piece_of_evidence_is_a_leaf_with_its_names() -> None:
    evidence = {"aed": {"share": 0.5, "failures": [1, 2]}, "p": 0.1}
    assert list(leaves(evidence)) == [
        (("aed", "share"), 0.5),
        (("aed", "failures"), 1),
        (("aed", "failures"), 2),
        (("p",), 0.1),
    ]
