// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <unistd.h>
#include "harness.h"
#include "points.h"

static void attribute(const char *name, int value)
{
	char path[80], text[16];
	int fd, len;

	snprintf(path, sizeof(path), "/sys/kernel/debug/fail_rdmatensor/%s", name);
	len = snprintf(text, sizeof(text), "%d", value);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	EQ(write(fd, text, len), len);
	close(fd);
}

static int attribute_value(const char *name)
{
	char path[80], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/fail_rdmatensor/%s", name);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return atoi(text);
}

static void points(int interval, int space, int times)
{
	attribute("interval", interval);
	attribute("space", space);
	attribute("times", times);
	attribute("probability", 100);
}

void point_set(int n)
{
	points(1, n, 1);
}

void points_set_from(int n)
{
	points(1, n, -1);
}

void points_set_each(int n)
{
	points(n, 0, -1);
}

int point_hit(void)
{
	int hit = attribute_value("times") == 0;

	attribute("probability", 0);
	return hit;
}
