# SPDX-License-Identifier: GPL-2.0
"""Nodes and peers: what comes is what was offered, and whatever is wrong says so."""

import asyncio
import errno
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import rdmatensor as rt
from breaking import Noting, Raising, broken_at_each_line, notes_what_is_given_back
from rdmatensor import _node

TOOL = os.path.join(os.environ["LAB_BUILD"], "ulib/bin/rdmatensor")
NUMPY_TYPES = ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"]


def test_two_lines_on_each_side(offers, address):
    offers["w"] = np.arange(6, dtype="f4").reshape(2, 3)
    got = rt.connect(f"{address}:{offers.port}")["w"]
    assert got.shape == (2, 3) and got.dtype == np.float32
    assert (got == [[0, 1, 2], [3, 4, 5]]).all()


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_type(offers, peer, dtype):
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)
    offers["x"] = array
    got = peer["x"]
    assert got.dtype == array.dtype and got.shape == array.shape and (got == array).all()


def test_types_that_numpy_has_not(offers, peer):
    tagged = np.arange(4, dtype=np.dtype("u2", metadata={"rdmatensor": "bfloat16"}))
    offers["b"] = tagged
    got = peer["b"]
    assert got.dtype.metadata == {"rdmatensor": "bfloat16"} and (got == tagged).all()
    # And again as what it came in
    offers["c"] = got
    assert peer["c"].dtype.metadata == {"rdmatensor": "bfloat16"}


def test_scalars_and_no_elements(offers, peer):
    offers["s"] = np.float64(4.5)
    offers["e"] = np.empty((3, 0, 2), "i4")
    assert peer["s"].shape == () and peer["s"] == 4.5
    assert peer["e"].shape == (3, 0, 2) and peer["e"].dtype == np.int32


def test_shapes_of_empty(offers, monkeypatch):
    assert offers.empty((np.int64(3), np.uint8(4))).shape == (3, 4)
    assert offers.empty(np.int64(5)).shape == (5,) and offers.empty([2, 3]).shape == (2, 3)
    assert offers.empty(()).shape == () and offers.empty((0, 4)).shape == (0, 4)
    noting = Noting(_node.lib, "rdmatensor_node_alloc", lambda _, result: [result])
    monkeypatch.setattr(_node, "lib", noting)
    given_back = notes_what_is_given_back(offers, monkeypatch)
    for shape in (-1, (2, -3), (-2, -3), (1,) * 65):
        with pytest.raises(ValueError):
            offers.empty(shape)
    with pytest.raises(TypeError):
        offers.empty((2.0, 3))
    gc.collect()
    # Only numpy knows how many dims are too many
    assert len(noting.came) == 1 and given_back() == noting.came


def test_opaque_of_any_shape(offers, peer):
    """A peer's dims are what it says: of opaque tensors they may be anything"""
    offers.offer("o", np.arange(8, dtype="u1"), _opaque=(1 << 32, 1 << 30))
    assert peer["o"].tolist() == list(range(8))


def test_lists_and_dlpack(offers, peer):
    class Foreign:
        """As torch's tensors: nothing but DLPack"""

        def __init__(self):
            self.array = np.arange(5.0)

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    offers["list"] = [1, 2, 3]
    offers["foreign"] = Foreign()
    assert peer["list"].tolist() == [1, 2, 3]
    assert np.from_dlpack(peer["foreign"]).tolist() == [0, 1, 2, 3, 4]


def test_nothing_is_copied(offers, node, peer):
    source = offers.empty((1 << 20,), "f4")
    source[:] = np.arange(1 << 20)
    before = offers.stats()["copied_bytes"]
    offers["big"] = source
    got = peer["big"]
    assert (got == source).all()
    assert node.stats()["copied_bytes"] == 0 and offers.stats()["copied_bytes"] == before
    out = np.empty(1 << 20, "f4")
    assert peer.get("big", out=out) is not None and (out == source).all()
    assert node.stats()["copied_bytes"] == out.nbytes


def test_out_is_filled_in_place(offers, peer):
    offers["w"] = np.arange(4, dtype="i8")
    out = np.full(10, -1, "i8")
    got = peer.get("w", out=out)
    assert got.base is not None and got.tolist() == [0, 1, 2, 3]
    assert out.tolist() == [0, 1, 2, 3] + [-1] * 6
    out.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        peer.get("w", out=out)
    with pytest.raises(OSError) as error:
        peer.get("w", out=np.empty(2, "i8"))
    assert "32 bytes" in str(error.value)


def test_steps(offers, peer):
    for step in range(3):
        offers.offer("w", np.full(2, step), step=step)
    assert peer.get("w", step=2).tolist() == [2, 2]
    offers.withdraw("w", step=2)
    assert peer.get("w", step=1).tolist() == [1, 1]


def test_a_name_is_offered_anew(offers, peer):
    offers["w"] = [1]
    offers["w"] = [2, 3]
    assert peer["w"].tolist() == [2, 3]
    del offers["w"]
    with pytest.raises(KeyError):
        del offers["w"]
    with pytest.raises(FileExistsError, match="another step"):
        offers.offer("x", [1])
        offers.offer("x", [1])


