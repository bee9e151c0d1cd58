# SPDX-License-Identifier: GPL-2.0
"""Ranks find each other, by each of the ways, check each other, and say which of them is missing."""

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

EXAMPLE = os.path.join(os.environ["LAB_BUILD"], "ulib/bin/alltoall")
#: What ranks may take, in ms: as much as a guest with all checkers needs on a machine that has other
#: things to do. None of these tests waits for it
PATIENCE = "200000"
VARIABLES = ["RDMATENSOR_CLUSTER", "RDMATENSOR_JOB", "RDMATENSOR_HOSTS", "RDMATENSOR_RANK", "RDMATENSOR_STORE",
             "RDMATENSOR_ADDRESS", "TF_CONFIG", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
             "PMIX_NAMESPACE", "PMIX_RANK"]


class Store:
    """What torch's stores have, for all ranks of this process"""

    def __init__(self):
        self.content = {}

    def set(self, key, value):
        self.content[key] = value

    def check(self, keys):
        return all(key in self.content for key in keys)

    def get(self, key):
        return self.content[key].encode()


class Grave(Store):
    """Of ranks that have died: they have not taken their addresses back"""

    def set(self, key, value):
        if value:
            super().set(key, value)


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def join():
    """A cluster of ranks in this process"""
    clusters = []

    def one(rank, size, store, **options):
        clusters.append(rt.Cluster(rank=rank, size=size, store=store,
                                   **{"timeout": 20, "quiet": True, **options}))
        return clusters[-1]

    yield one
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def hosts(tmp_path, address, monkeypatch):
    def write(ports):
        path = tmp_path / "hosts"
        path.write_text("".join(f"{address}:{port}\n" if port else "-\n" for port in ports))
        monkeypatch.setenv("RDMATENSOR_HOSTS", str(path))
        return path

    return write


def collect(in_threads, count, work):
    """What each rank's work returns, or raises"""
    results = [None] * count

    def one(nr):
        try:
            results[nr] = work(nr)
        except BaseException as error:  # pylint: disable=broad-except
            results[nr] = error

    in_threads(one, count)
    return results


def asked_for(cluster, get):
    """A thread whose get is on its way to a peer, and what it will have returned or raised"""
    ended = []

    def wait():
        try:
            ended.append(get())
        except OSError as error:
            ended.append(error)

    asked = cluster.node.stats()["tx_requests"]
    waits = threading.Thread(target=wait)
    waits.start()
    while cluster.node.stats()["tx_requests"] == asked:
        assert waits.is_alive()
    return waits, ended


def processes(count, environment, *args):
    """The example, once for each rank"""
    return [subprocess.Popen([EXAMPLE, *args], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**os.environ, **environment(nr)})
            for nr in range(count)]


def all_right(ranks, count):
    said = [process.communicate(timeout=240) for process in ranks]
    assert [process.returncode for process in ranks] == [0] * count, said
    assert f"{count * (count - 1)} of {count * (count - 1)} pairs of {count} ranks work\n" in said[0][0]
    print("#", said[0][0].replace("\n", ", "))


def test_four_ranks(join, in_threads):
    store = Store()
    told = []

    def run(rank):
        cluster = join(rank, 4, store, connects=2,
                       progress=lambda *now: told.append((rank, *now)))
        assert (cluster.rank, cluster.size, len(cluster)) == (rank, 4, 4)
        assert cluster.name(rank) == str(rank) and cluster.source == "given"
        cluster.node["own"] = np.full(1000, rank)
        cluster.connect()
        got = [cluster[other]["own"][0] for other in range(4)]
        check = cluster.check()
        cluster.barrier()
        return got, bool(check), str(check)

    for got, works, text in collect(in_threads, 4, run):
        assert got == [0, 1, 2, 3] and works and text == "12 of 12 pairs of 4 ranks work"
    mine = [now[1:] for now in told if now[0] == 0]
    assert [now for now in mine if now[0] == "connecting"] == [
        ("connecting", done, 3, 0) for done in (1, 2, 3)]
    assert {now[0] for now in mine} == {"connecting", "checking", "gathering"}


def test_processes_by_a_file_of_hosts(hosts):
    """They start in any order"""
    path = hosts(range(7100, 7104))
    all_right(processes(4, lambda nr: {"RDMATENSOR_HOSTS": str(path),
                                       "RDMATENSOR_RANK": str(nr)}, "2", PATIENCE), 4)


