# SPDX-License-Identifier: GPL-2.0
"""Models: by Python and by the tool, on either side."""

import json
import os
import subprocess

import numpy as np
import pytest
import rdmatensor as rt
from rdmatensor import _model

BUILD = os.environ["LAB_BUILD"]
TOOL = f"{BUILD}/ulib/bin/rdmatensor"
MODEL = f"{BUILD}/demo/model.safetensors"


def tensors_of(path):
    """By numpy alone"""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: data[8 + length + entry["data_offsets"][0] : 8 + length + entry["data_offsets"][1]]
        for name, entry in header.items()
    }


def same(got, path):
    want = tensors_of(path)
    assert got.keys() == want.keys() and len(want) > 50
    assert all(got[name].tobytes() == want[name] for name in want)


def test_dict(address):
    model = {
        "a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.int64(7) * np.ones((), "i8"),
        "c": np.empty((0, 4), "f2"), "d": np.arange(3, dtype="u1"),
        "e": np.ones(4, np.dtype("u2", metadata={"rdmatensor": "bfloat16"})),
    }
    with rt.serve(model, f"{address}:0") as node:
        got = rt.load(f"{address}:{node.port}")
    assert list(got) == list(model)
    for name, array in model.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        assert (got[name] == array).all()
    assert got["e"].dtype.metadata == {"rdmatensor": "bfloat16"}


def test_parts(address):
    model = {
        "w": np.arange(600, dtype="f4").reshape(20, 30), "b": np.arange(20, dtype="i8"),
        "e": np.ones((8, 4), np.dtype("u2", metadata={"rdmatensor": "bfloat16"})),
    }
    with rt.serve(model, f"{address}:0") as node:
        peer = f"{address}:{node.port}"
        got = rt.load(peer, slices={"w": np.s_[:, 10:20], "e": np.s_[2]})
        with pytest.raises(KeyError, match="nosuch"):
            rt.load(peer, slices={"nosuch": np.s_[0:1]})
        with pytest.raises(OSError, match=r"\[20\]"):
            rt.load(peer, slices={"b": np.s_[15:25]})
    assert list(got) == list(model)
    assert (got["w"] == model["w"][:, 10:20]).all() and (got["b"] == model["b"]).all()
    assert got["e"].shape == (4,) and got["e"].dtype.metadata == {"rdmatensor": "bfloat16"}


def test_file_to_python(address):
    with rt.serve(MODEL, f"{address}:0") as node:
        same(rt.load(f"{address}:{node.port}"), MODEL)


def test_file_to_the_tool(address, tmp_path):
    with rt.serve(MODEL, f"{address}:0") as node:
        subprocess.run([TOOL, "fetch", f"{address}:{node.port}", "--all", "-o",
                        tmp_path / "got"], check=True, timeout=60)
    same({name: np.frombuffer(data, "u1") for name, data in tensors_of(tmp_path / "got").items()},
         MODEL)


def test_the_tool_to_python(address, tmp_path):
    with open(tmp_path / "said", "wb") as said:
        server = subprocess.Popen([TOOL, "serve", MODEL, "--listen", f"{address}:7123"],
                                  stdout=said)
    try:
        same(rt.load(f"{address}:7123"), MODEL)
    finally:
        server.terminate()
        server.wait()


def file_of(dtype, shape, offsets):
    """Of one tensor, whose bytes are not there"""
    header = json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(16)


@pytest.mark.parametrize("content, words", [
    (b"", "safetensors"),
    (b"12345678", "safetensors"),
    ((100).to_bytes(8, "little") + b"{}", "a header of 100 bytes"),
    ((2).to_bytes(8, "little") + b"[]", "no object"),
    ((2).to_bytes(8, "little") + b"{x", None),
    ((10).to_bytes(8, "little") + b'{"a": {}} ', "tensor 'a': no dtype"),
    ((61).to_bytes(8, "little") +
     b'{"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}  ', "not in the file"),
    (file_of("U8", [2.0, 3], [0, 0]), "tensor 'a': no dtype"),
    (file_of("U8", [-2, -3], [0, 6]), "tensor 'a': no dtype"),
    (file_of("F4", [-3], [0, 0]), "tensor 'a': no dtype"),
    (file_of("F4", ["a"], [0, 0]), "tensor 'a': no dtype"),
    (file_of("U8", [1], [0.0, 1]), "tensor 'a': no dtype"),
    (file_of("X1", [1] * 17, [0, 0]), "tensor 'a': no array has the shape"),
    (file_of("F32", [0, 1 << 62], [0, 0]), "tensor 'a': no array has the shape"),
    pytest.param((5000).to_bytes(8, "little") + b"[" * 5000, "no JSON", id="deep"),
])
def test_files_that_are_none(address, tmp_path, content, words):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        rt.serve(path, f"{address}:0")


