"""Measures of a `Network`, on any architecture: each idea of aitken once, for every head.

`components` measures states, paths and words, `attention` what temporal components give of it,
`terms` the shares of the alignment's nine terms. All return numbers by name and axes, so that those
of several seeds can be put side by side; `pictures` shows one network::

    network = HeadedNetwork.of(unit, samples=500)
    for (name, axes), value in attention.agreement(network).items():
        print(name, dict(axes), value)
"""
