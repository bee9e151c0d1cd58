#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--seconds N] [--seed N] [--threads N]: the stress, as root in a guest of the
# lab with several processors.
set -u
. tests/lab/module.sh

load
"$LAB_BUILD"/stress/stress "$@" || failed=1
unload
exit "$failed"
