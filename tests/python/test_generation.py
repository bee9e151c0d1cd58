# SPDX-License-Identifier: GPL-2.0
"""Generations: a reader has all arrays of one, whatever the writer does meanwhile."""

import asyncio
import errno
import gc
import threading
import time

import numpy as np
import pytest
import rdmatensor as rt
from breaking import Raising
from rdmatensor import _node

NAMES = [f"layer{i}/w" for i in range(8)]


def weights(step, names=NAMES):
    """Each element tells its generation"""
    return {name: np.full((3, 50 + i), step, "i8") for i, name in enumerate(names)}


def is_whole(step, arrays):
    return all((array == step).all() for array in arrays.values())


def pools_of_this_process():
    with open("/proc/self/maps") as maps:
        return sum("/dev/rdmatensor" in line for line in maps)


def test_one_takes_the_place_of_another(offers, peer):
    for step in (1, 2, 7, 3):
        offers.offer_generation("model", weights(step), step)
        found, got = peer.generation(NAMES)
        assert found == step and list(got) == NAMES and is_whole(step, got)
        assert got[NAMES[2]].shape == (3, 52) and got[NAMES[2]].dtype == np.int64
    assert sorted(offered.name for offered in peer.list()) == NAMES
    with pytest.raises(OSError) as stale:
        peer.get(NAMES[0], step=1)
    assert stale.value.errno == errno.ESTALE and "step 3 has taken the place" in str(stale.value)


def test_copies_are_given_back(offers, peer):
    big = {"a": np.zeros(1 << 20, "u1"), "b": np.zeros(1 << 20, "u1")}
    offers.offer_generation("model", big, 0)
    offers.offer_generation("model", big, 1)
    before = pools_of_this_process()
    for step in range(2, 150):
        big["a"][:] = step & 0xff
        offers.offer_generation("model", big, step)
        offers.wait_generation("model")
        if not step % 20:
            found, got = peer.generation(["a"])
            assert found == step and (got["a"] == step & 0xff).all()
    assert pools_of_this_process() <= before + 1


def test_in_place(offers, peer):
    """Three sets in turn, of which no element is copied"""
    sets = [{name: offers.empty((3, 50), "i8") for name in NAMES} for _ in range(3)]
    before = offers.stats()["copied_bytes"]
    for step in range(12):
        for array in sets[step % 3].values():
            array[:] = step
        offers.offer_generation("model", sets[step % 3], step)
        assert is_whole(*peer.generation(NAMES))
        offers.wait_generation("model")
    assert offers.stats()["copied_bytes"] == before


def test_arrays_in_place_stay_as_long_as_they_are_read(offers, peer):
    for step in range(20):
        arrays = {name: offers.empty((3, 50), "i8") for name in NAMES}
        for array in arrays.values():
            array[:] = step
        offers.offer_generation("model", arrays, step)
        del arrays, array
        found, got = peer.generation(NAMES)
        assert found == step and is_whole(found, got)


def test_never_mixed(offers, address, in_threads):
    """One writer, and readers on threads and channels of their own"""
    seen = [[] for _ in range(3)]
    failed = []
    stop = threading.Event()

    def write():
        for step in range(1, 150):
            offers.offer_generation("model", weights(step), step)
        stop.set()

    def read(nr):
        with rt.Node() as node:
            peer = node.connect(f"{address}:{offers.port}")
            last = None
            while not stop.is_set() or last != 149:
                step, got = peer.generation(NAMES, last)
                if not is_whole(step, got):
                    failed.append((step, {name: set(a.ravel()) for name, a in got.items()}))
                    return
                if not seen[nr] or seen[nr][-1] != step:
                    seen[nr].append(step)
                last = step

    offers.offer_generation("model", weights(0), 0)
    try:
        in_threads(lambda nr: write() if nr == 3 else read(nr), 4)
    finally:
        stop.set()
    assert not failed
    for steps in seen:
        assert steps == sorted(steps) and len(steps) > 5 and steps[-1] == 149


def test_waits_for_the_next_one(offers, peer):
    offers.offer_generation("model", weights(1), 1)
    got = []
    reader = threading.Thread(target=lambda: got.append(peer.generation(NAMES, step=2)))
    reader.start()
    time.sleep(0.05)
    assert not got
    offers.offer_generation("model", weights(5), 5)
    reader.join()
    assert got[0][0] == 5 and is_whole(*got[0])


def test_asyncio(offers, peer):
    offers.offer_generation("model", weights(4), 4)
    step, got = asyncio.run(peer.fetch_generation(NAMES))
    assert step == 4 and is_whole(step, got)


