/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What was measured between all pairs of a cluster, as text or as JSON, and which of it is odd: far
 * from what most pairs have.
 */
#ifndef TOOL_DOCTOR_HEAT_H
#define TOOL_DOCTOR_HEAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/**
 * struct heat - all pairs of ranks
 * @size: number of ranks
 * @names: what each is called, and where it is
 * @latency_ns: of the fetch of 4096 bytes by rank from of rank to, at [from * size + to]: the
 *              median; 0: not measured, as on the diagonal
 * @bytes_per_s: of the fetch of 8 MiB, at the same place: the best; 0: not measured
 */
struct heat {
	unsigned int size;
	char (*names)[80];
	const uint64_t *latency_ns;
	const uint64_t *bytes_per_s;
};

/*
 * Tables of numbers, of up to 16 ranks, else a map of one sign a pair; then a line for each rank and
 * pair that is odd, or was not measured. @colours: on a terminal that has some. Return: how many are
 * named; negative: out of memory
 */
int heat_print(const struct heat *heat, bool colours, FILE *to);

/* The same as members of @object. Return: as above */
int heat_add(const struct heat *heat, struct json_object *object);

#endif
