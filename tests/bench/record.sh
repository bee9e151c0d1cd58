# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# For the bench's scripts in a guest: how they end, and how they write a measurement, one line each,
# into $raw. Sourced, never run.

die() {
	echo "bench: $*" >&2
	exit 1
}

# record NAME ours|peer VALUE. A measurement that failed has said why, in a subshell that could not
# end this
record() {
	[ -n "$3" ] || die "no value of $1 $2"
	echo "$1 $2 $3" | tee -a "$raw"
}
