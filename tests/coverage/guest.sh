#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh SCRIPT [ARGUMENT...]: runs a suite in a guest that counts what is
# executed, and brings the counts of kmod/ out. They outlast the module.
gcov=/sys/kernel/debug/gcov

[ -d $gcov ] || { echo "Bail out! this kernel has no GCOV_KERNEL"; exit 1; }
"$@"
status=$?
# By room and name, of which there are equal ones: room@name.gcda
while read -r file; do
	to=${file##*/kmod/}
	cat "$file" >"$LAB_OUT/${to/\//@}" || status=1
done <<<"$(find $gcov -path '*/kmod/*/kmod/*.gcda')"
exit $status
