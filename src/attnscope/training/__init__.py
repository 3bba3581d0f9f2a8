"""Units, their training and their loss terms; loading of trained units."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.training.bleu import Bleu as Bleu
    from attnscope.training.engine.workers import train_units as train_units
    from attnscope.training.gradient_flow import GradientFlow as GradientFlow
    from attnscope.training.imitation import Imitation as Imitation
    from attnscope.training.loop import train_unit as train_unit
    from attnscope.training.masked_lm import MaskedWords as MaskedWords
    from attnscope.training.metric import Metric as Metric
    from attnscope.training.objective import Likelihood as Likelihood, Term as Term
    from attnscope.training.optimizer import (
        Adagrad as Adagrad,
        Adam as Adam,
        AitkenAdam as AitkenAdam,
        ClippedAdam as ClippedAdam,
        OptimizerSpec as OptimizerSpec,
        Sgd as Sgd,
    )
    from attnscope.training.penalties import (
        DirectionProduct as DirectionProduct,
        SquaredNorm as SquaredNorm,
    )
    from attnscope.training.progress import Progress as Progress
    from attnscope.training.trained_unit import TrainedUnit as TrainedUnit, load as load
    from attnscope.training.tying import Tying as Tying
    from attnscope.training.unit import (
        Training as Training,
        Unit as Unit,
        every as every,
        merged as merged,
    )
else:
    __all__, __getattr__, __dir__ = exports(__name__)
