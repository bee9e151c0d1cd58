// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "device.h"

static int run(const char *fmt)
{
	const char *netdev = getenv("LAB_NETDEV"), *device = getenv("LAB_RDMA_DEV");
	char command[128];
	int status;

	snprintf(command, sizeof(command), fmt, device ? device : "rxe0", netdev ? netdev : "d0");
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int device_del(void)
{
	return run("rdma link del %s");
}

int device_add(void)
{
	return run("rdma link add %s type rxe netdev %s");
}
