/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TOOL_DOCTOR_CLUSTER_H
#define TOOL_DOCTOR_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * As a rank of the cluster whose hosts are in @file: tries all pairs, and if they all work, measures
 * them; rank 0 prints, as JSON with @json. @timeout_ns: bound on each step. Return: EXIT_OK: all
 * pairs work, and none is odd; else EXIT_FAILED
 */
int doctor_cluster(const char *file, uint64_t timeout_ns, bool json);

#endif
