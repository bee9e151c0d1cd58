/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fetches from oneself: matched in the rendezvous table, copied by the CPU.
 */
#ifndef RDMATENSOR_LOCAL_H
#define RDMATENSOR_LOCAL_H

#include "fetch.h"

/* Process context. As rdmatensor_request_submit(), without the channel */
int rdmatensor_local_submit(struct rdmatensor_exchange *exchange,
			    const struct rdmatensor_fetch_args *args);

#endif /* RDMATENSOR_LOCAL_H */