def test_torchruns_variables(tmp_path):
    all_right(processes(3, lambda nr: {
        "RANK": str(nr), "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
        "RDMATENSOR_STORE": f"file:{tmp_path}"}, "1", PATIENCE), 3)
    # Nothing is left there
    assert not os.listdir(tmp_path)


def test_tf_config():
    """As it is written for one machine; test_parameters has two ps and four workers at its address"""
    spec = {"worker": [f"localhost:{port}" for port in range(7112, 7114)], "ps": ["localhost:7110"]}
    tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
    all_right(processes(3, lambda nr: {"TF_CONFIG": json.dumps(
        {"cluster": spec, "task": {"type": tasks[nr][0], "index": tasks[nr][1]}})}, "1", PATIENCE), 3)


def test_tf_config_names(monkeypatch, address):
    monkeypatch.setenv("TF_CONFIG", json.dumps({
        "cluster": {"worker": [f"{address}:7121"], "ps": [f"{address}:7120"]},
        "task": {"type": "worker", "index": 0}}))
    with rt.Cluster(timeout=1, quiet=True) as cluster:
        assert cluster.rank == 1 and cluster.find("ps/0") == 0 and cluster.name(1) == "worker/0"
        assert cluster.address(0) == f"{address}:7120" and cluster.node.port == 7121
        with pytest.raises(KeyError, match="no rank is called"):
            cluster["chief/0"]
        with pytest.raises(OSError, match=r"rank 0 \(ps/0, ") as error:
            cluster.connect()
        assert error.value.errno in (errno.ECONNREFUSED, errno.ETIMEDOUT)


def mpirun(count, *args):
    return subprocess.Popen(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count), EXAMPLE, *args],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_eight_ranks_under_mpirun():
    process = mpirun(8, "2", PATIENCE)
    said, wrong = process.communicate(timeout=240)
    assert process.returncode == 0, said + wrong
    assert "56 of 56 pairs of 8 ranks work\n" in said
    assert re.search(r"8 ranks: 2 steps of 8 MB each, all right", said)
    print("#", said.replace("\n", ", "))


FENCES = """
import ctypes, os, time
import rdmatensor as rt
# As MPI_Init does, which comes first
pmix = ctypes.CDLL("libpmix.so.2")
assert pmix.PMIx_Init(ctypes.create_string_buffer(1024), None, ctypes.c_size_t(0)) == 0
assert pmix.PMIx_Fence(None, ctypes.c_size_t(0), None, ctypes.c_size_t(0)) == 0
if os.environ["PMIX_RANK"] == "1":
    time.sleep(1)
cluster = rt.Cluster(timeout=%d)
cluster.connect()
# As MPI_Finalize does
assert pmix.PMIx_Fence(None, ctypes.c_size_t(0), None, ctypes.c_size_t(0)) == 0
cluster.barrier()
print("all are there")
cluster.close()
assert pmix.PMIx_Finalize(None, ctypes.c_size_t(0)) == 0
""" % (int(PATIENCE) // 1000)

GONE = """
import os, time
import rdmatensor as rt
gate = os.environ["GATE"]
if os.environ["PMIX_RANK"] == "0":
    rt.Cluster().close()
    open(gate, "w").close()
else:
    while not os.path.exists(gate):
        time.sleep(0.01)
    # In which a launcher would end a job one of whose processes has ended as none should
    time.sleep(2)
    with rt.Cluster(timeout=5) as cluster:
        try:
            cluster.connect()
        except OSError as error:
            print(error)
"""


def script_under_mpirun(tmp_path, script):
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "-x", f"GATE={tmp_path}/gate",
         sys.executable, "-c", script],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_fence_beside_mpis(tmp_path):
    """In the order that cluster.md asks for"""
    assert script_under_mpirun(tmp_path, FENCES).count("all are there") == 2


def test_ends_before_others_have_come(tmp_path):
    """Which is no reason to end the job"""
    assert "a rank has ended before all had come" in script_under_mpirun(tmp_path, GONE)