def test_own_offers(offers):
    offers["w"] = [1, 2]
    assert offers.get("w").tolist() == [1, 2]
    offers.timeout = 0.2
    with pytest.raises(TimeoutError, match="this node/nosuch, step 0: .*it does not offer it under this name"):
        offers.get("nosuch")


def test_many_at_once(offers, node, peer):
    names = [f"t{i}" for i in range(300)]
    for i, name in enumerate(names):
        offers[name] = np.full(i + 1, i)
    got = peer.get_many(names)
    assert list(got) == names
    assert all((array == i).all() and array.size == i + 1 for i, array in enumerate(got.values()))
    node.timeout = 0.3
    with pytest.raises(TimeoutError, match="nosuch") as lacking:
        peer.get_many(names[:10] + ["nosuch"])
    assert lacking.value.failed == {"nosuch": errno.ETIMEDOUT}


def test_many_parts_at_once(offers, peer, node):
    array = np.arange(600, dtype="i4").reshape(20, 30)
    for i in range(40):
        offers[f"t{i}"] = array + i
    parts = {f"t{i}": None if i % 3 else np.s_[i % 20, 3:9] for i in range(40)}
    got = peer.get_many(parts)
    assert list(got) == list(parts)
    for i, (name, part) in enumerate(parts.items()):
        want = array + i if part is None else (array + i)[part]
        assert got[name].shape == want.shape and (got[name] == want).all()
    with pytest.raises(OSError) as beyond:
        peer.get_many({"t1": None, "t2": np.s_[0:21]})
    assert beyond.value.errno == errno.ERANGE and "t2" in str(beyond.value)
    began = time.monotonic()
    with pytest.raises(FileNotFoundError, match="nosuch") as lacking:
        peer.get_many({"t1": None, "nosuch": None, "t2": np.s_[0:21], "größe": None}, wait=False)
    assert lacking.value.failed == {
        "nosuch": errno.ENOENT, "t2": errno.ERANGE, "größe": errno.ENOENT}
    assert time.monotonic() - began < node.timeout / 2


@pytest.mark.parametrize("value, error, words", [
    (np.arange(10)[::2], ValueError, "ascontiguousarray"),
    (np.asfortranarray(np.ones((3, 4))), ValueError, "ascontiguousarray"),
    (np.array([{}]), TypeError, "of Python's objects"),
    (np.array(["text"]), TypeError, "cannot be moved"),
    (np.arange(3, dtype=">i4"), TypeError, "byte order"),
    (np.ones((1,) * 17), ValueError, "17 dimensions"),
])
def test_what_cannot_be_offered(offers, peer, value, error, words):
    offers["w"] = [1]
    with pytest.raises(error, match=words):
        offers["w"] = value
    # And what was there is there
    assert peer["w"].tolist() == [1]


def test_errors_say_what_to_do(node, peer, address):
    # Connected before the time is short
    assert peer.list() == []
    node.timeout = 0.2
    with pytest.raises(TimeoutError, match="has not published it"):
        peer["nothing"]
    with pytest.raises(OSError, match="port is a number"):
        node.connect("host:port")["w"]
    with pytest.raises(OSError, match="refused"):
        rt.Node(listen="nowhere:x")
    with pytest.raises(TypeError, match=":18521"):
        rt.Node(18521)


def test_memory_comes_back(offers, node, peer):
    offers["big"] = np.zeros(4 << 20, "u1")
    for _ in range(40):
        peer["big"]
    # Views of views hold it as well
    part = peer["big"][1000:2000].reshape(10, 100)
    gc.collect()
    peer["big"]
    assert not part.any()


def test_arrays_outlive_their_node(offers, address):
    offers["w"] = np.arange(1000)
    node = rt.Node()
    got = node.connect(f"{address}:{offers.port}")["w"]
    node.close()
    gc.collect()
    assert (got == np.arange(1000)).all()
    with pytest.raises(ValueError, match="closed"):
        node.connect("x")
    with pytest.raises(ValueError, match="closed"):
        node["w"] = [1]
    node.close()


def test_what_is_offered_lives(offers, peer):
    source = offers.empty(1000, "i4")
    source[:] = 7
    offers["w"] = source
    del source
    gc.collect()
    other = offers.empty(1000, "i4")
    other[:] = 8
    assert (peer["w"] == 7).all()


def test_a_forked_child_is_told(offers):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        text = b"nothing"
        try:
            offers["w"] = [1]
        except RuntimeError as error:
            text = str(error).encode()
        os.write(write, text)
        os._exit(0)
    os.close(write)
    assert b"make one after fork" in os.read(read, 200)
    os.waitpid(child, 0)
    offers["w"] = [1]


