#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# calls.sh [--seed N] --ops N | --seconds N: the fuzzer of the ABI, as root in a guest
# of the lab. Receives must always be there: rnr_retry=0 shows it.
set -u
. tests/lab/module.sh

load rnr_retry=0
"$LAB_BUILD"/fuzz/calls "$@" || failed=1
unload
exit "$failed"
