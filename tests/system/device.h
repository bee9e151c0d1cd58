/* SPDX-License-Identifier: GPL-2.0 */
/* The guest's RDMA device goes, or comes back */
#ifndef RDMATENSOR_TEST_DEVICE_H
#define RDMATENSOR_TEST_DEVICE_H

/* Return: 0, when that is done */
int device_del(void);
int device_add(void);

#endif