def test_library_that_is_closed_before_a_node(address):
    """As when the interpreter ends: the node's thread goes on in the library's code"""
    program = f"""
import os, time
import rdmatensor as rt
from rdmatensor._ffi import ffi, lib
node = rt.Node(listen="{address}:0")
node["w"] = [1]
ffi.dlclose(lib)
time.sleep(2.5)  # the thread looks after itself each second
os._exit(0)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_ctrl_c(node, peer):
    node.timeout = None
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        peer["nothing"]


def test_signals_that_are_handled(offers, peer):
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    threading.Timer(0.5, lambda: offers.offer("late", [5])).start()
    try:
        assert peer["late"].tolist() == [5]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(seen) > 2


def test_asyncio(offers, peer):
    for i in range(8):
        offers[f"t{i}"] = np.full(100, i)

    async def all_of_them():
        return await asyncio.gather(*(peer.fetch(f"t{i}") for i in range(8)))

    got = asyncio.run(all_of_them())
    assert all((array == i).all() for i, array in enumerate(got))


def test_threads(offers, peer, in_threads):
    bad = []

    def work(nr):
        for i in range(20):
            name = f"own{nr}"
            offers[name] = np.full(50, nr * 100 + i)
            if not (peer[name] == nr * 100 + i).all():
                bad.append(nr)

    in_threads(work, 6)
    assert not bad


def test_names_that_are_none(offers, peer):
    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="no name"):
            offers[name] = [1]
        with pytest.raises(ValueError, match="no name"):
            peer[name]


def test_what_came_before_ctrl_c_comes_back(offers, node, peer):
    offers["big"] = np.zeros(12 << 20, "u1")
    node.timeout = None
    for _ in range(4):
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            peer.get_many(["big", "nothing"])
    gc.collect()
    assert not peer["big"].any()


def test_closed_beside_calls(offers, address):
    for _ in range(5):
        node = rt.Node()
        peer = node.connect(f"{address}:{offers.port}")
        node.timeout = 0.4
        seen = []

        def wait():
            try:
                peer["nothing"]
            except (TimeoutError, ValueError) as error:
                seen.append(error)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        node.close()
        del node
        for thread in threads:
            thread.join()
        assert len(seen) == 3


def test_list(offers, peer):
    """Names, types, shapes and uses of what is offered, the oldest first"""
    offers["layer/b"] = np.arange(6, dtype="i8").reshape(2, 3)
    offers["layer/a"] = np.float32(1)
    offers.offer("other", np.zeros((0, 4), "f2"), step=-7)
    assert [t.name for t in peer.list()] == ["layer/b", "layer/a", "other"]
    assert [t.name for t in peer.list("layer/")] == ["layer/b", "layer/a"]
    assert peer.list("layer/c") == []
    first, second, third = peer.list()
    assert first == rt.Offered("layer/b", 0, np.dtype("i8"), (2, 3), 48, None)
    assert (second.dtype, second.shape, second.nbytes) == (np.dtype("f4"), (), 4)
    assert (third.step, third.dtype, third.shape, third.nbytes) == (-7, np.dtype("f2"), (0, 4), 0)
    assert offers.list() == peer.list()
    del offers["layer/b"]
    assert [t.name for t in peer.list()] == ["layer/a", "other"]
    for nr in range(3000):
        offers[f"many/{nr:05}"] = np.uint8(1)
    assert [t.name for t in peer.list("many/")] == [f"many/{nr:05}" for nr in range(3000)]
    with pytest.raises(ValueError, match="zero byte"):
        peer.list("a\0")
    with pytest.raises(OSError, match="no name is so long") as raised:
        peer.list("x" * 513)
    assert raised.value.errno == errno.EINVAL


def test_list_within_no_time(node, offers, peer):
    """It says whose list, of which names, and what would help"""
    for nr in range(3000):
        offers[f"w/{nr}"] = np.uint8(1)
    assert len(peer.list()) == 3000
    node.timeout = 0.001

    def list_again(prefix=""):
        """A page is late at the next tick of the timer wheel, before which all of them may come"""
        for _ in range(1000):
            peer.list(prefix)

    with pytest.raises(TimeoutError) as raised:
        list_again()
    assert re.search(r"^list: [^/]*:\d+: .*\(node\.timeout\)$", raised.value.strerror)
    with pytest.raises(TimeoutError, match='names that begin with "w/": '):
        list_again("w/")
    node.timeout = 10
    assert len(peer.list()) == 3000


def test_list_with_another_allocator(offers, address):
    """Which whoever starts a program may have loaded before all else"""
    offers["w"] = np.uint8(1)
    program = f"""
import rdmatensor as rt
for _ in range(3):
    assert [t.name for t in rt.connect("{address}:{offers.port}").list()] == ["w"]