def test_a_rank_that_is_killed(hosts):
    """The others end within the bound, with a sentence that names it"""
    path = hosts(range(7130, 7134))
    ranks = processes(4, lambda nr: {"RDMATENSOR_HOSTS": str(path), "RDMATENSOR_RANK": str(nr)},
                      "100000", "8000")
    # Rank 0 has said that all work: they are at it
    assert "12 of 12" in read_line(ranks[0])
    ranks[2].kill()
    killed = time.monotonic()
    said = [process.communicate(timeout=120)[1] for process in ranks]
    took = time.monotonic() - killed
    print(f"# {took:.1f} s after it was killed, with a timeout of 8 s")
    assert took < 30
    for nr in (0, 1, 3):
        assert ranks[nr].returncode == 1 and f"alltoall: rank {nr}: " in said[nr]
    assert any("rank 2 (" in line for line in said), said


def read_line(process):
    return process.stdout.readline()


def test_a_rank_that_does_not_come(join):
    store = Store()
    cluster = join(0, 2, store, timeout=1)
    for call in (cluster.connect, cluster.barrier, lambda: cluster[1]):
        with pytest.raises(TimeoutError, match="rank 1 has not come within the timeout"):
            call()
    check = cluster.check()
    assert not check and check.errors[0, 1] == errno.ETIMEDOUT and check.errors[1, 0] == errno.ENODATA
    assert "0 of 2 pairs of 2 ranks work:" in str(check) and "1->0" in str(check)
    with pytest.raises(IndexError, match="0 to 1"):
        cluster[2]


def test_more_are_absent_than_it_connects_at_a_time(join):
    """They keep it from none that is there"""
    store = Store()
    cluster = join(0, 5, store, timeout=6, connects=1)
    join(4, 5, store)
    with pytest.raises(TimeoutError, match="rank 1 has not come within .*; and 2 other ranks of 4"):
        cluster.connect()


def test_one_of_three_is_missing(join, in_threads):
    """What the others find of each other is known all the same"""
    store = Store()

    def run(rank):
        return join(rank, 3, store, timeout=4).check()

    for check in collect(in_threads, 2, run):
        assert check.errors[0, 1] == check.errors[1, 0] == 0
        assert check.errors[0, 2] == check.errors[1, 2] == errno.ETIMEDOUT
        assert (check.errors[2, :2] == errno.ENODATA).all()
        assert "no pair of rank 2 works" in str(check)


def test_leaves_and_comes_again(join):
    store = Store()
    stays = join(0, 2, store)
    goes = join(1, 2, store)
    goes.node["w"] = [1]
    stays.connect()
    assert stays[1]["w"].tolist() == [1]
    goes.close()
    assert not any(store.content[key] for key in store.content if key.endswith("rank.1"))
    with pytest.raises(FileNotFoundError, match="rank 1 .* has left"):
        stays.connect()
    again = join(1, 2, store)
    again.node["w"] = [2]
    stays.connect()
    assert stays[1]["w"].tolist() == [2]


def test_hosts_that_join_and_leave(hosts, monkeypatch, in_threads):
    hosts([7140])
    monkeypatch.setenv("RDMATENSOR_RANK", "0")
    with rt.Cluster(timeout=10, quiet=True) as first:
        assert first.size == 1 and first.check()
        hosts([7140, 7141])
        assert first.refresh() == 2
        monkeypatch.setenv("RDMATENSOR_RANK", "1")
        with rt.Cluster(timeout=10, quiet=True) as second:
            assert all(collect(in_threads, 2, lambda nr: (first, second)[nr].check()))
        hosts([7140, 0])
        assert first.refresh() == 2
        with pytest.raises(FileNotFoundError, match="rank 1 has left"):
            first.connect()
        hosts([7142, 0])
        with pytest.raises(OSError, match="another address for this rank") as error:
            first.refresh()
        assert error.value.errno == errno.ESTALE


