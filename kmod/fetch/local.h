/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loopback fetches: matched in the rendezvous table, copied by the CPU or shared.
 */
#ifndef RDMATENSOR_LOCAL_H
#define RDMATENSOR_LOCAL_H

#include "fetch/fetch.h"

/* As rdmatensor_request_submit(), without a channel. Process context */
int rdmatensor_local_submit(struct rdmatensor_core *core,
			    const struct rdmatensor_fetch_args *args);

/*
 * Releases the tensor that a SHARED fetch holds. Process context. Return: 0; -ENOENT: there
 * is no such share
 */
int rdmatensor_local_release(struct rdmatensor_core *core, u64 share_id);
/* Releases all shares of a context that is closing and whose fetches have ended */
void rdmatensor_local_release_all(struct rdmatensor_core *core);

#endif /* RDMATENSOR_LOCAL_H */
