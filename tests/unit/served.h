/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A `serve` on the fake device, beside a test's own commands.
 */
#ifndef TESTS_SERVED_H
#define TESTS_SERVED_H

/* With these arguments, the last of which is NULL; it publishes @expect tensors */
void server_start_with(char *const *args, unsigned int expect);
/* By the end of a channel: it needs --exit-after 1. @expect: its exit code */
void server_end_with(int expect);
/* The same, of one that leaves @published tensors in a domain */
void server_end_leaving(int expect, unsigned int published);

#endif
