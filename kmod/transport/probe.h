/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes of a channel's peer, and of its own queue pairs.
 */
#ifndef RDMATENSOR_PROBE_H
#define RDMATENSOR_PROBE_H

#include <linux/types.h>

struct rdmatensor_channel;
struct rdmatensor_channel_params;
struct rdmatensor_lane;

/* Probes of a queue pair that may be in flight; each has a place in the send queue */
#define RDMATENSOR_PROBES 4
/* Places of a send queue beyond queue_depth: the probes', and the drain's */
#define RDMATENSOR_SENDQ_MORE (RDMATENSOR_PROBES + 1)

/* So long a queue pair may complete nothing of what is posted before it is probed, in jiffies */
unsigned long rdmatensor_probe_pause(const struct rdmatensor_channel_params *params);

/* Of a channel that has its lanes */
void rdmatensor_probe_init(struct rdmatensor_channel *channel);
/* It is UP: its peer is probed from now on. With its lock */
void rdmatensor_probe_begin(struct rdmatensor_channel *channel);
/* It is CLOSING, and nothing completes any more. When it returns no timer runs. Process context */
void rdmatensor_probe_end(struct rdmatensor_channel *channel);
/* With the lock, before what was posted to @lane takes a place: it is watched until it completes */
void rdmatensor_probe_watch(struct rdmatensor_lane *lane);

#endif /* RDMATENSOR_PROBE_H */
