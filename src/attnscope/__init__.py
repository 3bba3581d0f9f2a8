"""attnscope: how attention was learned, and whether it can be trusted as an explanation.

Names are imported on first use (`attnscope.lazy`), so that the command line starts fast.
"""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

__version__ = "0.1.0"

if TYPE_CHECKING:
    from attnscope import (
        analysis as analysis,
        audits as audits,
        claims as claims,
        data as data,
        errors as errors,
        figures as figures,
        models as models,
        own_text as own_text,
        recipes as recipes,
        report as report,
        running as running,
        runs as runs,
        scores as scores,
        theory as theory,
        training as training,
    )
    from attnscope.analysis.comparison import compare as compare
    from attnscope.audits.recorder import Recorder as Recorder
    from attnscope.audits.running import audit as audit
    from attnscope.audits.stored import export as export
    from attnscope.data.corpus_writer import write_corpus as write_corpus
    from attnscope.figures.heatmap import heatmap as heatmap
    from attnscope.models.adapter import adapt as adapt
    from attnscope.models.contract import check_model as check_model
    from attnscope.report.notebook import view as view
    from attnscope.report.page import write_report as write_report
    from attnscope.running.run import draw as draw, run as run
    from attnscope.running.verdicts import verdicts as verdicts
    from attnscope.running.work import work as work
    from attnscope.runs.status import status as status
    from attnscope.scores.score import read_score as read_score
    from attnscope.training.trained_unit import load as load
else:
    __all__, __getattr__, __dir__ = exports(__name__)
