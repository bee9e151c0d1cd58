/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loopback fetches: matched in the rendezvous table, copied by the CPU or shared.
 */
#ifndef RDMATENSOR_LOCAL_H
#define RDMATENSOR_LOCAL_H

#include "fetch/fetch.h"

/* Process context. As rdmatensor_request_submit(), without the channel */
int rdmatensor_local_submit(struct rdmatensor_core *core,
			    const struct rdmatensor_fetch_args *args);

/*
 * What a fetch has got that wanted the tensor itself is released. Process context. Return: 0,
 * -ENOENT: there is no such fetch, or it has not got it
 */
int rdmatensor_local_release(struct rdmatensor_core *core, u64 share_id);
/* All of them: the context is closing, its fetches have ended, and nobody else calls */
void rdmatensor_local_release_all(struct rdmatensor_core *core);

#endif /* RDMATENSOR_LOCAL_H */
