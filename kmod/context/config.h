/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters: what the table in rdmatensor_params.h means to a context.
 */
#ifndef RDMATENSOR_CONFIG_H
#define RDMATENSOR_CONFIG_H

#include "transport/channel_params.h"

struct rdmatensor_start;

/**
 * rdmatensor_config_start - check START, fill in defaults
 * @start: in: from the process; out: every field has the value that holds, or
 *         @cause says which one is out of range and what the range is
 * @params: the same, as a channel needs it; max_requests is not set
 *
 * Return: 0, -EINVAL.
 */
int rdmatensor_config_start(struct rdmatensor_start *start,
			    struct rdmatensor_channel_params *params);

/* Contexts that may be started on this host */
u32 rdmatensor_config_max_contexts(void);
/* Whether pools of kernel pages that are made from now on count as locked memory */
bool rdmatensor_config_memlock(void);

#endif /* RDMATENSOR_CONFIG_H */
