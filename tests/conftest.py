"""What holds in every test: shapes and types are enforced, and nothing is left to chance.

pytest imports this file before any test module, in the main process and in each xdist worker, so
that the import hook is in force before the package is imported.
"""

import sys

import jaxtyping
import torch
from hypothesis import settings

if "attnscope" in sys.modules:
    raise RuntimeError("attnscope was imported before its types could be enforced")

# With PEP 484's numeric tower, as in mypy: an int is accepted where a float is asked for.
jaxtyping.install_import_hook(
    "attnscope", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)

# One thread per process, as in training; it also keeps xdist's workers out of each other's way.
torch.set_num_threads(1)

# The same examples in every run. To look for new ones: pytest --hypothesis-profile=explore.
settings.register_profile("attnscope", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("attnscope")
