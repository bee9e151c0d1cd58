#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [OPTION...]: the tool in rough hands, as root in a guest with one node; OPTIONs are
# those of main.c. Afterwards no context is left, and the module can be unloaded.
set -u
. tests/lab/module.sh

load
"$LAB_BUILD"/rough/rough "$@" "$LAB_BUILD/ulib/bin" "$LAB_BUILD/rough/fail.so" "$LAB_IP" || failed=1

# What a killed process had ends with it
check "no context is left" eval '[[ $("$LAB_BUILD/ulib/bin/rdmatensor" show contexts -j) == "[]" ]]'
check "nothing is left in /tmp/rough but its own" eval \
	'[[ $(find /tmp/rough -mindepth 1 ! -name output -printf "%f\n" | sort | xargs) == "graph model" ]]'
unload
exit "$failed"