"""
    env = dict(os.environ, LD_PRELOAD=os.environ["TEST_ALLOCATOR"])
    assert subprocess.run([sys.executable, "-c", program], env=env, check=False).returncode == 0


def test_many_names(offers, peer):
    names = [f"n{i}" for i in range(100)] + ["é", "名", "a b"]
    for i, name in enumerate(names):
        offers[name] = np.full(i % 7, i)
    got = peer.get_many(names)
    assert list(got) == names
    assert all((got[name] == i).all() and got[name].shape == (i % 7,)
               for i, name in enumerate(names))
    assert peer.get_many([]) == {}
    assert list(peer.get_many([names[0]])) == names[:1]
    with pytest.raises(UnicodeEncodeError) as error:
        peer.get_many(["n1", "n2", "\ud800"])
    assert error.value.object == "\ud800"
    for wrong in (["n1", ""], ["", "n1"], ["n1", "n2\0"], ["\0", "n1"], ["n1", "a\0b"], [""]):
        with pytest.raises(ValueError):
            peer.get_many(wrong)


def test_names_of_any_bytes(offers, peer):
    """list() decodes what is not text, and what it says can be got"""
    name = b"a\xff/\xe9".decode(errors="surrogateescape")
    offers[name] = np.arange(3)
    assert [offered.name for offered in peer.list()] == [name]
    assert [offered.name for offered in peer.list(name[:2])] == [name]
    assert peer[name].tolist() == [0, 1, 2]
    offers["b"] = np.arange(2)
    assert list(peer.get_many([name, "b"])) == [name, "b"]
    del offers[name]
    with pytest.raises(ValueError, match="zero byte"):
        rt.connect("h\0x")


def test_shapes_that_numpy_cannot_count(offers, peer):
    """Empty, and longer than any array: it comes as bytes, and the others come"""
    tensor = _node.ffi.new("struct rdmatensor_tensor *")
    tensor.data_type, tensor.ndims, tensor.dims = 1, 2, [0, 1 << 62]
    assert _node.lib.rdmatensor_offer(offers._handle.pointer, b"odd", tensor) == 0
    offers["good"] = np.arange(3)
    got = peer.get_many(["good", "odd"])
    assert got["good"].tolist() == [0, 1, 2]
    assert got["odd"].size == 0 and got["odd"].dtype == "u1"


def test_names_are_text(node, peer):
    for call in (lambda: node.offer(3, np.zeros(1)), lambda: peer[3], lambda: peer.get_many(["w", None])):
        with pytest.raises(TypeError, match="a name is a str, and not (3|None)"):
            call()


def test_arguments_that_are_none(node, peer):
    for call in (peer.get_many, peer.generation):
        with pytest.raises(TypeError, match="several"):
            call("w1")
    for step in (1.9, "7", None):
        with pytest.raises(TypeError):
            peer.get("w", step=step)
    for timeout in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout is seconds"):
            node.timeout = timeout
    for timeout in (float("inf"), 2e10):
        node.timeout = timeout
        assert node.timeout is None
    peer.timeout = 0.1
    assert node.timeout == peer.timeout == 0.1
    # By the name that the remedy has in Python
    with pytest.raises(TimeoutError, match=r"needs more time \(node\.timeout\)"):
        peer.get("nothing")
    with pytest.raises(AttributeError):
        peer.time_out = 1
    with pytest.raises(ValueError, match=r"connect\(HOST\)\[NAME\]"):
        rt.connect("host/w")
    with pytest.raises(TypeError, match="of Python's objects"):
        node["w"] = np.array([None])


def test_names_of_types_in_metadata(offers, peer):
    tagged = np.dtype("u2", metadata={"rdmatensor": "bfloat16"})
    array = np.full(3, 0x3f80, tagged)
    with pytest.raises(TypeError, match="byte order"):
        offers["w"] = array.astype(tagged.newbyteorder())
    for wrong in (np.dtype("u2", metadata={"rdmatensor": "nope"}),
                  np.dtype("f8", metadata={"rdmatensor": "bfloat16"})):
        with pytest.raises(TypeError, match="in its metadata"):
            offers["w"] = np.zeros(3, wrong)
    # What comes has its own name, whatever it is written to
    offers["w"], offers["n"] = array, np.full(3, 7, "u2")
    for name, out in (("w", np.zeros(3, "u2")), ("n", np.zeros(3, tagged))):
        got = peer.get(name, out=out)
        assert (got == out).all() and out[0]
        assert got.dtype.metadata == (tagged.metadata if name == "w" else None)
    assert peer.get("w", out=array) is array


def test_no_cycles_of_empty_arrays(node):
    gc.collect()
    gc.disable()
    try:
        for i in range(100):
            node.empty((i + 1, 3))
        assert gc.collect() < 50
    finally:
        gc.enable()


def interrupted(call, seconds):
    """Whether a signal has come before the call was over"""
    over = False

    def handler(*_):
        if not over:
            raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        over = True
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    return False


def pools():
    """How many there are: what the library has made, whoever knows of it"""
    said = subprocess.run([TOOL, "show", "pools", "-j"], check=True, stdout=subprocess.PIPE).stdout
    return len(json.loads(said))


def test_empty_interrupted_in_the_library(address, monkeypatch):
    """A signal waits for the call's end, and its handler raises before what has come has a name"""
    took, arrays = [], []

    def empty_in(node):
        """Nearly all of it is the call, which makes the node's first pool"""
        begun = time.monotonic()
        arrays.append(node.empty(1 << 24, "u1"))
        took.append(time.monotonic() - begun)

    for _ in range(3):
        with rt.Node() as node:
            empty_in(node)
        arrays.clear()
    # However fast it is now and then: until a signal has come in time
    for part in range(2, 100):
        with rt.Node() as node:
            given_back = notes_what_is_given_back(node, monkeypatch)
            before = pools()
            hit = interrupted(lambda: empty_in(node), min(took) / part)
            if hit and not arrays:
                # None, if it came before the call
                made = pools() - before
                assert len(given_back()) == made and not node._own
                if made:
                    return
            arrays.clear()
    pytest.fail("no signal came before its end")


def test_node_interrupted_in_the_library(address):
    """It ends, and so its port is free"""
    def opened():
        nodes.append(rt.Node(listen=f"{address}:7160"))

    nodes, hits = [], 0
    begun = time.monotonic()
    opened()
    took = time.monotonic() - begun
    for part in range(40, 0, -1):
        # Not while it is closed: what a handler raises in a finalizer is nobody's
        while nodes:
            nodes.pop().close()
        gc.collect()
        hits += interrupted(opened, took / part)
    while nodes:
        nodes.pop().close()
    gc.collect()
    assert hits > 3
    rt.Node(listen=f"{address}:7160").close()


