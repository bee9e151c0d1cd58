#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What python.sh measures: ``load HOST STEPS``, milliseconds of a step; ``gather HOST N``, rows a second."""

import sys
import time

import numpy as np
import rdmatensor as rt


def load(host, steps):
    """All tensors at once; the step before goes when the next one has come, as in a loop of training"""
    names = list(rt.load(host))
    peer = rt.connect(host)
    took = []
    for step in range(steps):
        begun = time.monotonic()
        arrays = peer.get_many(names, step=step)
        took.append(time.monotonic() - begun)
        assert len(arrays) == len(names)
    return np.median(took[1:]) * 1000


def gather(host, rounds):
    """Of random rows; the first one is not measured"""
    table = rt.DistTensor("rdmatensor.gather", [host])
    rng = np.random.default_rng(1)
    spent = 0.0
    for i in range(rounds + 1):
        ids = rng.integers(0, len(table), 100000)
        begun = time.monotonic()
        rows = table[ids]
        spent += time.monotonic() - begun if i else 0
        assert rows.shape == (100000, table.shape[1])
    return rounds * 100000 / spent


if __name__ == "__main__":
    print({"load": load, "gather": gather}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
