#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Parameter servers and workers that train a network on scikit-learn's images of digits.

Servers hold the parameters, each its part of them. Of each batch every worker takes a share: it gets
the parameters, and offers its gradients, which the servers add up. Who a process is, and where the
others listen, is in TF_CONFIG, as TensorFlow has it:

    {"cluster": {"ps": ["host:port"], "worker": ["host:port", "host:port"]},
     "task": {"type": "worker", "index": 0}}

    parameters.py run DIGITS [STEPS]            the server or worker that TF_CONFIG says
    parameters.py alone DIGITS WORKERS [STEPS]  the same arithmetic in one process
    parameters.py plot CURVE... PICTURE         losses over steps

DIGITS is digits.csv.gz of scikit-learn. Worker 0, and `alone`, print the loss of each step, and of
the images that were not trained with how many they tell. Gradients are added in the order of the
workers: both print the same digits. Servers serve the trained parameters until SIGTERM.
"""

import os
import signal
import sys

import numpy as np
import rdmatensor as rt

# Name, shape; what has a lower place in this list is not on a server of its own if there are few
PARAMETERS = [("w1", (64, 32)), ("w2", (32, 10)), ("b1", (32,)), ("b2", (10,))]
BATCH, RATE, TRAINED, STEPS = 192, np.float32(0.5), 1500, 100


class Digits:
    """1797 images of 8 x 8 pixels, and which digit each is"""

    def __init__(self, path):
        try:
            table = np.loadtxt(path, delimiter=",", dtype="f4", ndmin=2)
        except ValueError:
            table = np.empty((0, 0))
        if table.shape[1] != 65 or len(table) <= TRAINED:
            raise ValueError(f"{path}: these are not scikit-learn's digits: rows of 64 pixels and a digit")
        self.pixels = table[:, :64] / np.float32(16)
        self.digits = table[:, 64].astype("i8")

    def share(self, step, worker, workers):
        """What a worker has of a step's batch"""
        batch = np.random.default_rng(step).integers(0, TRAINED, BATCH)
        own = np.array_split(batch, workers)[worker]
        return self.pixels[own], self.digits[own]