def test_what_is_no_file(address, tmp_path):
    with pytest.raises(FileNotFoundError, match="nosuch"):
        rt.serve(tmp_path / "nosuch", f"{address}:0")
    with pytest.raises(IsADirectoryError, match="rdmatensor serve"):
        rt.serve(tmp_path, f"{address}:0")


def test_types_that_only_a_header_has(address, tmp_path):
    header = json.dumps({"w": {"dtype": "F8_E8M0", "shape": [2, 4], "data_offsets": [0, 8]}})
    header = header.encode() + b" " * (-len(header) % 8)
    content = len(header).to_bytes(8, "little") + header + b"12345678"
    (tmp_path / "model").write_bytes(content)
    with rt.serve(tmp_path / "model", f"{address}:0") as node:
        assert rt.load(f"{address}:{node.port}")["w"].tobytes() == b"12345678"
        subprocess.run([TOOL, "fetch", f"{address}:{node.port}", "--all", "-o",
                        tmp_path / "got"], check=True, timeout=60)
    assert (tmp_path / "got").read_bytes() == content


@pytest.mark.parametrize("index", [
    b"[]", b'{"a": 1}', b'{"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}}',
    b'{"a": {"dtype": 5, "shape": [1], "data_offsets": [0, 1]}}',
    b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [2, 1]}}', b'{"a',
    pytest.param(b"[" * 5000, id="deep"),
    b'{"a": {"dtype": "F32", "shape": [0, 4611686018427387904], "data_offsets": [0, 0]}}',
])
def test_peers_that_lie(address, index):
    with rt.Node(listen=f"{address}:0") as node:
        node.offer(rt.INDEX, np.frombuffer(index, "u1"))
        with pytest.raises(ValueError):
            rt.load(f"{address}:{node.port}", timeout=2)


def test_what_no_model_has(address):
    for model, words in (({"__metadata__": np.zeros(3)}, "call it something else"),
                         ({"a": np.zeros(3), "t": np.zeros((3, 4)).T}, "tensor 't': .*holes")):
        with pytest.raises(ValueError, match=words):
            rt.serve(model, f"{address}:0")


def test_the_index_has_its_part_of_the_timeout(address, monkeypatch):
    nodes, times = [], iter([100.0, 107.5])
    with rt.serve({"a": np.arange(3)}, f"{address}:0") as node:
        real = _model.Node
        monkeypatch.setattr(_model, "Node", lambda **how: nodes.append(real(**how)) or nodes[0])
        monkeypatch.setattr(_model.time, "monotonic", lambda: next(times, 107.5))
        assert rt.load(f"{address}:{node.port}", timeout=10)["a"].tolist() == [0, 1, 2]
    assert nodes[0].timeout == 2.5


def test_no_model_is_there(address, monkeypatch):
    """It says so early, and waits: the server may still read it"""
    monkeypatch.setattr(_model, "_WARNING_AFTER", 0.3)
    with rt.Node(listen=f"{address}:0") as node:
        node["w"] = np.arange(3)
        peer = f"{address}:{node.port}"
        with pytest.raises(TimeoutError, match="is up and offers no model"):
            rt.load(peer, timeout=0.2)
        # Whoever offers it then is heard
        header = json.dumps({"w": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}})

        def offer(*_args, **_how):
            node.offer(rt.INDEX, np.frombuffer(header.encode(), "u1"))

        monkeypatch.setattr(_model.warnings, "warn", offer)
        assert rt.load(peer, timeout=60)["w"].tolist() == [0, 1, 2]
