/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools of memory that is there already: all of one is one region, and tensors are at any
 * offset of it.
 */
#ifndef RDMATENSOR_TEST_WHOLE_H
#define RDMATENSOR_TEST_WHOLE_H

#include "harness.h"

#define PAGE 4096u
#define PAGES 700u
#define BYTES (PAGES * PAGE)
#define TENSOR 100003u

/* Fails the test if it cannot */
unsigned char *map(uint64_t bytes, int prot, int flags, int fd);
unsigned char *map_private(uint64_t bytes);
/* Of @side's pool. The operation's, or the fetch's, result */
int publish_at(struct side *side, const char *name, uint64_t at, uint64_t bytes);
int fetch_at(struct side *side, uint32_t channel, const char *name, uint64_t at,
	     uint64_t bytes);
/*
 * From any byte of @a's pool, which is at @from, to any byte of @b's, at @to; over pages and
 * slices, and not a byte beyond it. No byte is copied
 */
void move(struct pair *p, unsigned char *from, unsigned char *to);
/* Memory that others have had is in single pages, and is put together for the asking */
void put_together(void);
/* mmap() of @side's only pool is refused: the process has its memory already */
void is_not_mapped(struct side *side);
/*
 * Pages that are pinned on this machine, by whomever; nobody else does. With several processors
 * the counters are each one's until they are asked to add them up
 */
long pages_pinned(void);
/* Pages are unpinned by a work item: within 10 s */
void pages_fall_to(long nr);

#endif /* RDMATENSOR_TEST_WHOLE_H */