def test_another_worker_at_its_address(offers, hosts, monkeypatch):
    """It is not taken for the rank, and the error says who it is"""
    path = hosts([7150, offers.port])
    monkeypatch.setenv("RDMATENSOR_RANK", "0")
    offers["w"] = np.zeros(4)
    with rt.Cluster(timeout=2, quiet=True) as cluster:
        for call in (lambda: cluster[1]["w"], cluster.connect, lambda: cluster[1].get_many(["w"]),
                     lambda: cluster[1].list(), lambda: cluster[1].generation(["w"])):
            with pytest.raises(OSError, match="a worker answers there that is of no cluster") as error:
                call()
            assert error.value.errno == errno.EADDRINUSE
        check = cluster.check()
        assert check.errors[0, 1] == errno.EADDRINUSE
        assert "another worker answers at the second's address" in str(check)
        other = subprocess.Popen(
            [sys.executable, "-c", "import rdmatensor as rt, sys\n"
             "c = rt.Cluster(quiet=True)\nprint(c.rank, flush=True)\nsys.stdin.read()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "RDMATENSOR_JOB": "another", "RDMATENSOR_RANK": "1",
                 "RDMATENSOR_HOSTS": str(hosts([7150, 7151]))})
        assert other.stdout.readline() == "1\n"
        cluster.refresh()
        with pytest.raises(OSError, match="a rank of another job answers there") as error:
            cluster.connect()
        assert error.value.errno == errno.EADDRINUSE
        other.communicate(timeout=60)
    assert path


def test_another_rank_at_its_address(hosts, monkeypatch):
    """Two that were told otherwise who is where"""
    hosts([7160, 7161, 7162])
    monkeypatch.setenv("RDMATENSOR_RANK", "1")
    with rt.Cluster(timeout=2, quiet=True) as other:
        other.node["w"] = np.ones(4)
        hosts([7160, 7162, 7161])
        monkeypatch.setenv("RDMATENSOR_RANK", "0")
        with rt.Cluster(timeout=2, quiet=True) as cluster:
            with pytest.raises(OSError, match="rank 1 of this job answers there") as error:
                cluster[2]["w"]
            assert error.value.errno == errno.EADDRINUSE


def test_another_worker_comes_in_its_place(address, hosts, monkeypatch):
    """Where a rank has been, and has died, nothing is got of who comes there next"""
    hosts([7170, 7171])
    monkeypatch.setenv("RDMATENSOR_RANK", "0")
    with rt.Cluster(timeout=60, quiet=True) as cluster:
        monkeypatch.setenv("RDMATENSOR_RANK", "1")
        with rt.Cluster(quiet=True) as other:
            other.node["w"] = np.ones(4)
            peer = cluster[1]
            assert peer["w"].sum() == cluster[1]["w"].sum() == 4
            # It waits when the channel goes down, and goes on with the next one
            cluster.node.timeout = 5
            waits, ended = asked_for(cluster, lambda: peer.get("w", step=1))
        with rt.Node(listen=f"{address}:7171") as stranger:
            stranger["w"] = np.zeros(4)
            stranger.offer("w", np.zeros(4), step=1)
            waits.join()
            assert ended[0].errno == errno.EADDRINUSE and ended[0].failed == {"w": errno.EADDRINUSE}
            # Its channel comes up with what is none of the cluster's, too
            assert cluster.node.connect(f"{address}:7171")["w"].sum() == 0
            cluster.node.timeout = 2
            for _ in range(2):
                for asked in (peer, cluster[1]):
                    with pytest.raises(OSError, match="of no cluster") as error:
                        asked["w"]
                    assert error.value.errno == errno.EADDRINUSE and error.value.failed == {"w": errno.EADDRINUSE}
        cluster.node.timeout = 60
        with rt.Cluster(quiet=True) as other:
            other.node["w"] = np.full(4, 2)
            assert peer["w"].sum() == cluster[1]["w"].sum() == 8


BULK = 1 << 18


