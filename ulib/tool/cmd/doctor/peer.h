/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor tries with a peer.
 */
#ifndef TOOL_DOCTOR_PEER_H
#define TOOL_DOCTOR_PEER_H

struct doctor;

/* Address, route, channel, a fetch of one kilobyte and one of several packets */
void doctor_try_peer(struct doctor *doctor);

#endif
