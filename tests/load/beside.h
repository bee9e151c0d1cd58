/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LOAD_BESIDE_H
#define LOAD_BESIDE_H

/* Cases, with a peer that is `rdmatensor perf --server`. Return: how many failed */
int beside_run(const char *peer);

#endif