def test_many_threads_while_others_take_its_place(address, hosts, monkeypatch, in_threads):
    """A rank that comes and goes, and another worker at its port in between: all is the rank's, beside
    bulk on the same channel"""
    hosts([7180, 7181])
    monkeypatch.setenv("RDMATENSOR_RANK", "0")
    over = threading.Event()
    with rt.Cluster(timeout=200, quiet=True) as cluster:
        monkeypatch.setenv("RDMATENSOR_RANK", "1")

        def get(nr):
            peer, count = cluster[1], 0
            while not over.is_set():
                if not nr:
                    # Long enough that the rank goes in the midst of it
                    assert peer["bulk"].sum() == BULK
                elif nr % 3 == 2:
                    # It does not wait: the rank may have offered nothing yet
                    assert not {"strange"} & {offered.name for offered in peer.list()}
                elif nr % 3:
                    assert sum(array.sum() for array in peer.get_many(["w", "v"]).values()) == 8
                else:
                    assert peer["w"].sum() == 4
                count += 1
            return count

        counts = []
        threads = threading.Thread(target=lambda: counts.extend(collect(in_threads, 8, get)))
        for turn in range(4):
            with rt.Cluster(quiet=True) as other:
                other.node["v"] = other.node["w"] = np.ones(4)
                other.node["bulk"] = np.ones(BULK)
                if not turn:
                    threads.start()
                served = other.node.stats()["served"]
                while other.node.stats()["served"] < served + 40:
                    assert threads.is_alive()
            with rt.Node(listen=f"{address}:7181") as stranger:
                stranger["strange"] = stranger["v"] = stranger["w"] = np.zeros(4)
                stranger["bulk"] = np.zeros(BULK)
                # Asked for the proof that it does not have
                while stranger.stats()["rx_messages"] < 3:
                    assert threads.is_alive()
        with rt.Cluster(quiet=True) as other:
            other.node["v"] = other.node["w"] = np.ones(4)
            other.node["bulk"] = np.ones(BULK)
            over.set()
            threads.join()
        print("#", counts)
        assert all(isinstance(count, int) and count for count in counts), counts


def test_comes_back_elsewhere_in_the_midst_of_a_get(join):
    """The get does not wait at the former address, whatever its timeout"""
    store = Grave()
    cluster, other = join(0, 2, store, timeout=60), join(1, 2, store)
    peer = cluster[1]
    other.node["w"] = np.ones(4)
    assert peer["w"].sum() == 4
    waits, ended = asked_for(cluster, lambda: peer.get("w", step=1))
    other.close()
    again = join(1, 2, store)
    again.node.offer("w", np.full(4, 2), step=1)
    waits.join()
    assert isinstance(ended[0], ConnectionResetError) and "has come back at another address" in str(ended[0])
    assert peer.get("w", step=1).sum() == cluster[1].get("w", step=1).sum() == 8


def test_many_threads_while_it_moves(join, in_threads):
    """Each get is of one life of the rank, and no life that is over is got from by a get begun after the next
    was met; beside bulk on the same channel"""
    store, lives, over = Grave(), 4, threading.Event()
    cluster = join(0, 2, store, timeout=200)

    def live(life):
        other = join(1, 2, store)
        other.node["w"] = np.full(4, life)
        other.node["bulk"] = np.full(BULK, life)
        return other

    def get(nr):
        peer, last, count = cluster[1], 0, 0
        while not over.is_set():
            try:
                array = peer["w" if nr else "bulk"]
            except ConnectionResetError as error:
                assert "has come back at another address" in str(error)
                continue
            assert array.min() == array.max() >= last
            last, count = array.max(), count + 1
        return count, last

    ends, other = [], live(1)
    gets = threading.Thread(target=lambda: ends.extend(collect(in_threads, 8, get)))
    gets.start()
    for life in range(1, lives + 1):
        served = other.node.stats()["served"]
        while other.node.stats()["served"] < served + 40:
            assert gets.is_alive()
        if life < lives:
            other.close()
            other = live(life + 1)
    over.set()
    gets.join()
    print("#", ends)
    assert all(isinstance(end, tuple) and end[0] for end in ends), ends
    assert max(last for _, last in ends) == lives


@pytest.mark.parametrize("leaves", [False, True])
def test_another_worker_comes_where_it_was(join, leaves):
    """A rank that has moved is found by a short get, and that it has left is told by one"""
    store = Store() if leaves else Grave()
    cluster, other = join(0, 2, store, timeout=60), join(1, 2, store)
    other.node["w"] = np.ones(4)
    assert cluster[1]["w"].sum() == 4
    former = cluster.address(1)
    other.close()
    # Less than what the stranger does not have would be waited for
    cluster.node.timeout = 3
    with rt.Node(listen=former) as stranger:
        stranger["w"] = np.zeros(4)
        if leaves:
            with pytest.raises(FileNotFoundError, match="has left"):
                cluster[1]["w"]
        else:
            again = join(1, 2, store)
            again.node["w"] = np.full(4, 2)
            assert cluster[1]["w"].sum() == 8 and cluster.address(1) != former


