/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who waits for a peer, by the module's netlink events: the kernel's log, which says the same,
 * leaves out what is said often.
 */
#ifndef RDMATENSOR_TEST_WAITS_H
#define RDMATENSOR_TEST_WAITS_H

/* From here on that worker's events are counted */
void waits_begin(const char *worker);
/* How many of its CONNECTs have begun to wait */
int waits_nr(void);
/* Until one does, or until @ended can be read. Return: 1: it does; 0: it does not */
int waits_until(int ended);

#endif
