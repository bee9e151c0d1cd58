/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounds that those who plan work and those who post it have in common.
 */
#ifndef RDMATENSOR_LIMITS_H
#define RDMATENSOR_LIMITS_H

/* Destinations of one READ at most; a device may take fewer */
#define RDMATENSOR_PIECES_MAX 8

#endif /* RDMATENSOR_LIMITS_H */
