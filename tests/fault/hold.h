/* SPDX-License-Identifier: GPL-2.0 */
/* The module's points at which a thread is held: debugfs' hold_rdmatensor (kmod/core/fault.h) */
#ifndef RDMATENSOR_TEST_HOLD_H
#define RDMATENSOR_TEST_HOLD_H

#include <pthread.h>
#include <sys/types.h>

/* The next thread that comes to @point is held there */
void hold_at(const char *point);
/* One is */
void hold_wait(void);
/* It goes on, and no other one is held */
void hold_go(void);

/**
 * struct caller - one ioctl(), made by a thread of its own
 * @fd: of the context
 * @cmd: which
 * @arg: its struct
 * @ret: what came of it, with @done
 * @tid: the thread
 * @done: it has returned
 * @thread: the thread
 */
struct caller {
	int fd;
	unsigned long cmd;
	void *arg;
	int ret;
	pid_t tid;
	int done;
	pthread_t thread;
};

void caller_begin(struct caller *caller, int fd, unsigned long cmd, void *arg);
/* Waits until the thread sleeps in its call, for something that cannot be interrupted */
void caller_sleeps(struct caller *caller);
/* As caller_sleeps(), a process of one thread */
void process_sleeps(pid_t pid);
/* Return: what came of it */
int caller_end(struct caller *caller);
/* The same without a thread */
int call(int fd, unsigned long cmd, void *arg);

#endif
