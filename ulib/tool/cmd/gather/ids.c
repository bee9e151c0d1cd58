// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "ids.h"
#include "sides.h"
#include "tool/common/message.h"

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	return b ? common_divisor(b, a % b) : a;
}

/* Each row once and none beside another, so that neither joining nor a cache saves a READ */
static void choose_apart(uint64_t *ids, uint64_t nr, uint64_t rows, uint64_t first)
{
	uint64_t half = rows / 2, step = 2654435761u % half, i;

	while (common_divisor(step, half) != 1)
		step++;
	for (i = 0; i < nr; i++)
		ids[i] = (first + i * step) % half * 2;
}

static uint64_t choose_one(enum gather_kind kind, uint64_t rows, uint64_t *state)
{
	double u = (double)(next_random(state) >> 11) / 9007199254740992.0;

	/* Hot rows are not neighbours */
	if (kind == KIND_POWER)
		return (uint64_t)(pow(u, 4) * (double)rows) * 2654435761u % rows;
	return (uint64_t)(u * (double)rows);
}

int ids_choose(const struct gathering *gathering, uint64_t rows, uint64_t *ids)
{
	uint64_t nr = (uint64_t)gathering->ids, state = UINT64_C(88172645463325252), i;
	enum gather_kind kind = gathering->kind;
	int64_t slot;

	if (kind == KIND_APART && nr > rows / 2)
		return failed("gather: --kind apart of %" PRIu64 " ids needs %" PRIu64
			      " rows, and the table has %" PRIu64 ": lower --ids",
			      nr, 2 * nr, rows);
	for (slot = 0; slot < gathering->depth; slot++, ids += nr) {
		if (kind == KIND_APART) {
			choose_apart(ids, nr, rows, next_random(&state) % rows);
			continue;
		}
		for (i = 0; i < nr; i++)
			ids[i] = choose_one(kind, rows, &state);
		if (kind == KIND_SORTED)
			qsort(ids, nr, sizeof(*ids), compare);
	}
	return EXIT_OK;
}
