/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounds that those who plan work and those who post it have in common; and how what contexts and
 * their peers make the module allocate is bounded.
 */
#ifndef RDMATENSOR_LIMITS_H
#define RDMATENSOR_LIMITS_H

#include <linux/gfp.h>

/*
 * For all that a context has, and what a channel needs, which a peer may have opened. At the limit
 * of the memory cgroup it fails, and the call or the peer is refused; other allocations would have
 * a process of the group killed, which is not to be in a peer's power, nor a call's price
 */
#define RDMATENSOR_GFP_SPARING (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Destinations of one READ at most; a device may take fewer */
#define RDMATENSOR_PIECES_MAX 8

#endif /* RDMATENSOR_LIMITS_H */
