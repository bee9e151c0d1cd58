// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager.h"
#include "message.h"

/* The first descriptor that a process gets from its manager */
#define FIRST_FD 3
/* How long it may take to close a descriptor */
#define PATIENCE_US 10000000

/* ---- the library, and what it says where nobody listens: 0 ------------------- */

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>

_Static_assert(FIRST_FD == SD_LISTEN_FDS_START, "they begin there");

/* Return: > 0: told; 0: nobody listens; a negative errno. @nr: of @fd, 0 or 1 */
static int tell(const char *text, const int *fd, unsigned int nr)
{
	return sd_pid_notify_with_fds(0, 0, text, fd, nr);
}

/* Return: as tell(), when all that was told has been heeded */
static int await_heeded(void)
{
	return sd_notify_barrier(0, PATIENCE_US);
}

static int take_kept(char ***names)
{
	return sd_listen_fds_with_names(1, names);
}

#else

static int tell(const char *text, const int *fd, unsigned int nr)
{
	(void)text;
	(void)fd;
	(void)nr;
	return 0;
}

static int await_heeded(void)
{
	return 0;
}

static int take_kept(char ***names)
{
	(void)names;
	return 0;
}

#endif

/* ---- what is made of it ------------------------------------------------------ */

bool manager_is_there(void)
{
	return MANAGER_BUILT && getenv("NOTIFY_SOCKET");
}

static void tell_of(const char *state, const char *status)
{
	char text[512];

	/* A new line in it would begin another message */
	snprintf(text, sizeof(text), "%sSTATUS=%.*s", state, (int)strcspn(status, "\n"), status);
	tell(text, NULL, 0);
}

void manager_status(const char *fmt, ...)
{
	char text[448];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	tell_of("", text);
}

void manager_ready(const char *status)
{
	tell_of("READY=1\n", status);
}

void manager_stopping(void)
{
	tell_of("STOPPING=1\n", "stopping");
}

static int not_told(const char *what, const char *name, int err)
{
	return failed("%s %s in the service manager's store: %s", what, name,
		      err ? strerror(-err) :
		      "NOTIFY_SOCKET is not set: run it as a service of Type=notify");
}

int manager_keep(int fd, const char *name)
{
	char text[MANAGER_NAME_MAX + 32];
	int ret;

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	ret = tell(text, &fd, 1);
	return ret > 0 ? EXIT_OK : not_told("put", name, ret);
}

int manager_drop(const char *name)
{
	char text[MANAGER_NAME_MAX + 32];
	int ret;

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	ret = tell(text, NULL, 0);
	if (ret > 0)
		ret = await_heeded();
	return ret > 0 ? EXIT_OK : not_told("remove", name, ret);
}

int manager_kept_each(manager_kept each, void *arg)
{
	char **names = NULL;
	int i, nr;

	nr = take_kept(&names);
	if (nr < 0)
		return failed("descriptors of the service manager: %s", strerror(-nr));
	for (i = 0; i < nr; i++) {
		each(arg, FIRST_FD + i, names[i]);
		free(names[i]);
	}
	free(names);
	return EXIT_OK;
}