def wait_until(condition):
    """For a thread beside a get; not for ever, so that the get's own checks tell what is wrong"""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture
def alarm():
    """SIGALRM for the main thread, which is in a call; its handler is `handler`, if there is one"""
    former = signal.signal(signal.SIGALRM, lambda *_: None)

    def send(handler=None):
        if handler:
            signal.signal(signal.SIGALRM, handler)
        return lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    yield send
    signal.signal(signal.SIGALRM, former)


def test_many_while_signals_are_handled(offers, peer, alarm, monkeypatch):
    """What has come by then is not asked for again, and each comes under its own name"""
    offers["a"] = np.arange(3)
    offers["empty"] = np.empty((2, 0))
    asked = []
    real = _node.Peer._asking
    monkeypatch.setattr(_node.Peer, "_asking",
                        lambda self, handle, names, *rest: (asked.append(list(names)),
                                                            real(self, handle, names, *rest))[1])
    send = alarm()

    def offering():
        for left, value in ((["late1", "late2"], 1), (["late2"], 2)):
            # Longer and longer: on a slow machine nothing comes between two of them
            pause = 0.02
            while left not in asked and pause < 1.5:
                time.sleep(pause)
                send()
                pause *= 1.3
            offers.offer(f"late{value}", np.full(5, value))

    thread = threading.Thread(target=offering)
    thread.start()
    try:
        got = peer.get_many(["late1", "a", "empty", "late2"])
    finally:
        thread.join()
    assert ["late1", "late2"] in asked and ["late2"] in asked
    assert got["late1"].tolist() == [1] * 5 and got["late2"].tolist() == [2] * 5
    assert got["a"].tolist() == [0, 1, 2] and got["empty"].shape == (2, 0)


def test_many_interrupted_when_some_have_come(offers, peer, alarm, monkeypatch):
    """Also what came between the first signal and the second, whose handler raises"""
    offers["a"] = np.arange(3)
    # It is connected then
    assert peer["a"].tolist() == [0, 1, 2]
    before = peer._node.stats()["fetched"]
    noting = Noting(_node.lib, "rdmatensor_get_each",
                    lambda args, _: [args[3][i].data for i in range(args[4])])
    monkeypatch.setattr(_node, "lib", noting)
    given_back = notes_what_is_given_back(peer._node, monkeypatch)
    seen, ended = [], []

    def handler(*_):
        seen.append("b" if peer._node.stats()["fetched"] > before + 1 else "a")
        if seen.count("b") == 1 and seen[-1] == "b":
            raise KeyboardInterrupt

    send = alarm(handler)

    def interrupting():
        """One signal may come when the library does not wait, and then nobody sees it: until one is seen"""
        for came, seen_by_then in ((1, lambda: "a" in seen), (2, lambda: ended)):
            wait_until(lambda least=before + came: peer._node.stats()["fetched"] >= least)
            wait_until(lambda until=seen_by_then: send() or until())
            if came == 1:
                offers.offer("b", np.full(5, 1))

    thread = threading.Thread(target=interrupting)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            peer.get_many(["never", "a", "b"])
    finally:
        ended.append(1)
        thread.join()
    gc.collect()
    came = set(noting.came) - {0}
    assert len(came) == 2 and sorted(given_back()) == sorted(came)


def test_get_interrupted_anywhere(offers, peer, monkeypatch):
    """What has come is given back once, wherever a signal's handler raises"""
    offers["a"] = np.arange(10)
    offers["b"] = np.zeros((3, 2), "u1")
    offers["c"] = np.ones(4, np.dtype("u2", metadata={"rdmatensor": "bfloat16"}))
    noting = Noting(_node.lib, "rdmatensor_get_each",
                    lambda args, _: [args[3][i].data for i in range(args[4])])
    monkeypatch.setattr(_node, "lib", noting)
    # What is looked up once is other lines
    peer.get_many(["a", "b", "c"])
    given_back = notes_what_is_given_back(peer._node, monkeypatch)
    for nr in broken_at_each_line(noting, lambda: peer.get_many(["a", "b", "c"])):
        assert len(noting.came) == 3 and sorted(given_back()) == sorted(noting.came), nr
    assert nr > 20


def test_empty_interrupted_anywhere(offers, monkeypatch):
    noting = Noting(_node.lib, "rdmatensor_node_alloc", lambda _, result: [result])
    monkeypatch.setattr(_node, "lib", noting)
    offers.empty((3, 4))
    given_back = notes_what_is_given_back(offers, monkeypatch)
    for nr in broken_at_each_line(noting, lambda: offers.empty((3, 4))):
        assert len(noting.came) == 1 and given_back() == noting.came and not offers._own, nr
    assert nr > 5


def test_list_interrupted_when_it_has_come(offers, peer, monkeypatch):
    freed = []

    class Freeing:
        @staticmethod
        def free(memory):
            freed.append(memory)
            libc.free(memory)

    offers["w"] = np.uint8(1)
    assert len(peer.list()) == 1
    libc = _node.libc
    monkeypatch.setattr(_node, "libc", Freeing)
    monkeypatch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_list"))
    with pytest.raises(KeyboardInterrupt):
        peer.list()
    assert [memory != _node.ffi.NULL for memory in freed] == [True]


