# SPDX-License-Identifier: GPL-2.0
"""TAP for tests/check, and two nodes for each test."""

import os
import threading

import pytest
import rdmatensor as rt

_count = 0


def pytest_runtest_logreport(report):
    """One line a test: of its call, or of what failed around it"""
    global _count
    if report.when != "call" and not report.failed:
        return
    _count += 1
    word = "not ok" if report.failed else "ok"
    print(f"\n{word} {_count} - {report.nodeid.split('::')[-1]}", flush=True)
    if report.failed:
        for line in report.longreprtext.splitlines()[-30:]:
            # Also what cannot be printed
            print("#", line.encode("utf-8", "backslashreplace").decode(), flush=True)


@pytest.fixture
def in_threads():
    """Runs work(nr) on a thread of its own for each nr below count, and waits for all of them"""
    def run(work, count):
        threads = [threading.Thread(target=work, args=(nr,)) for nr in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


@pytest.fixture
def address():
    return os.environ["LAB_IP"]


@pytest.fixture
def offers(address):
    with rt.Node(listen=f"{address}:0") as node:
        yield node


@pytest.fixture
def node():
    with rt.Node() as node:
        yield node


@pytest.fixture
def peer(node, offers, address):
    """The one that offers, as the other one sees it"""
    return node.connect(f"{address}:{offers.port}")
