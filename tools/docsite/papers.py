"""The page that lists the papers: question, answer, and how many claims hold.

The papers' own pages are those of ``docs/papers``, which `make reproduction` writes.
"""

from __future__ import annotations

import json
from collections import Counter

from attnscope.claims.papers import PAPERS
from docsite.gallery import RESULTS
from docsite.markdown import Pages, table

QUESTIONS = {
    "snell": (
        "Charlie Snell, Ruiqi Zhong, Dan Klein, Jacob Steinhardt (2021)",
        "Why does attention end up on the right word, when nothing tells it to?",
        "The model first learns which words go together, under attention that is still uniform; "
        "then "
        "attention moves to where that knowledge is. Where words cannot be learned first, "
        "attention "
        "is not learned.",
    ),
    "sunlu": (
        "Xiaobing Sun, Wei Lu (2020)",
        "What do attention scores of words mean in a classifier?",
        "They grow with the polarity of a word, driven by two terms of the gradient whose "
        "balance a "
        "scaling factor λ decides; with a bad λ a model is accurate while its attention is "
        "meaningless.",
    ),
    "tutek": (
        "Martin Tutek, Jan Šnajder (2020)",
        "Can training make attention a faithful explanation?",
        "Yes, by tying recurrent states to their words: predictions then depend on attention, and "
        "adversarial attention costs more.",
    ),
    "aitken": (
        "Kyle Aitken, Vinay V. Ramasesh, Yuan Cao, Niru Maheswaranathan (2021)",
        "Does attention come from positions or from words?",
        "States split into a temporal, an input and a remaining component; where the order of "
        "output "
        "and input is fixed, temporal components alone give the attention.",
    ),
}
VERDICTS = ("holds", "fails", "undecided")


def pages() -> Pages:
    """Return the page."""
    claims = json.loads((RESULTS / "claims.json").read_text(encoding="utf-8"))
    rows, sections = [], []
    for paper, title in PAPERS.items():
        own = [claim["verdict"] for claim in claims if claim["id"].startswith(f"{paper}.")]
        counts = Counter(own)
        rows.append([f"[{title}](../papers/{paper}.md)", *(str(counts[word]) for word in VERDICTS)])
        authors, question, answer = QUESTIONS[paper]
        sections.append(
            f"## {paper}: {title}\n\n{authors}. **Question.** {question} "
            f"**Answer of the paper.** {answer} [What was measured](../papers/{paper}.md), "
            f"[its recipes](recipes/{paper}.md), "
            f'<a href="../reports/{paper}.html">the report</a>.\n'
        )
    listed = "\n".join(f"../papers/{paper}" for paper in PAPERS)
    return {
        "papers.md": "# Papers\n\nFour papers, one set of ideas: each paper's measurement works on "
        "every other paper's models, and on yours. A claim holds, fails or is undecided by "
        "[rules](../ideas/verdicts.md) on intervals. Where a rule that was fixed before any run is "
        "stricter than the paper's words, the words give the verdict and both readings are "
        "shown.\n\n"
        f"{table(['paper', *VERDICTS], rows)}\n"
        "[What was reproduced](../reproduction.md) has every claim and how many printed numbers "
        "are met; [Findings](../findings.md) says what we make of it.\n\n"
        + "\n".join(sections)
        + f"\n```{{toctree}}\n:hidden:\n\n../reproduction\n{listed}\n../findings\n```\n"
    }
