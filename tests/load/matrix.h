/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LOAD_MATRIX_H
#define LOAD_MATRIX_H

/*
 * All cells of the table in matrix.c, with a peer that is `load peer HOST`. @loads: of the
 * loads that are named, NULL: of all. Return: how many failed
 */
int matrix_run(const char *host, char *const *loads);
/* Return: 0: all of @loads are columns of the table; 1: one is none, and a case that fails is printed */
int matrix_knows(char *const *loads);

#endif
