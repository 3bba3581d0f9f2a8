"""Train many units fast: worker processes, vmapped groups, CUDA graphs; one backend per device."""
