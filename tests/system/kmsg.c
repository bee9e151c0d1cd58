// SPDX-License-Identifier: GPL-2.0
#include "kmsg.h"
#include "harness.h"
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static char heard[64 << 10];
static int kmsg = -1;

void log_begin(void)
{
	if (kmsg >= 0)
		close(kmsg);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	CHECK(kmsg >= 0);
	lseek(kmsg, 0, SEEK_END);
	heard[0] = '\0';
}

static void log_read(void)
{
	size_t len = strlen(heard);
	ssize_t nr;

	/* One record each time; -EPIPE: some were lost */
	while ((nr = read(kmsg, heard + len, sizeof(heard) - len - 1)) > 0 || errno == EPIPE) {
		len += nr > 0 ? nr : 0;
		heard[len] = '\0';
		if (len > sizeof(heard) - 4096)
			break;
	}
}

int log_count(const char *what)
{
	const char *at = heard;
	int nr = 0;

	log_read();
	while ((at = strstr(at, what)) != NULL) {
		nr++;
		at++;
	}
	return nr;
}

void log_wait(const char *what)
{
	struct pollfd pfd = { .fd = kmsg, .events = POLLIN };

	while (!log_count(what))
		EQ(poll(&pfd, 1, 60000), 1);
}
