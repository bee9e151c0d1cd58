/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A table of three owners: the reader itself and two that listen. What is in a row follows
 * from its number, so that each that is read can be checked.
 */
#ifndef RDMATENSOR_TEST_OWNERS_H
#define RDMATENSOR_TEST_OWNERS_H

#include "harness.h"

#define OWNERS 3
#define ROW 512
#define BATCH_MAX 50000
#define WAIT_MS 60000

/* Owner 0 is the reader */
extern struct side owners[OWNERS];
static struct side *const reader = &owners[0];
/* Of each owner: its export, the reader's channel to it, its rows and where they are */
extern uint32_t exports[OWNERS];
extern uint32_t channels[OWNERS];
extern uint64_t first_row[OWNERS + 1];
extern uint64_t rows_at[OWNERS];

/* Below @most, the same ones each time */
uint64_t random_below(uint64_t most);
/* @bytes rounded up to whole pages */
uint64_t pages(uint64_t bytes);

void row_fill(unsigned char *at, uint64_t row, unsigned int bytes);
int row_is(const unsigned char *at, uint64_t row, unsigned int bytes);

/*
 * @rows of @row_bytes, every @stride, over all owners; the reader has room for @ids of them,
 * and four lanes to each owner
 */
void owners_open(uint64_t rows, unsigned int row_bytes, uint64_t stride, uint64_t ids);
/* The table of all owners. @open: NULL, or what else there is to say */
uint32_t owners_table(struct rdmatensor_table_open *open);
/* Rows of @row_bytes into the reader's pool at @at. Return: the result */
int owners_gather(uint32_t table, const uint64_t *ids, uint64_t nr, uint64_t at,
		  unsigned int row_bytes, struct rdmatensor_cqe *cqe);
/* The test fails if one of the rows there is not that of its id */
void owners_check(const uint64_t *ids, uint64_t nr, uint64_t at, unsigned int row_bytes);
/*
 * @nr rows in batches of @batch, of ids at random with repeats, each one checked.
 * @before, @after: around each batch, NULL: nothing
 */
void owners_many(uint64_t nr, uint64_t batch, void (*before)(void), void (*after)(void));

#endif /* RDMATENSOR_TEST_OWNERS_H */
