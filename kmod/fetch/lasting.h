/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lasting tensors: what the contexts of a domain have published until it is withdrawn (uses 0). It
 * is offered by all of them, and stays when the one that has published it ends.
 */
#ifndef RDMATENSOR_LASTING_H
#define RDMATENSOR_LASTING_H

#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "core/core.h"
#include "core/tensor.h"
#include "rdmatensor.h"

struct rdmatensor_publication;

/**
 * struct rdmatensor_lasting - the lasting tensors of one domain
 * @rdv: where requests of all its contexts are matched with them
 * @offers: their publications, by number
 * @next: where the search for a number goes on
 * @nr: of @offers
 * @retire: takes back tensors of generations that have been replaced or withdrawn
 */
struct rdmatensor_lasting {
	struct rdmatensor_rendezvous *rdv;
	struct xarray offers;
	u32 next;
	atomic_t nr;
	struct work_struct retire;
};

/**
 * struct rdmatensor_lasting_info - description of one
 * @name: any bytes
 * @name_len: their number
 * @step_id: the step
 * @meta: its meta-data
 * @pool_id: pool that it is in; 0: in none that processes can name
 * @offset: where in it
 * @error: what it is offered as, instead of a tensor; 0: a tensor
 * @copied: it is in a tensor buffer
 * @withdrawing: a WITHDRAW waits for its last reader
 * @retired: its publisher has aborted the step: it is matched no more
 * @hidden: its generation has not been revealed
 */
struct rdmatensor_lasting_info {
	char name[RDMATENSOR_NAME_MAX];
	u16 name_len;
	s64 step_id;
	struct rdmatensor_meta meta;
	u32 pool_id;
	u64 offset;
	int error;
	bool copied;
	bool withdrawing;
	bool retired;
	bool hidden;
};

/* May sleep. Return: 0, -ENOMEM */
int rdmatensor_lasting_init(struct rdmatensor_lasting *lasting);
/* Withdraws all. No context is a member any more. May sleep */
void rdmatensor_lasting_destroy(struct rdmatensor_lasting *lasting);

/* A context begins and ends to offer them, before its first and after its last operation */
void rdmatensor_lasting_join(struct rdmatensor_lasting *lasting, struct rdmatensor_core *core);
/*
 * What waits for the last reader of a lasting tensor waits for other contexts' peers: a WITHDRAW
 * of @core that has not ended has no entry. Return: as rdmatensor_generations_leave()
 */
bool rdmatensor_lasting_leave(struct rdmatensor_lasting *lasting, struct rdmatensor_core *core);

/* Before it is offered. Process context. Return: 0, -ENOMEM, -EBUSY: too many */
int rdmatensor_lasting_add(struct rdmatensor_lasting *lasting, struct rdmatensor_publication *pub);
/* Its ->withdrawer is the caller's from here on. Any context up to softirq */
void rdmatensor_lasting_remove(struct rdmatensor_publication *pub);
/* Notes who has withdrawn it: ->withdrawer and what belongs to it. With @lasting's table's lock */
void rdmatensor_lasting_mark(struct rdmatensor_publication *pub, struct rdmatensor_core *core,
			     const u64 *user_data);
/* What @core has published of an aborted step is not offered any more. May sleep */
void rdmatensor_lasting_abort_step(struct rdmatensor_core *core, s64 step_id);

/* Describes the one after *@id, which is set to its number. False: there is none */
bool rdmatensor_lasting_next(struct rdmatensor_lasting *lasting, unsigned long *id,
			     struct rdmatensor_lasting_info *info);

#endif /* RDMATENSOR_LASTING_H */