@pytest.mark.parametrize("own", [False, True])
def test_offer_interrupted_when_it_is_there(offers, peer, monkeypatch, own):
    array = offers.empty(3, "u1") if own else np.zeros(3, "u1")
    array[:] = [1, 2, 3]
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_offer"))
        with pytest.raises(KeyboardInterrupt):
            offers.offer("w", array)
    # Nobody else knows of it
    del array
    gc.collect()
    assert peer["w"].tolist() == [1, 2, 3]
    offers["w"] = np.zeros(3, "u1")
    assert peer["w"].tolist() == [0, 0, 0]
    offers.withdraw("w")
    with pytest.raises(KeyError):
        offers.withdraw("w")


def test_withdraw_interrupted_when_it_is_gone(offers, peer, monkeypatch):
    offers["w"] = np.uint8(1)
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_withdraw_offer"))
        with pytest.raises(KeyboardInterrupt):
            offers.withdraw("w")
    offers["w"] = np.uint8(2)
    assert peer["w"] == 2
    offers.withdraw("w")


def test_refused_offer_interrupted(offers, peer, monkeypatch):
    """What is offered already stays what it is"""
    array, other = offers.empty(3, "u1"), offers.empty(3, "u1")
    array[:], other[:] = [1, 2, 3], [4, 5, 6]
    start = array.ctypes.data
    offers.offer("w", array)
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_offer", -errno.EEXIST))
        with pytest.raises(KeyboardInterrupt):
            offers.offer("w", other)
    del array, other
    gc.collect()
    offers._handle.flush()
    assert start in offers._own and peer["w"].tolist() == [1, 2, 3]
    offers.withdraw("w")
    gc.collect()
    assert not offers._own


def test_rows_interrupted_when_they_are_there(offers, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_offer_rows"))
        with pytest.raises(KeyboardInterrupt):
            offers.offer_rows("t", np.zeros((4, 4)))
    offers.withdraw_rows("t")
    with pytest.raises(KeyError):
        offers.withdraw_rows("t")


def test_refused_rows_interrupted(offers, monkeypatch):
    """Rows that are offered already stay, until they are withdrawn"""
    rows = [offers.empty_rows((4, 4)) for _ in range(2)]
    offers.offer_rows("t", rows[0])
    with monkeypatch.context() as patch:
        patch.setattr(_node, "lib", Raising(_node.lib, "rdmatensor_offer_rows", -errno.EEXIST))
        with pytest.raises(KeyboardInterrupt):
            offers.offer_rows("t", rows[1])
    rows.clear()
    gc.collect()
    assert len(offers._own) == 2
    offers.withdraw_rows("t")
    gc.collect()
    assert not offers._own


def test_one_name_by_threads(offers, peer, in_threads):
    """The last one counts, and nobody hears of the others"""
    failures = []

    def sets(nr):
        try:
            for _ in range(30):
                offers["w"] = np.full(10, nr)
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    in_threads(sets, 4)
    assert not failures
    assert len(set(peer["w"].tolist())) == 1
    offers.withdraw("w")
    assert peer.list() == []


@pytest.mark.parametrize("call", ["get", "list"])
def test_timeout_is_of_all_of_a_call(node, address, call):
    """However often a signal that is handled makes it begin anew"""
    node.timeout = 2.0
    absent = node.connect(f"{address}:1")
    former = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1.7)
    began = time.monotonic()
    try:
        with pytest.raises((TimeoutError, ConnectionRefusedError)):
            absent["w"] if call == "get" else absent.list()  # pylint: disable=expression-not-assigned
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert 1.9 < time.monotonic() - began < 3.5


def test_list_of_who_does_not_tell(address, node, monkeypatch):
    monkeypatch.setenv("RDMATENSOR_LIST_MODE", "2")
    with rt.Node(listen=f"{address}:0") as quiet:
        quiet["w"] = np.zeros(1)
        silent = node.connect(f"{address}:{quiet.port}")
        with pytest.raises(PermissionError, match="list_mode is 2"):
            silent.list()
        assert (silent["w"] == 0).all()
        # Its own word
        assert [t.name for t in quiet.list()] == ["w"]


def test_lists_by_threads(offers, peer):
    """Beside gets, and offers that come and go"""
    for nr in range(200):
        offers[f"stays/{nr}"] = np.uint8(nr % 251)
    ends = threading.Event()
    failures = []

    def lists():
        try:
            while not ends.is_set():
                names = [t.name for t in peer.list("stays/")]
                assert names == [f"stays/{nr}" for nr in range(200)]
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=lists) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for nr in range(60):
            offers[f"goes/{nr}"] = np.arange(nr + 1)
            assert (peer[f"goes/{nr}"] == np.arange(nr + 1)).all()
            del offers[f"goes/{nr}"]
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert not failures


SLICES = [
    (np.s_[1:3],), (np.s_[:],), (np.s_[2:], np.s_[1:4]), (np.s_[0:2], np.s_[3:], np.s_[1:2]),
    (np.s_[1:1],), (1,), (np.s_[:], 2), (np.s_[:], np.s_[:], 0), (3, 1, 4), (np.int64(2), np.s_[1:2]),
]


