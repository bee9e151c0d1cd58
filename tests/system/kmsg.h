/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's log, which says that somebody waits.
 */
#ifndef RDMATENSOR_TEST_KMSG_H
#define RDMATENSOR_TEST_KMSG_H

/* From here on it is heard */
void log_begin(void);
/* How often that was said */
int log_count(const char *what);
/* Until it is */
void log_wait(const char *what);

#endif
