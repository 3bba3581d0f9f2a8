"""The networks, and the contract that a model keeps: trace, intervene, readout."""
