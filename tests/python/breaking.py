# SPDX-License-Identifier: GPL-2.0
"""Signals whose handlers raise, and what becomes of the memory that had come by then.

One raises at each line in turn, not within a line, and not once more while what the first one left
is cleaned up.
"""

import gc
import sys

from rdmatensor._ffi import ffi


class Noting:
    """A library that notes what memory comes by one of its calls: find() has it of arguments and result"""

    def __init__(self, lib, name, find):
        self._lib, self._name, self._find = lib, name, find
        self.came = []

    def __getattr__(self, name):
        call = getattr(self._lib, name)
        if name != self._name:
            return call

        def notes(*args):
            result = None
            try:
                result = call(*args)
                return result
            finally:
                # Also when a signal's handler raises as soon as the call has returned
                self.came += [int(ffi.cast("uintptr_t", data)) for data in self._find(args, result)
                              if data is not None]

        return notes


class Raising:
    """A library, one of whose calls is followed by a signal whose handler raises"""

    def __init__(self, lib, name, err=0):
        self._lib, self._name, self._err = lib, name, err

    def __getattr__(self, name):
        call = getattr(self._lib, name)
        if name != self._name:
            return call

        def raises(*args):
            assert call(*args) == self._err
            raise KeyboardInterrupt

        return raises


def broken_at_each_line(noting, run):
    """Runs it with KeyboardInterrupt at the first line once memory has come, then at the second, and
    so on, until it ends before. A finalizer's errors are nobody's: not there. Yields after each"""
    left = 0

    def line(frame, event, _arg):
        nonlocal left
        if event == "line" and noting.came:
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return line

    def call(frame, _event, _arg):
        ours = "/rdmatensor/_" in frame.f_code.co_filename
        return line if ours and frame.f_code.co_name != "__del__" else None

    former = sys.gettrace()
    for nr in range(1000):
        left = nr
        noting.came.clear()
        sys.settrace(call)
        try:
            run()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(former)
        gc.collect()
        yield nr
        if left >= 0:
            break


def notes_what_is_given_back(node, monkeypatch):
    """Nothing is, from here on. Return: what has been given back since it was called last"""
    handle, given = node._handle, []
    monkeypatch.setattr(handle, "flush", lambda: given.extend(
        iter(lambda: handle.idle.popleft() if handle.idle else None, None)))

    def given_back():
        handle.flush()
        said, given[:] = given[:], []
        return said

    given_back()
    return given_back
