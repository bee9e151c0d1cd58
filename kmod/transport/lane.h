/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lanes: the queue pairs of a channel. The verbs half of struct rdmatensor_lane.
 */
#ifndef RDMATENSOR_LANE_H
#define RDMATENSOR_LANE_H

#include "transport/channel.h"

extern const struct rdmatensor_lane_ops rdmatensor_lane_verbs;

/**
 * rdmatensor_lane_open - make the queue pair and post its receives
 * @lane: its @id is bound to a device
 * @pd: the domain's
 *
 * Process context. Return: 0 or a negative errno, with nothing left behind.
 */
int rdmatensor_lane_open(struct rdmatensor_lane *lane, struct ib_pd *pd);

/**
 * rdmatensor_lane_close - end all that is in flight, and the queue pair
 *
 * When it returns every completion has been reported and the peer can write
 * nothing through this lane. Process context, bounded by the device. No-op on a lane
 * that was not opened.
 */
void rdmatensor_lane_close(struct rdmatensor_lane *lane);

#endif /* RDMATENSOR_LANE_H */
