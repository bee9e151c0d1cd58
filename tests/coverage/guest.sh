#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh SCRIPT [ARGUMENT...]: runs a suite in a guest that counts what is
# executed, and brings the counts of kmod/ out. They outlast the module.
gcov=/sys/kernel/debug/gcov

[ -d $gcov ] || { echo "Bail out! this kernel has no GCOV_KERNEL"; exit 1; }
"$@"
status=$?
while read -r file; do
	cat "$file" >"$LAB_OUT/${file##*/}" || status=1
done <<<"$(find $gcov -path '*/kmod/*/kmod/*.gcda')"
exit $status
