#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [PYTEST-ARGUMENT...]: the tests of the Python package, as root in a guest of the lab.
set -u
. tests/lab/module.sh

export RDMATENSOR_LIBRARY=$LAB_BUILD/ulib/lib/librdmatensor.so PYTHONPATH=$PWD/ulib/python
export PYTHONDONTWRITEBYTECODE=1 TEST_ALLOCATOR=$LAB_BUILD/python/allocator.so

load
/usr/bin/python3 -m pytest -q -s -p no:cacheprovider --basetemp=/tmp/pytest tests/python "$@" || failed=1
unload
exit "$failed"