@pytest.mark.parametrize("generation", [False, True])
def test_leaves_in_the_midst_of_a_get(join, generation):
    """It ends at once, and says so, however long the timeout is; beside others' that wait for the same"""
    store = Store()
    cluster, other = join(0, 2, store, timeout=None), join(1, 2, store)
    peer = cluster[1]
    other.node["w"] = np.ones(4)
    assert peer["w"].sum() == 4
    # A step that never comes, or a group that never does
    get = (lambda: peer.generation(["never"])) if generation else (lambda: peer.get("w", step=1))
    gets = [asked_for(cluster, get) for _ in range(4)]
    other.close()
    for waits, ended in gets:
        waits.join()
        assert isinstance(ended[0], FileNotFoundError) and "rank 1 " in str(ended[0])
        assert "has left: go on without it" in str(ended[0])


def test_signals(join):
    """Ctrl-C ends a wait, and other signals do not"""
    cluster = join(0, 2, Store(), timeout=30)
    seen = []
    former = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        threading.Timer(1, lambda: signal.pthread_kill(threading.main_thread().ident,
                                                       signal.SIGINT)).start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            cluster.connect()
        assert time.monotonic() - begun < 20 and len(seen) > 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("goes", [False, True])
def test_a_signal_in_a_long_wait(join, goes):
    """Also one for what a rank that has come does not say, without a bound: beside others' gets, and when
    that rank has died"""
    store = Grave()
    cluster, other = join(0, 2, store, timeout=None), join(1, 2, store)
    other.node.offer("here", np.zeros(1))
    cluster.connect()
    over, got = threading.Event(), []

    def load():
        while not over.is_set():
            cluster[1]["here"]
            got.append(time.monotonic())

    beside = [] if goes else [threading.Thread(target=load)]
    for thread in beside:
        thread.start()
    if goes:
        threading.Timer(1, other.close).start()
    threading.Timer(3, lambda: signal.pthread_kill(threading.main_thread().ident,
                                                   signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cluster.check()
    ended = time.monotonic()
    over.set()
    for thread in beside:
        thread.join()
    assert ended - begun < 30
    assert goes or got[-1] > begun + 3


def test_a_store_that_fails(join):
    class Broken(Store):
        def check(self, keys):
            raise ConnectionError("the store has gone")

    cluster = join(0, 2, Broken(), timeout=5)
    with pytest.raises(OSError, match="rdmatensor/_given/rank.1") as error:
        cluster.connect()
    assert isinstance(error.value.__cause__, ConnectionError)


def test_a_store_that_is_interrupted(join):
    """Ctrl-C in a call of the store's is Ctrl-C"""
    class Interrupted(Store):
        def check(self, keys):
            raise KeyboardInterrupt

    cluster = join(0, 2, Interrupted(), timeout=5)
    with pytest.raises(KeyboardInterrupt):
        cluster.address(1)
    with pytest.raises(KeyboardInterrupt):
        cluster.connect()

    class Once(Store):
        def check(self, keys):
            if keys[0].endswith("2"):
                raise KeyboardInterrupt
            return super().check(keys)

    # That of one rank ends the call for all, however long others would be waited for
    cluster = join(0, 3, Once(), timeout=None)
    with pytest.raises(KeyboardInterrupt):
        cluster.connect()
    with pytest.raises(KeyboardInterrupt):
        cluster.check()


@pytest.mark.parametrize("error", [ConnectionError("the store has gone"), KeyboardInterrupt()])
def test_a_store_that_is_not_needed(join, address, error):
    """A rank that is where it was is found without it, and Ctrl-C in it is not lost"""
    class Failing(Grave):
        fails = False

        def check(self, keys):
            if self.fails:
                raise error
            return super().check(keys)

    store = Failing()
    cluster, peer = join(0, 2, store), None
    for call in (lambda: peer["w"], lambda: peer.list("w"), lambda: cluster.connect([1])):
        with join(1, 2, store, listen=f"{address}:7190") as other:
            other.node["w"] = np.ones(4)
            peer = peer or cluster[1]
            assert peer["w"].sum() == 4
        with join(1, 2, store, listen=f"{address}:7190") as other:
            other.node["w"] = np.full(4, 2)
            store.fails = True
            if isinstance(error, KeyboardInterrupt):
                with pytest.raises(KeyboardInterrupt):
                    call()
            else:
                call()
            store.fails = False
            assert peer["w"].sum() == 8


def test_a_store_that_is_interrupted_in_a_check(join, in_threads):
    """It is not for the next call to say so"""
    class Leaving(Store):
        leaves = False

        def check(self, keys):
            if self.leaves:
                raise SystemExit
            return super().check(keys)

    store = Leaving()
    clusters = [join(rank, 2, store, timeout=5) for rank in range(2)]
    store.leaves = True
    ends = collect(in_threads, 2, lambda rank: clusters[rank].check())
    assert all(isinstance(end, SystemExit) for end in ends), ends
    store.leaves = False
    assert all(cluster._store.error is None and cluster._store.interrupt is None
               for cluster in clusters)


def test_refresh_beside_a_check(join, in_threads):
    """The check's matrix is of those that there were"""
    store = Store()
    clusters = [join(rank, 2, store) for rank in range(2)]
    with clusters[0]._collective:
        with pytest.raises(OSError, match="a check or a barrier goes on") as error:
            clusters[0].refresh()
        assert error.value.errno == errno.EBUSY
    assert clusters[0].refresh() == 2
    assert all(collect(in_threads, 2, lambda rank: clusters[rank].check()))


def test_torchs_own_store(monkeypatch, in_threads):
    """As torch has it, which need not be there: its module is this one"""
    store = Store()
    made = []

    class TCPStore:
        def __init__(self, host, port, size, master, **options):
            # Without it torch's process group, which comes later, finds the port taken
            assert options["multi_tenant"]
            made.append((host, port, size, master, sorted(options)))

        def __getattr__(self, name):
            return getattr(store, name)

    torch = type(sys)("torch")
    torch.distributed = type(sys)("torch.distributed")
    torch.distributed.TCPStore, torch.distributed.is_initialized = TCPStore, lambda: False
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", torch.distributed)
    for name, value in (("WORLD_SIZE", "2"), ("MASTER_ADDR", "m"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)
    clusters = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        clusters.append(rt.Cluster(timeout=10, quiet=True))
    assert [made[rank][:4] for rank in range(2)] == [("m", 29500, 2, True), ("m", 29500, 2, False)]
    assert clusters[1].source == "torchrun"
    assert all(collect(in_threads, 2, lambda nr: clusters[nr].check()))
    for cluster in clusters:
        cluster.close()
    assert not any(store.content.values())


def test_arrays_outlive_it(join):
    store = Store()
    other = join(1, 2, store)
    other.node["w"] = np.arange(1000)
    cluster = rt.Cluster(rank=0, size=2, store=store, timeout=20, quiet=True)
    array = cluster[1]["w"]
    cluster.close()
    gc.collect()
    assert array.sum() == 499500
    with pytest.raises(ValueError, match="the cluster is closed"):
        cluster.connect()
    assert "closed" in repr(cluster)


def test_what_is_wrong(tmp_path, monkeypatch):
    for options, error, text in [
        ({}, FileNotFoundError, "start it by mpirun"),
        ({"source": "mpi"}, ValueError, "one of pmix"),
        ({"rank": 1}, ValueError, "given together"),
        ({"rank": 2, "size": 2, "store": Store()}, OSError, "rank 2 is none of 2 ranks"),
        ({"rank": 0, "size": 2}, OSError, "there is no store"),
        ({"source": "tf_config"}, OSError, "TF_CONFIG is not set"),
        ({"rank": 0, "size": 1, "store": Store(), "listen": "nowhere:x"}, OSError,
         "rank 0: address nowhere:x"),
        ({"rank": 0, "size": 1, "store": Store(), "listen": "192.0.2.1:7160"}, OSError, "rank 0: "),
    ]:
        with pytest.raises(error, match=text):
            rt.Cluster(**options)
    monkeypatch.setenv("RDMATENSOR_HOSTS", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="file of hosts .*No such file"):
        rt.Cluster()


TOOL = os.path.join(os.environ["LAB_BUILD"], "ulib/bin/rdmatensor")


def doctors(ranks, *args, by=()):
    """`doctor --cluster` by these ranks of the file: status, output and error of each"""
    hosts = os.environ["RDMATENSOR_HOSTS"]
    running = [subprocess.Popen([*by, TOOL, "doctor", "--cluster", hosts, *args], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "RDMATENSOR_RANK": str(rank)})
               for rank in ranks]
    said = [process.communicate(timeout=240) for process in running]
    return [(process.returncode, *texts) for process, texts in zip(running, said)]


def all_measured(first, size):
    """What the first of the doctors has printed as JSON, with a number for each pair"""
    found = json.loads(first[1])
    assert found["errors"] == [] and len(found["ranks"]) == size, first
    for key in "latency_us", "mb_per_s":
        assert [[value is None or value > 0 for value in row] for row in found[key]] == \
            [[True] * size] * size
        assert [[value is None for value in row] for row in found[key]] == \
            [[by == of for of in range(size)] for by in range(size)], found[key]
    assert found["not_measured"] == 0
    return found


def test_doctor_of_a_cluster_beside_bulk(hosts, offers, peer):
    """It measures all the same, and disturbs none of the threads that fetch meanwhile"""
    hosts([18561, 18562])
    offers["bulk"] = np.arange(1 << 17)
    over, got, wrong = threading.Event(), [0] * 4, []

    def fetch(nr):
        try:
            while not over.is_set():
                assert (peer["bulk"] == np.arange(1 << 17)).all()
                got[nr] += 1
        except BaseException as error:  # pylint: disable=broad-except
            wrong.append(error)

    threads = [threading.Thread(target=fetch, args=(nr,)) for nr in range(len(got))]
    for thread in threads:
        thread.start()
    try:
        first, other = doctors(range(2), "--json", "--timeout", "200")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    all_measured(first, 2)
    assert other == (0, "", ""), other
    assert not wrong and all(got), (wrong, got)
    print("# fetched meanwhile:", *got)


def test_doctor_of_a_cluster(hosts, monkeypatch):
    # An odd number: in each round one rank has nobody. As a user who may lock 8 MiB: nothing is
    # pinned beside the pools
    os.chmod("/dev/rdmatensor", 0o666)
    path = "/tmp/hosts-for-all"
    with open(path, "w", encoding="ascii") as copy:
        copy.write(hosts([18561, 18562, 18563]).read_text())
    monkeypatch.setenv("RDMATENSOR_HOSTS", path)
    first, *others = doctors(range(3), "--json", "--timeout", "200",
                             by=["prlimit", "--memlock=8388608", "setpriv", "--reuid", "65534",
                                 "--regid", "65534", "--clear-groups", "--inh-caps=-all",
                                 "--bounding-set=-all"])
    found = all_measured(first, 3)
    for key in "latency_us", "mb_per_s":
        every = sorted((value for row in found[key] for value in row if value),
                       reverse=key == "mb_per_s")
        assert found["usual_" + key] == pytest.approx(every[(len(every) - 1) // 4], rel=1e-3)
    # This machine may do other things: whether a pair is odd is not known before
    assert first[0] == bool(found["odd"])
    assert others == [(0, "", "")] * 2, others


def test_doctor_of_a_cluster_that_lacks_one(hosts):
    hosts([18561, 18562, 18563])
    began = time.monotonic()
    (status, text, _), other = doctors([0, 2], "--timeout", "12")
    assert time.monotonic() - began < 60
    assert status == 1 and "2 of 6 pairs of 3 ranks work" in text, text
    assert "no pair of rank 1" in text and "Nothing was measured" in text, text
    assert "odd" not in text and "median" not in text
    assert other[0] == 1 and "4 pairs do not work: rank 0 says which" in other[2], other


def test_doctor_of_a_cluster_whose_first_is_not_reached(hosts):
    path = hosts([18564, 18565])
    path.write_text("no-such.host.invalid\n" + path.read_text().split("\n")[1] + "\n")
    (status, text, error), = doctors([1], "--timeout", "4")
    assert status == 1 and "rank 0 says" not in error, (text, error)
    assert "1->0: the second's host name does not resolve at the first" in text, text
    # What reads JSON is given no text
    (status, text, error), = doctors([1], "--timeout", "4", "--json")
    assert (status, text) == (1, "") and "rank 0 is not reached" in error, (text, error)


def test_doctor_of_a_cluster_that_is_misused(hosts, address):
    hosts([18561])
    for args, words in ((["10.0.0.1"], "either --cluster"), (["--lanes", "2"], "no other settings"),
                        (["--timeout", "x"], "--timeout")):
        (status, _, error), = doctors([0], *args)
        assert status == 2 and words in error, error
    (status, _, error), = doctors([1])
    assert status == 1 and "rank" in error, error
    hosts([18561])
    # Of one there is no pair
    (status, text, _), = doctors([0])
    assert status == 0 and "No pair is odd" in text, text