@pytest.mark.parametrize("index", SLICES)
def test_slice(offers, peer, index):
    """What numpy has, of the same index"""
    array = np.arange(4 * 5 * 6, dtype="i4").reshape(4, 5, 6)
    offers["w"] = array
    want = array[index]
    for _ in range(2):
        got = peer.get("w", slice=index)
        assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()
    assert (peer[("w", *index)] == want).all()
    out = np.zeros(want.shape, "i4")
    assert np.shares_memory(peer.get("w", slice=index, out=out), out) or not out.size
    assert (out == want).all()
    assert (offers.get("w") == array).all()


def test_slice_by_its_index(offers, peer):
    offers["w"] = np.arange(12.0).reshape(3, 4)
    assert peer["w", 1].tolist() == [4, 5, 6, 7]
    assert peer["w", 1:3, 2].tolist() == [6, 10]
    assert asyncio.run(peer.fetch("w", slice=np.s_[:, 3:])).tolist() == [[3], [7], [11]]


def test_slice_that_is_none(offers, peer):
    offers["w"] = np.zeros((3, 4), "f4")
    for index, text in [((np.s_[::2],), "with step 2"), ((np.s_[-1:],), "counts from the end"),
                        ((np.s_[:-1],), "counts from the end"), ((-1,), "counts from the end"),
                        ((), "of no dimension"), ((np.s_[:],) * 17, "of 17 dimensions"),
                        ((..., 1), "with ... or None: .* write : for each"),
                        ((None, 1), "with ... or None"), ((1 << 63,), "beyond"),
                        ((np.s_[: 1 << 64],), "beyond")]:
        with pytest.raises(ValueError, match=text):
            peer.get("w", slice=index)
    for index in ("0:1", True, np.True_, 1.5, [0, 1], np.s_[0:2:1.0]):
        with pytest.raises(TypeError):
            peer.get("w", slice=(index,))
    for index in [(np.s_[0:4],), (np.s_[:], np.s_[0:5]), (3,), (0, 0, 0), (np.s_[4:],)]:
        with pytest.raises(OSError, match=r"no such slice: its shape is \[3, 4\]") as raised:
            peer.get("w", slice=index)
        assert raised.value.errno == errno.ERANGE
    assert peer["w", 2:].shape == (1, 4)
    assert offers.get("w", slice=np.s_[:, 3]).tolist() == [0, 0, 0]


def test_out_of_another_type(offers, peer):
    """It would look like numbers, and be others"""
    offers["w"] = np.arange(4, dtype="f4")
    out = np.zeros(4, "f4")
    assert peer.get("w", out=out) is out and out.tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError, match="out is of int32, and the tensor, .* is of float32"):
        peer.get("w", out=np.zeros(4, "i4"))
    assert peer.get("w", out=np.zeros(16, "u1")).tolist() == [0, 1, 2, 3]
    assert peer.get("w", out=np.zeros((2, 2), "f4")).tolist() == [0, 1, 2, 3]


def test_name_that_is_nearly_right(node, offers, peer):
    """What may have been meant, the nearest first, and nothing that is far from it"""
    for name in ("weight", "Weights.1", "wait", "bias", "layers.0.attn.q_proj.weight",
                 "layers.1.attn.q_proj.weight", "layers.0.attn.k_proj.weight"):
        offers[name] = np.uint8(1)
    offers.offer("stepped", np.uint8(1), step=3)
    offers.offer("stepped", np.uint8(1), step=7)
    assert len(peer.list()) == 9
    node.timeout = 0.1

    def said(name, wanted):
        """A busy machine may have no time for the words, and after a list the node makes none for a while"""
        for _ in range(100):
            with pytest.raises(TimeoutError) as raised:
                peer[name]
            if wanted in raised.value.strerror:
                break
        return raised.value.strerror

    for name, meant in [
            ("weights", '; did you mean "weight" or "Weights.1"?'),
            ("Weight", '; did you mean "weight"?'),
            ("layer.0.attn.q_proj.weight", '; did you mean "layers.0.attn.q_proj.weight", '),
            ("stepped", "; it is offered there under step 7"),
            ("nothing like it", "(node.timeout)")]:
        assert meant in said(name, meant)
    assert "did you" not in said("nothing like it", "Connection timed out")
    assert said("layers.0.attn.v_proj.weight", "did you").count("_proj.weight\"") == 3


def test_name_that_is_nearly_right_of_who_does_not_tell(address, node, monkeypatch):
    monkeypatch.setenv("RDMATENSOR_LIST_MODE", "2")
    with rt.Node(listen=f"{address}:0") as quiet:
        quiet["weights"] = np.zeros(1)
        silent = node.connect(f"{address}:{quiet.port}")
        assert (silent["weights"] == 0).all()
        node.timeout = 0.1
        with pytest.raises(TimeoutError) as raised:
            silent["weight"]  # pylint: disable=pointless-statement
        assert "did you" not in raised.value.strerror