def test_what_it_does_not_have(offers, peer, node):
    offers.offer_generation("model", weights(4), 4)
    # After a list for words the node makes none for a while
    end = time.monotonic() + 30
    said = ""
    while "layer0/w" not in said and time.monotonic() < end:
        with pytest.raises(FileNotFoundError) as absent:
            peer.generation([NAMES[0], "layer9/w"])
        said = str(absent.value)
        assert "layer9/w" in said
    assert "layer0/w" in said
    # And of any name, at once
    began = time.monotonic()
    with pytest.raises(FileNotFoundError):
        peer.get("layer9/w", wait=False)
    assert time.monotonic() - began < node.timeout / 2
    with pytest.raises(ValueError):
        peer.generation(["a\0b"])
    with pytest.raises(OSError) as none:
        peer.generation([])
    assert none.value.errno == errno.EINVAL


def test_all_or_nothing(offers, peer):
    offers.offer_generation("model", weights(1), 1)
    twice = [
        # A name that has that step
        (weights(2), errno.EEXIST),
        ({"x": np.zeros(3), "object": np.array([object()])}, TypeError),
    ]
    offers.offer(NAMES[5], np.zeros(3), step=2)
    for arrays, error in twice:
        with pytest.raises(error if isinstance(error, type) else OSError) as refused:
            offers.offer_generation("model", arrays, 2)
        if not isinstance(error, type):
            assert refused.value.errno == error and NAMES[5] in str(refused.value)
        assert peer.generation(NAMES[:2])[0] == 1
    # Nothing of it is left that would be in the way
    offers.withdraw(NAMES[5], step=2)
    offers.offer_generation("model", weights(2), 2)
    assert is_whole(*peer.generation(NAMES, 2))
    with pytest.raises(FileExistsError, match="step 2 is visible already"):
        offers.offer_generation("model", weights(2), 2)
    # Also of what is offered as it is
    own = {name: offers.empty(3) for name in NAMES}
    with pytest.raises(FileExistsError):
        offers.offer_generation("model", own, 2)
    offers.offer_generation("model", own, 3)
    with pytest.raises(FileExistsError):
        offers.offer_generation("model", own, 3)
    offers.wait_generation("model")
    assert [len(kept.arrays) for kept in offers._generations["model"]] == [len(NAMES)]
    for group, arrays in (("model", {}), ("", weights(3))):
        with pytest.raises((OSError, ValueError)):
            offers.offer_generation(group, arrays, 3)


def test_parts(offers, peer):
    offers.offer_generation("model", weights(4), 4)
    step, got = peer.generation({NAMES[0]: np.s_[0, 10:20], NAMES[1]: None})
    assert step == 4 and is_whole(step, got)
    assert got[NAMES[0]].shape == (10,) and got[NAMES[1]].shape == (3, 51)
    with pytest.raises(TypeError, match="several"):
        peer.generation(NAMES[0])


def test_forgotten_when_replaced(offers):
    for step in range(20):
        offers.offer_generation("model", weights(step), step)
    assert len(offers._generations["model"]) <= 2


def test_withdrawn(offers, peer):
    with pytest.raises(KeyError):
        offers.withdraw_generation("model")
    offers.offer_generation("model", weights(1), 1)
    offers.offer_generation("other", {"b": np.ones(3)}, 1)
    offers.withdraw_generation("model")
    with pytest.raises(KeyError):
        offers.withdraw_generation("model")
    assert [offered.name for offered in peer.list()] == ["b"]
    offers.offer_generation("model", weights(1), 1)
    assert is_whole(*peer.generation(NAMES))


@pytest.mark.parametrize("withdrawn", [False, True])
def test_interrupted_when_it_is_visible(offers, peer, monkeypatch, withdrawn):
    """Its arrays stay until another one has taken its place, or it is withdrawn"""
    arrays = {name: offers.empty((3, 50), "i8") for name in NAMES}
    for array in arrays.values():
        array[:] = 1
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_offer_generation"))
        with pytest.raises(KeyboardInterrupt):
            offers.offer_generation("model", arrays, 1)
    del arrays, array
    gc.collect()
    offers._handle.flush()
    assert len(offers._own) == len(NAMES) and is_whole(*peer.generation(NAMES))
    if withdrawn:
        offers.withdraw_generation("model")
    else:
        offers.offer_generation("model", {name: np.full((3, 50), 2, "i8") for name in NAMES}, 2)
        offers.wait_generation("model")
    gc.collect()
    assert not offers._own


def test_interrupted_after_one_that_is_read(offers, monkeypatch):
    """The withdrawal waits for readers of what was visible, and not for those of what it had replaced"""
    def arrays(step):
        made = {"w": offers.empty((3, 50), "i8")}
        made["w"][:] = step
        return made

    offers.offer_generation("model", arrays(1), 1)
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_offer_generation"))
        with pytest.raises(KeyboardInterrupt):
            offers.offer_generation("model", arrays(2), 2)
    offers.withdraw_generation("model")
    gc.collect()
    assert len(offers._own) == 1
    offers.wait_generation("model")
    gc.collect()
    assert not offers._own


def test_of_oneself(offers):
    offers.offer_generation("model", weights(1), 1)
    own = offers.connect("")
    assert is_whole(*own.generation(NAMES))
