#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# hostile.sh [--seconds N] [--seed N] [--memory KIND] [PATTERN]...: the peer that lies, as root in a
# guest of the lab; N seconds (10) of lies at random from that seed; with pools of that kind of
# memory (anon, memfd, dmabuf) instead of kernel pages. Last, how many connections and messages it
# has made.
set -u
. tests/lab/module.sh

while [[ ${1-} == --* ]]; do
	case $1 in
	--seconds) export HOSTILE_SECONDS=$2 ;;
	--seed) export HOSTILE_SEED=$2 ;;
	--memory) export HOSTILE_MEMORY=$2 ;;
	*)
		echo "usage: hostile.sh [--seconds N] [--seed N] [--memory KIND] [PATTERN]..." >&2
		exit 2
		;;
	esac
	shift 2
done

load
"$LAB_BUILD"/fuzz/hostile "$@" || failed=1
unload
exit "$failed"
