/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LOAD_FIGURES_H
#define LOAD_FIGURES_H

/* For the bench: one line of JSON. Each part takes at most that many seconds */
int figures_run(const char *peer, double seconds);

#endif
