// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <sys/ioctl.h>

#include "internal.h"

int rt_ioctl(struct rdmatensor *rt, unsigned long request, void *arg)
{
	return ioctl(rt->fd, request, arg) < 0 ? -errno : 0;
}
