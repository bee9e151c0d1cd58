/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LOAD_SLEEPS_H
#define LOAD_SLEEPS_H

/* With the peer at @host. Return: how many cases have failed */
int sleeps_run(const char *host);

#endif
