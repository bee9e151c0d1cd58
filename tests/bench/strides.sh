#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# strides.sh ROUNDS: what lies with gaps between, on one node: moved by its strides, beside moved whole
# and copied by the processor. Lines as guest.sh's, into LAB_OUT/raw-strides.
set -u
. tests/bench/record.sh

insmod "$LAB_BUILD/kmod/$LAB_KERNEL/rdmatensor.ko" || die "insmod failed"
timeout 900 "$LAB_BUILD/bench-strides" "$LAB_IP" "${1:-5}" | tee "$LAB_OUT/raw-strides"
((PIPESTATUS[0] == 0)) || die "it failed"
rmmod rdmatensor || die "rmmod failed"
