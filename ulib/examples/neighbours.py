#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Neighbour sampling as neighbours.c has it, in Python.

Graph neural networks train with it: of each node of a batch some neighbours, of those some, and
the features of all of them, which are partitioned over several workers.

    neighbours.py serve ADDRESS START END    features of nodes START..END - 1
    neighbours.py sample GRAPH PEER...       batches of GRAPH (see debian-graph)

Every row that comes is compared with what the features of its node must be.
"""

import signal
import sys
import time

import numpy as np
import rdmatensor as rt

FEATURES, BATCH, BATCHES, HOPS, FANOUT = 128, 128, 10, 2, 10


def features(nodes):
    """What a node has is told by its number alone, so that whoever has it can see whether it is right"""
    nodes = np.asarray(nodes, "u8")[:, None] * np.uint64(2654435761)
    columns = np.arange(FEATURES, dtype="u8") * np.uint64(40503)
    return ((nodes + columns) % np.uint64(65536)).astype("f4") / np.float32(65536)


def serve(address, start, end):
    """Until SIGTERM or SIGINT"""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with rt.Node(listen=address) as node:
        rows = node.empty_rows((end - start, FEATURES))
        rows[:] = features(np.arange(start, end))
        node.offer_rows("features", rows, first=start)
        print(f"serving the features of nodes {start}..{end - 1}", flush=True)
        signal.sigwait(signals)


class Graph:
    """Neighbours of node n are to[first[n]:first[n + 1]]"""

    def __init__(self, path):
        edges = np.loadtxt(path, dtype="i8", ndmin=2)
        self.nodes = int(edges.max()) + 1
        self.edges = len(edges)
        self.to = edges[np.argsort(edges[:, 0], kind="stable"), 1]
        self.first = np.zeros(self.nodes + 1, "i8")
        np.cumsum(np.bincount(edges[:, 0], minlength=self.nodes), out=self.first[1:])

    def sample(self, rng):
        """A batch and its neighbours, hop by hop"""
        hops = [rng.integers(0, self.nodes, BATCH)]
        for _ in range(HOPS):
            degrees = self.first[hops[-1] + 1] - self.first[hops[-1]]
            some = np.repeat(hops[-1][degrees > 0], FANOUT)
            picks = rng.integers(0, np.repeat(degrees[degrees > 0], FANOUT))
            hops.append(self.to[self.first[some] + picks])
        return np.concatenate(hops)


def train(graph, peers):
    """The training would be where the rows are compared"""
    rng, rows, spent = np.random.default_rng(1), 0, 0.0
    with rt.DistTensor("features", peers) as table:
        if len(table) < graph.nodes:
            sys.exit(f"neighbours.py: there are features of {len(table)} nodes, and the graph has "
                     f"{graph.nodes}")
        for _ in range(BATCHES):
            nodes = graph.sample(rng)
            begun = time.monotonic()
            batch = table[nodes]
            spent += time.monotonic() - begun
            rows += len(nodes)
            wrong = np.flatnonzero((batch != features(nodes)).any(axis=1))
            if len(wrong):
                sys.exit(f"neighbours.py: the features of node {nodes[wrong[0]]} are wrong")
    print(f"graph of {graph.nodes} nodes and {graph.edges} edges: {BATCHES} batches, {rows} rows, "
          f"all right, {rows / spent:.0f} rows/s")


def main():
    """Of what is wrong a line says more than where"""
    args = sys.argv[1:]
    try:
        if len(args) == 4 and args[0] == "serve":
            serve(args[1], int(args[2]), int(args[3]))
        elif len(args) >= 3 and args[0] == "sample":
            train(Graph(args[1]), args[2:])
        else:
            sys.exit(__doc__.split("\n\n")[2])
    except (OSError, ValueError) as error:
        sys.exit(f"neighbours.py: {error}")


if __name__ == "__main__":
    main()
