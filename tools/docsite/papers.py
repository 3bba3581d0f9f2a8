"""The page that lists the papers: question, answer, and how many claims hold.

The papers' own pages are those of ``docs/papers``, which `make reproduction` writes.
"""

from __future__ import annotations

import json
from collections import Counter

from attnscope.claims.papers import ABSTRACTS, PAPERS
from docsite.gallery import RESULTS
from docsite.markdown import Pages, table

VERDICTS = ("holds", "fails", "undecided")


def pages() -> Pages:
    """Return the page."""
    claims = json.loads((RESULTS / "claims.json").read_text(encoding="utf-8"))
    rows, sections = [], []
    for paper, title in PAPERS.items():
        own = [claim["verdict"] for claim in claims if claim["id"].startswith(f"{paper}.")]
        counts = Counter(own)
        rows.append([f"[{title}](../papers/{paper}.md)", *(str(counts[word]) for word in VERDICTS)])
        about = ABSTRACTS[paper]
        sections.append(
            f"## {paper}: {title}\n\n{about.authors}. **Question.** {about.question} "
            f"**Answer of the paper.** {about.answer} [What was measured](../papers/{paper}.md), "
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