def test_views(node, offers, peer):
    """Columns of an array of the node's own are offered where they are, and come as an array"""
    wide = offers.empty((64, 100), "i4")
    wide[:] = np.arange(6400).reshape(64, 100)
    offers["columns"] = wide[:, 10:20]
    offers.offer("rows", wide[3:7])
    offers.offer("other order", wide.T[::7, 5:9])
    assert (peer["columns"] == wide[:, 10:20]).all()
    assert (peer["rows"] == wide[3:7]).all()
    assert (peer["other order"] == wide.T[::7, 5:9]).all()
    assert (peer["columns", 60:, 3:5] == wide[60:, 13:15]).all()
    assert offers.stats()["copied_bytes"] == 0 and node.stats()["copied_bytes"] == 0
    # Nothing was copied: what is written to it is seen
    wide[:, 10] = -1
    assert (peer["columns"][:, 0] == -1).all()
    for bad in (wide[:, ::-1], np.zeros((4, 4))[:, 1:3]):
        with pytest.raises(ValueError, match="ascontiguousarray"):
            offers["bad"] = bad
    offers.offer_generation("g", {"g/columns": wide[:, 4:6], "g/all": wide}, 1)
    step, got = peer.generation(["g/columns", "g/all"])
    assert step == 1 and (got["g/columns"] == wide[:, 4:6]).all() and (got["g/all"] == wide).all()


@pytest.mark.parametrize("own", [True, False])
def test_out_with_gaps(node, offers, peer, own):
    """Halves that come to the columns of one array; what lies beside them stays"""
    source = np.arange(64 * 40, dtype="f4").reshape(64, 40)
    offers["w"] = source
    whole = node.empty_out((64, 100)) if own else np.empty((64, 100), "f4")
    whole[:] = -1
    view = whole[:, 10:50]
    assert peer.get("w", out=view) is view
    assert (whole[:, 10:50] == source).all()
    assert (whole[:, :10] == -1).all() and (whole[:, 50:] == -1).all()
    assert node.stats()["copied_bytes"] == (0 if own else source.nbytes)
    whole[:] = -1
    got = peer.get("w", slice=np.s_[10:20, 7], out=whole[5:15, 3])
    assert got.tolist() == source[10:20, 7].tolist() == whole[5:15, 3].tolist()
    assert (whole == -1).sum() == whole.size - 10
    # Another order of the dims: element by element
    assert (peer.get("w", slice=np.s_[:5, :4], out=whole.T[:5, :4]) == source[:5, :4]).all()
    assert (whole.T[:5, :4] == source[:5, :4]).all()
    # A tensor that is smaller: what there is of it
    whole[:] = -1
    assert peer.get("w", slice=np.s_[:2, :3], out=whole[:, 10:50]).shape == (2, 3)
    assert (whole != -1).sum() == 6


def test_out_with_gaps_that_does_not_fit(peer, offers):
    offers["w"] = np.arange(6, dtype="f4").reshape(2, 3)
    whole = np.zeros((8, 8), "f4")
    with pytest.raises(OSError, match="has 1 strides, and what comes has 2 dims") as error:
        peer.get("w", out=whole[::2, 3])
    assert error.value.errno == errno.ERANGE
    # Of each dim, also where all of them would fit
    for out, text in [
        (whole[:2, 3:4], "dim 1 of what comes has 3 elements, and there are places for 1"),
        (whole[:, :2], "dim 1 of what comes has 3 elements, and there are places for 2"),
        (whole[:1, :4].T.T[:, :3].reshape(1, 3)[:, ::2], "dim 0 of what comes has 2 .* places for 1"),
    ]:
        with pytest.raises(OSError, match=text) as error:
            peer.get("w", out=out)
        assert error.value.errno == errno.EMSGSIZE
    with pytest.raises(ValueError, match="negative strides"):
        peer.get("w", out=whole[::-1])
    with pytest.raises(OSError, match="would overlap"):
        peer.get("w", out=np.lib.stride_tricks.as_strided(whole, (2, 3), (0, 4)))
    other = np.zeros((8, 8), "i4")
    with pytest.raises(OSError, match="is for elements of type") as error:
        peer.get("w", out=other[:, 1:4])
    assert error.value.errno == errno.EINVAL
    assert not whole.any() and not other.any()


def test_a_signal_beside_out_with_gaps(node, offers, peer):
    """What is known of the tensor by then does not take the place of what was said of the array"""
    source = np.arange(64 * 40, dtype="f4").reshape(64, 40)
    offers.offer("w", source)
    whole = node.empty_out((64, 100))
    peer.get("w", out=whole[:, 10:50])
    former = signal.signal(signal.SIGALRM,
                           lambda *_: offers.offer("w", source + 1, step=1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        peer.get("w", step=1, out=whole[:, 50:90])
    finally:
        signal.signal(signal.SIGALRM, former)
    assert (whole[:, 50:90] == source + 1).all() and (whole[:, 10:50] == source).all()


def test_finalizers_find_all(offers, peer):
    """What a finalizer calls is not looked up by it: cffi holds a lock while it looks something up"""
    from rdmatensor._ffi import ffi, lib, libc  # pylint: disable=import-outside-toplevel

    assert set(dir(lib)) <= set(vars(lib)) and set(dir(libc)) <= set(vars(libc))
    offers["w"] = np.ones(1000, "f4")
    arrays = [peer["w"] for _ in range(10)]
    with ffi._lock:  # pylint: disable=protected-access
        del arrays
        gc.collect()
        peer._node._handle.flush()  # pylint: disable=protected-access
