from __future__ import annotations

import torch

# One thread: a test must not depend on how a reduction is split, and xdist already uses the cores.
torch.set_num_threads(1)
