# SPDX-License-Identifier: GPL-2.0
"""Tables that are partitioned over nodes: what comes is what numpy's indexing of the whole gives."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest
import rdmatensor as rt
from breaking import Noting, broken_at_each_line, notes_what_is_given_back
from rdmatensor import _table

ROWS, COLUMNS = 3000, 16


@pytest.fixture
def whole():
    return np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype("f4")


@pytest.fixture
def owners(offers, address, whole):
    """Two, one of which has its rows in place"""
    with rt.Node(listen=f"{address}:0") as other:
        offers.offer_rows("t", whole[:1000])
        rows = other.empty_rows((ROWS - 1000, COLUMNS))
        rows[:] = whole[1000:]
        other.offer_rows("t", rows, first=1000)
        yield [f"{address}:{owner.port}" for owner in (offers, other)]


@pytest.fixture
def table(node, owners):
    with rt.DistTensor("t", owners, node=node) as table:
        yield table


IDS = [
    np.array([5, 2999, 0, 999, 1000, 5]), np.array([[1, 2], [1500, 3]], "i4"), [7, 8, -1],
    np.arange(2990, 2980, -1), slice(990, 1010), slice(None, None, 500), 17, -3,
    np.array([1, 2999], ">i8"), np.array([-1, 100], "i1"),
    np.empty(0, "i8"), np.array([], "f8"), np.arange(3000)[::7], np.array([3, 4], "u8"),
]


@pytest.mark.parametrize("ids", IDS, ids=range(len(IDS)))
def test_as_numpy_has_it(table, whole, ids):
    want = whole[ids if not isinstance(ids, np.ndarray) or ids.size else []]
    got = table[ids]
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()


def test_shape(table):
    assert table.shape == (ROWS, COLUMNS) and table.size(1) == COLUMNS and len(table) == ROWS
    assert table.dtype == np.float32 and table.ndim == 2
    assert repr(table) == "<rdmatensor.DistTensor t (3000, 16) float32>"


def test_out(table, whole):
    out = np.zeros((2, COLUMNS), "f4")
    assert table.gather([4, 2000], out=out) is out and (out == whole[[4, 2000]]).all()
    for wrong in (np.zeros((3, COLUMNS), "f4"), np.zeros((2, COLUMNS), "f8"),
                  np.zeros((2, COLUMNS + 1), "f4")[:, 1:], np.zeros((2, COLUMNS), "i4"),
                  np.zeros((2, COLUMNS), ">f4"), np.zeros(2 * COLUMNS, "f4"),
                  np.zeros((2, COLUMNS // 2), object)):
        with pytest.raises(ValueError, match="out has to be"):
            table.gather([4, 2000], out=wrong)


def test_wrong_ids(table):
    with pytest.raises(IndexError, match="t"):
        table[[0, ROWS]]
    with pytest.raises(IndexError, match="-3001"):
        table[-ROWS - 1]
    with pytest.raises(TypeError, match="flatnonzero"):
        table[np.ones(ROWS, bool)]
    with pytest.raises(TypeError, match="integers"):
        table[1.5]
    with pytest.raises(TypeError, match="columns"):
        table[2, 3]
    with pytest.raises(IndexError):
        table[np.array([1 << 56], ">i8")]


def test_cached_and_in_another_order(node, owners, whole):
    order = np.random.default_rng(2).permutation(ROWS)
    with rt.DistTensor("t", owners, node=node, cached=range(500, 1500), order=order) as table:
        before = node.stats()
        ids = np.flatnonzero((order >= 500) & (order < 1500))
        assert (table[ids] == whole[order[ids]]).all()
        # None of them was read from its owner
        assert node.stats()["gather_reads"] == before["gather_reads"]
        assert (table[:] == whole[order]).all()
    with pytest.raises(OSError, match="the table has 3000"):
        rt.DistTensor("t", owners, node=node, cached=range(0, ROWS + 1))
    with pytest.raises(ValueError, match="negative"):
        rt.DistTensor("t", owners, node=node, order=[0, -1])
    with pytest.raises(OSError, match="an order without ids"):
        rt.DistTensor("t", owners, node=node, order=np.empty(0, "i8"))
    # One that is shorter than the cache
    with rt.DistTensor("t", owners, node=node, cached=range(500, 1500), order=order[:100]) as table:
        assert table.shape == (100, COLUMNS) and (table[:] == whole[order[:100]]).all()


def test_nothing_is_copied(node, table):
    before = node.stats()["copied_bytes"]
    kept = table[np.arange(1000, 2000)]
    assert node.stats()["copied_bytes"] == before and kept.base is not None


def test_rows_stay_as_long_as_their_array(table, whole):
    kept = [table[np.arange(i, i + 100)] for i in range(0, 2000, 100)]
    del kept[::2]
    more = [table[np.arange(i, i + 100)] for i in range(2000, 2900, 100)]
    assert all((array == whole[200 * i + 100 : 200 * i + 200]).all()
               for i, array in enumerate(kept))
    assert (more[-1] == whole[2800:2900]).all()


def test_gather_interrupted_anywhere(node, table, monkeypatch):
    """Rows that have come are given back once, wherever a signal's handler raises"""
    noting = Noting(_table.lib, "rdmatensor_get_rows", lambda args, _: [args[3].data])
    monkeypatch.setattr(_table, "lib", noting)
    # What is looked up once is other lines
    assert table[np.arange(100)].shape == (100, COLUMNS)
    given_back = notes_what_is_given_back(node, monkeypatch)
    for nr in broken_at_each_line(noting, lambda: table[np.arange(100)]):
        assert len(noting.came) == 1 and given_back() == noting.came, nr
    assert nr > 5


