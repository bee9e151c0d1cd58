#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Weights from a trainer to those who use them, generation by generation.

A trainer offers its weights anew after each step; any number of readers have the newest ones as often
as they want. All weights that a reader has at a time are of one step.

    weights.py train ADDRESS STEPS    a trainer, which then serves its last step
    weights.py follow PEER            a reader

Each element of each weight is the number of its step, so that a reader sees whether any is of another.
"""

import signal
import sys
import time

import numpy as np
import rdmatensor as rt

# The small ones first: the first one is got before the others, and says of which step they are
NAMES = [f"layer{i}/{part}" for part in ("b", "w") for i in range(8)]
LAST = "last step"


def empty_weights(node):
    """In memory that peers read in place: a training would compute them there"""
    return {name: node.empty((64, 64) if name.endswith("w") else (64,)) for name in NAMES}


def train(address, steps):
    """Each step's weights take the place of the former ones, which readers may still be getting"""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with rt.Node(listen=address, timeout=60) as node:
        print(f"training {steps} steps", flush=True)
        begun = time.monotonic()
        sets = [empty_weights(node), empty_weights(node)]
        for step in range(1, steps + 1):
            for array in sets[step % 2].values():
                array[:] = step
            node.offer_generation("weights", sets[step % 2], step)
            # Nobody reads the other set any more: it is for the next step
            node.wait_generation("weights")
        spent = time.monotonic() - begun
        node[LAST] = np.int64(steps)
        print(f"{steps} steps, {steps / spent:.0f} a second", flush=True)
        signal.sigwait(signals)


def follow(host):
    """The newest weights, again and again, until the trainer has said which step is the last"""
    with rt.Node(timeout=60) as node:
        peer = node.connect(host)
        step, had, last = 0, 0, None
        while last is None or step < last:
            step, got = peer.generation(NAMES, step + 1 if last else None)
            had += 1
            for name, array in got.items():
                if (array != step).any():
                    sys.exit(f"weights.py: step {step}: {name} has elements of another step: "
                             f"{np.unique(array)}")
            if last is None:
                try:
                    last = int(peer.get(LAST, wait=False))
                except FileNotFoundError:
                    pass
    print(f"{had} gets of {len(NAMES)} weights, to step {step}: none mixed", flush=True)


def main():
    """Of what is wrong a line says more than where"""
    args = sys.argv[1:]
    try:
        if len(args) == 3 and args[0] == "train":
            train(args[1], int(args[2]))
        elif len(args) == 2 and args[0] == "follow":
            follow(args[1])
        else:
            sys.exit(__doc__.split("\n\n")[2])
    except (OSError, ValueError) as error:
        sys.exit(f"weights.py: {error}")


if __name__ == "__main__":
    main()
