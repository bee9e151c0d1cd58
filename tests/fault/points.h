/* SPDX-License-Identifier: GPL-2.0 */
/* The module's own points of failure: debugfs' fail_rdmatensor */
#ifndef RDMATENSOR_TEST_POINTS_H
#define RDMATENSOR_TEST_POINTS_H

/* The point after the next @n that is come to fails, once */
void point_set(int n);
/* All points after the next @n that are come to fail */
void points_set_from(int n);
/* Each @n-th point that is come to fails */
void points_set_each(int n);
/* No point fails any more. Return: whether the one of point_set() has */
int point_hit(void);

#endif
