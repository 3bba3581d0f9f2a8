"""What holds in every test: shapes and types are enforced, and nothing is left to chance.

pytest imports this file before any test module, in the main process and in each xdist worker, so
that the import hook is in force before the package is imported.
"""

import sys

import torch
from hypothesis import settings

import enforced

if "attnscope" in sys.modules:
    raise RuntimeError("attnscope was imported before its types could be enforced")

enforced.install("attnscope")

# One thread per process, as in training; it also keeps xdist's workers out of each other's way.
torch.set_num_threads(1)

# The same examples in every run. To look for new ones: pytest --hypothesis-profile=explore.
settings.register_profile("attnscope", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("attnscope")
