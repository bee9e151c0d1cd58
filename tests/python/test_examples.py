# SPDX-License-Identifier: GPL-2.0
"""The examples, as people start them."""

import json
import os
import re
import subprocess
import sys


EXAMPLES = os.path.join(os.path.dirname(__file__), "../../ulib/examples")
GRAPH = os.path.join(os.environ["LAB_BUILD"], "demo/graph")
DIGITS = os.path.join(os.environ["LAB_BUILD"], "demo/digits.csv.gz")


def start(name, *args, **env):
    return subprocess.Popen([sys.executable, os.path.join(EXAMPLES, name), *args], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | env)


def test_neighbours(address):
    with open(GRAPH, encoding="ascii") as file:
        nodes = 1 + max(int(word) for line in file for word in line.split())
    parts = [(7021, 0, nodes // 3), (7022, nodes // 3, nodes)]
    servers = [start("neighbours.py", "serve", f"{address}:{port}", str(first), str(end))
               for port, first, end in parts]
    try:
        for server in servers:
            assert "serving" in server.stdout.readline(), server.stderr.read()
        sampler = start("neighbours.py", "sample", GRAPH,
                        *(f"{address}:{port}" for port, _, _ in parts))
        said, wrong = sampler.communicate(timeout=120)
        assert sampler.returncode == 0, wrong
        rows = re.fullmatch(r"graph of (\d+) nodes and \d+ edges: 10 batches, (\d+) rows, all "
                            r"right, \d+ rows/s\n", said)
        assert rows and int(rows[1]) == nodes and int(rows[2]) > 10 * 128
        # Of a table that is too small it says so
        short = start("neighbours.py", "sample", GRAPH, f"{address}:7021")
        said, wrong = short.communicate(timeout=120)
        assert short.returncode == 1 and "the graph has" in wrong
    finally:
        for server in servers:
            server.terminate()
            server.communicate(timeout=60)
    assert [server.returncode for server in servers] == [0, 0]


def test_weights(address):
    """As many steps as TEST_STEPS says, two readers"""
    steps = int(os.environ.get("TEST_STEPS", "60"))
    trainer = start("weights.py", "train", f"{address}:7023", str(steps))
    try:
        assert "training" in trainer.stdout.readline(), trainer.stderr.read()
        readers = [start("weights.py", "follow", f"{address}:7023") for _ in range(2)]
        for reader in readers:
            said, wrong = reader.communicate(timeout=120 + steps)
            assert reader.returncode == 0, wrong
            had = re.fullmatch(r"(\d+) gets of 16 weights, to step (\d+): none mixed\n", said)
            assert had and int(had[2]) == steps and int(had[1]) >= 1
            print("#", said, end="")
    finally:
        trainer.terminate()
        said, wrong = trainer.communicate(timeout=60)
    assert trainer.returncode == 0 and f"{steps} steps, " in said, wrong
    print("#", said, end="")


def train_digits(address, servers, workers, steps):
    """What each worker has said"""
    places = {"ps": [f"{address}:{7030 + i}" for i in range(servers)],
              "worker": [f"{address}:{7040 + i}" for i in range(workers)]}
    tasks = {(kind, i): start("parameters.py", "run", DIGITS, str(steps),
                              TF_CONFIG=json.dumps({"cluster": places,
                                                    "task": {"type": kind, "index": i}}))
             for kind in places for i in range(len(places[kind]))}
    try:
        said = {}
        for i in range(workers):
            said[i], wrong = tasks["worker", i].communicate(timeout=120)
            assert tasks["worker", i].returncode == 0, wrong
        return said
    finally:
        for (kind, i), task in tasks.items():
            task.terminate()
            wrong = task.communicate(timeout=60)[1]
            # Servers end well; workers have ended
            assert kind == "worker" or task.returncode == 0, wrong


def test_parameters(address):
    """Bit for bit what one process computes, and it has learnt"""
    alone = start("parameters.py", "alone", DIGITS, "4", "40")
    curve, wrong = alone.communicate(timeout=60)
    assert alone.returncode == 0, wrong
    said = train_digits(address, 2, 4, 40)
    assert said.pop(0) == curve
    assert not any(said.values())
    losses = [float(line.split()[1]) for line in curve.splitlines()[:40]]
    told = re.fullmatch(r"# (\d+) of 297 told", curve.splitlines()[40])
    assert losses[0] > 2.2 and losses[-1] < 1 and int(told[1]) > 200, curve


def test_what_is_wrong(address):
    for name, args, text in [
        ("neighbours.py", ["sample", "/none", address], "No such file|not found"),
        ("neighbours.py", ["serve"], "neighbours.py serve ADDRESS"),
        ("neighbours.py", ["serve", "nowhere:x", "0", "1"], "port is a number"),
        ("weights.py", [], "weights.py train ADDRESS"),
        ("weights.py", ["train", f"{address}:0", "many"], "invalid literal"),
        ("parameters.py", [], "parameters.py run DIGITS"),
        ("parameters.py", ["run", DIGITS], "TF_CONFIG is not set"),
        ("parameters.py", ["alone", GRAPH, "2"], "not scikit-learn's digits"),
    ]:
        process = start(name, *args)
        wrong = process.communicate(timeout=60)[1]
        assert process.returncode == 1 and re.search(text, wrong) and "Traceback" not in wrong
