/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loopback fetches: matched in the rendezvous table, copied by the CPU or shared.
 */
#ifndef RDMATENSOR_LOCAL_H
#define RDMATENSOR_LOCAL_H

#include "fetch/fetch.h"

/**
 * rdmatensor_local_submit - fetch from the own context
 * @core: of the context
 * @args: checked; the references of args->pool and args->proxy are taken over on success. The
 *        CPU copies to the destination, so no proxy stands in for it
 *
 * Process context.
 *
 * Return: 0: a completion entry will come; an error of rdmatensor_fetch_init(); -ENOMEM; with
 * args->share -EAGAIN: there are RDMATENSOR_SHARES_MAX shares.
 */
int rdmatensor_local_submit(struct rdmatensor_core *core,
			    const struct rdmatensor_fetch_args *args);

/**
 * rdmatensor_local_release - release the tensor that a SHARED fetch holds
 * @core: of the context
 * @share_id: number of the share, as the process passed it
 *
 * Process context.
 *
 * Return: 0; -ENOENT: there is no such share.
 */
int rdmatensor_local_release(struct rdmatensor_core *core, u64 share_id);
/* Releases all shares of a context that is closing and whose fetches have ended */
void rdmatensor_local_release_all(struct rdmatensor_core *core);

#endif /* RDMATENSOR_LOCAL_H */