def test_own_rows(offers, whole):
    offers.offer_rows("own", whole)
    with rt.DistTensor("own", [""], node=offers) as table:
        assert (table[[1, 2]] == whole[[1, 2]]).all()


def test_threads(table, whole, in_threads):
    right = []

    def gather(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            ids = rng.integers(0, ROWS, 300)
            assert (table[ids] == whole[ids]).all()
            right.append(seed)

    in_threads(gather, 4)
    assert sorted(right) == [seed for seed in range(4) for _ in range(20)]


def test_collected_in_any_order(owners, whole):
    for _ in range(5):
        class Model:
            """Is collected as a cycle, node before table and rows or after them"""

        model = Model()
        model.node = rt.Node()
        model.table = rt.DistTensor("t", owners, node=model.node, cached=range(10))
        model.rows = model.table[[1, 2]]
        assert (model.rows == whole[[1, 2]]).all()
        model.me = model
        del model
        gc.collect()


def test_own_rows_that_are_withdrawn_while_read(offers, whole):
    """Their memory goes with the table that still has them"""
    def pools():
        with open("/proc/self/maps", encoding="ascii") as file:
            return sum("rdmatensor" in line for line in file)

    offers.offer_rows("own", whole)
    before = pools()
    for _ in range(5):
        with rt.DistTensor("own", [""], node=offers) as table:
            assert (table[[1]] == whole[[1]]).all()
            offers.withdraw_rows("own")
            offers.offer_rows("own", whole)
    # One more is for the rows that were read
    assert pools() == before + 1


def test_full_ring(offers, peer, whole, monkeypatch):
    """A gather waits for a place, which comes when the others have ended, or says what is missing"""
    monkeypatch.setenv("RDMATENSOR_RING_ENTRIES", "16")
    with rt.Node(timeout=5.0) as small:
        other = small.connect(peer.host)
        offers.offer_rows("part", whole)
        ended = []

        def wait():
            with pytest.raises(TimeoutError):
                other.get_many([f"nobody's {i}" for i in range(100)])
            ended.append(True)

        with rt.DistTensor("part", [peer.host], node=small) as part:
            waits = threading.Thread(target=wait)
            waits.start()
            try:
                # As many as there is room for beside the channel; their deadline is the timeout of before
                while small.stats()["fetches"] < 15 and waits.is_alive():
                    time.sleep(0.01)
                small.timeout = 0.3
                with pytest.raises(TimeoutError, match='"part": the completion ring had no room'):
                    part[[1, 2]]
                small.timeout = 60
                for _ in range(20):
                    assert (part[[1, 2]] == whole[[1, 2]]).all()
            finally:
                # The node is its own until it ends
                waits.join()
            assert ended


def test_ctrl_c_while_another_thread_opens(offers, address, whole):
    """An owner has gone: one thread waits for it in the kernel, and another one for that thread"""
    owner = rt.Node(listen=f"{address}:0")
    owner.offer_rows("t", whole)
    node = rt.Node(timeout=30.0)
    table = rt.DistTensor("t", [f"{address}:{owner.port}"], node=node)
    owner.close()
    del owner
    gc.collect()

    def first():
        with pytest.raises(OSError):
            table[[1]]

    node.timeout = 6.0
    opens = threading.Thread(target=first)
    opens.start()
    begun = time.monotonic()
    timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        table[[1]]
    assert time.monotonic() - begun < 5
    opens.join()
    node.timeout = 0.2
    with pytest.raises(OSError):
        table[[1]]
    table.close()


def test_offers(offers, whole):
    with pytest.raises(KeyError):
        offers.withdraw_rows("t")
    offers.offer_rows("t", whole)
    with pytest.raises(FileExistsError, match="withdraw"):
        offers.offer_rows("t", whole)
    offers.withdraw_rows("t")
    offers.offer_rows("t", whole.astype("f8"))
    with pytest.raises(ValueError, match="no rows"):
        offers.offer_rows("u", np.float32(3))


def test_nobody_offers_it(node, owners):
    # It bounds two set-ups of channels, too
    node.timeout = 2
    with pytest.raises(OSError, match='table "other": .*does not export'):
        rt.DistTensor("other", owners, node=node)
    with pytest.raises(TypeError, match="list of addresses"):
        rt.DistTensor("t", owners[0], node=node)


def test_closed(node, owners):
    table = rt.DistTensor("t", owners, node=node)
    kept = table[[1]]
    table.close()
    table.close()
    with pytest.raises(ValueError, match="closed"):
        table[[1]]
    assert kept.shape == (1, COLUMNS)
