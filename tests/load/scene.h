/* SPDX-License-Identifier: GPL-2.0 */
/* What the cases of the load matrix happen in: a driver, its peer, and who commands that */
#ifndef LOAD_SCENE_H
#define LOAD_SCENE_H

#include <stdio.h>
#include "worker.h"

#define MS UINT64_C(1000000)

/* Of the table "rows" that the peer exports */
#define ROW_BYTES 512
#define ROWS 20000
/* What both have in bulk */
#define LONG_BYTES (UINT64_C(4) << 20)
/* Rows of a tensor of as many bytes as SMALL_BYTES, which have so many each; and its name */
#define SQUARE 64
#define SQUARE_NAME "square"
/* Tensors of a packet each, and their names: see sleeps.c */
#define SHORTS 256
#define SHORT_BYTES 512
/* Entries of the peer's ring: so many channels that come and go that nobody hears of */
#define PEER_RING 64

/**
 * struct scene - what a case is given
 * @w: the driver, whose channel to the peer the loads use, too
 * @peer: HOST:PORT of the peer
 * @nobody: of a port where nobody listens
 * @orders: to the peer's keeper
 * @table: the peer's rows, opened
 * @at: LONG_BYTES of the driver's pool, for cases to fetch to
 * @own: LONG_BYTES, published under their length, for the peer's bulk
 * @lent: LONG_BYTES, for cases to publish
 * @page: 16 pages, for cases to export
 * @rows: ROWS rows to gather to
 * @ids: ROWS of them, in no order
 * @step: one that has not been used yet, each time it is taken
 */
struct scene {
	struct worker w;
	char peer[64];
	char nobody[64];
	int orders;
	uint32_t table;
	uint64_t at;
	uint64_t own;
	uint64_t lent;
	uint64_t page;
	uint64_t rows;
	uint64_t *ids;
	int64_t step;
};

void scene_open(struct scene *scene, const char *host);
void scene_close(struct scene *scene);
/* An order to the peer or its keeper, which has been carried out when this returns */
void scene_order(struct scene *scene, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The entry of a case: none within half a minute ends the program */
int scene_next(struct scene *scene, int type, uint64_t number, struct rdmatensor_cqe *cqe);
bool scene_rows_are(const struct scene *scene, uint64_t at, uint64_t nr);
void scene_table_open(struct scene *scene);

/* "row 17 of the table": its word @i */
static inline uint64_t row_word(uint64_t row, unsigned int i)
{
	return row * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static inline const char *short_name(unsigned int i, char name[16])
{
	snprintf(name, 16, "short.%u", i);
	return name;
}

/* Serves a scene: the keeper, and the peer as its child */
int peer_run(const char *ip);

#define PEER_PORT 7100
#define ORDERS_PORT 7200

#endif