def forward(parameters, pixels):
    """What the hidden neurons are, and how likely each digit is"""
    hidden = np.tanh(pixels @ parameters["w1"] + parameters["b1"])
    scores = hidden @ parameters["w2"] + parameters["b2"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def backward(parameters, pixels, digits):
    """Gradients of a share, and its part of the loss, which goes the same way"""
    hidden, likely = forward(parameters, pixels)
    rows = np.arange(len(digits))
    loss = -np.log(likely[rows, digits]).sum(keepdims=True) / np.float32(BATCH)
    likely[rows, digits] -= 1
    likely /= np.float32(BATCH)
    deeper = likely @ parameters["w2"].T * (1 - hidden * hidden)
    return {"w1": pixels.T @ deeper, "b1": deeper.sum(axis=0), "w2": hidden.T @ likely,
            "b2": likely.sum(axis=0), "loss": loss}


def summed(gradients):
    """In the order of the workers, for another one rounds otherwise"""
    total = gradients[0].copy()
    for gradient in gradients[1:]:
        total += gradient
    return total


def first_parameters():
    rng = np.random.default_rng(0)
    return {name: rng.normal(0, 0.1, shape).astype("f4") for name, shape in PARAMETERS}


def say_loss(step, loss):
    print(f"{step} {float(loss[0])!r}", flush=True)


def say_result(parameters, digits):
    told = forward(parameters, digits.pixels[TRAINED:])[1].argmax(axis=1)
    print(f"# {(told == digits.digits[TRAINED:]).sum()} of {len(told)} told", flush=True)


def alone(digits, workers, steps):
    """What the others are compared with"""
    parameters = first_parameters()
    for step in range(1, steps + 1):
        shares = [backward(parameters, *digits.share(step, i, workers)) for i in range(workers)]
        for name in parameters:
            parameters[name] = parameters[name] - RATE * summed([share[name] for share in shares])
        say_loss(step, summed([share["loss"] for share in shares]))
    say_result(parameters, digits)


def serve(node, names, workers, steps):
    """Parameters of step n come of the gradients of step n; those of step 0 are there before"""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    shapes = dict(PARAMETERS, loss=(1,))
    sets = [{name: node.empty(shapes[name]) for name in names} for _ in range(2)]
    first = first_parameters()
    for name in names:
        sets[0][name][:] = first.get(name, 0)
    node.offer_generation("parameters", sets[0], 0)
    for step in range(1, steps + 1):
        had, new = sets[(step - 1) % 2], sets[step % 2]
        shares = [worker.generation([f"gradient/{name}" for name in names], step)[1]
                  for worker in workers]
        for name in names:
            total = summed([share[f"gradient/{name}"] for share in shares])
            new[name][:] = total if name == "loss" else had[name] - RATE * total
        node.offer_generation("parameters", new, step)
        # A worker that has these does not read those before, which are for the next step
        node.wait_generation("parameters")
    signal.sigwait(signals)


def work(node, index, workers, servers, digits, steps):
    """Servers: peers, and the names that each has"""
    gradients = [{f"gradient/{name}": node.empty(shape) for name, shape in
                  PARAMETERS + [("loss", (1,))]} for _ in range(2)]
    for step in range(steps + 1):
        parameters = {}
        for peer, names in servers:
            parameters.update(peer.generation(names, step)[1])
        if step and index == 0:
            say_loss(step, parameters["loss"])
        if step == steps:
            break
        own = gradients[step % 2]
        for name, value in backward(parameters, *digits.share(step + 1, index, workers)).items():
            own[f"gradient/{name}"][:] = value
        # All servers have those of the step before: the parameters say so
        node.offer_generation("gradients", own, step + 1)
    if index == 0:
        say_result(parameters, digits)


def run(digits, steps):
    """A process of the cluster"""
    with rt.Cluster("tf_config", timeout=60) as cluster:
        tasks = [cluster.name(rank).split("/") for rank in range(len(cluster))]
        peers = {kind: [cluster[f"{kind}/{i}"] for job, i in tasks if job == kind]
                 for kind in ("ps", "worker")}
        kind, index = tasks[cluster.rank]
        if kind not in peers or not all(peers.values()):
            raise ValueError("TF_CONFIG has no job \"ps\", no job \"worker\", or a task that is neither")
        # The losses are summed by the first one
        names = [[name for name, _ in PARAMETERS[i::len(peers["ps"])]] + ["loss"] * (i == 0)
                 for i in range(len(peers["ps"]))]
        if kind == "ps":
            serve(cluster.node, names[int(index)], peers["worker"], steps)
        else:
            servers = [(peer, own) for peer, own in zip(peers["ps"], names) if own]
            work(cluster.node, int(index), len(peers["worker"]), servers, digits, steps)


def plot(curves, picture):
    """As wide lines beneath thin ones, for they lie on one another"""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    for i, path in enumerate(curves):
        steps, losses = np.loadtxt(path, ndmin=2).T
        pyplot.plot(steps, losses, label=os.path.basename(path), linewidth=3 * (len(curves) - i) - 2)
    pyplot.xlabel("step")
    pyplot.ylabel("loss (cross entropy, nats)")
    pyplot.legend()
    pyplot.savefig(picture)


def main():
    """Of what is wrong a line says more than where"""
    args = sys.argv[1:]
    try:
        if len(args) in (2, 3) and args[0] == "run":
            run(Digits(args[1]), int(args[2]) if args[2:] else STEPS)
        elif len(args) in (3, 4) and args[0] == "alone":
            alone(Digits(args[1]), int(args[2]), int(args[3]) if args[3:] else STEPS)
        elif len(args) >= 3 and args[0] == "plot":
            plot(args[1:-1], args[-1])
        else:
            sys.exit(__doc__.split("\n\n")[3])
    except (OSError, ValueError, IndexError, ImportError) as error:
        sys.exit(f"parameters.py: {error}")


if __name__ == "__main__":
    main()
