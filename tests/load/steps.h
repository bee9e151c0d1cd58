/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LOAD_STEPS_H
#define LOAD_STEPS_H

/*
 * Steps between two contexts that listen at IP, of one tensor of so many bytes: without
 * copies, and copied and kept, in turn, @nr of each. One line of JSON. Return: 0
 */
int steps_run(const char *ip, const char *bytes, const char *nr);

#endif
