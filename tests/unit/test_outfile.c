// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files that are written as a whole: what a name has before, while and after, whatever kind
 * of file it leads to, and what is left of one whose process is killed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fake.h"
#include "tool/common/outfile.h"
#include "tool/common/files.h"
#include "tool/common/message.h"
#include "unit.h"

static char dir[256], name[300], other[300], messages[4096];

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	fake_reset();
	snprintf(dir, sizeof(dir), "%s/outfile-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/name", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	umask(022);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(name);
	unlink(other);
	/* Nothing else may be left behind */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

/* What outfile_open() says of @path is in @messages. Return: what it returns */
static int try_open(struct outfile *out, const char *path)
{
	FILE *said = tmpfile();
	int saved = dup(STDERR_FILENO), ret;
	ssize_t got;

	dup2(fileno(said), STDERR_FILENO);
	ret = outfile_open(out, path);
	dup2(saved, STDERR_FILENO);
	close(saved);
	got = pread(fileno(said), messages, sizeof(messages) - 1, 0);
	messages[got > 0 ? got : 0] = '\0';
	fclose(said);
	return ret;
}

static void put(const struct outfile *out, const char *content)
{
	assert_int_equal(write(out->fd, content, strlen(content)), strlen(content));
}

/* The next link is made of a file whose mode this is */
static mode_t linked_mode;

int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	struct stat st;

	assert_int_equal(fstatat(from_fd, from, &st, 0), 0);
	linked_mode = st.st_mode & 0777;
	return __real_linkat(from_fd, from, to_fd, to, flags);
}

static void make(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void assert_holds(const char *path, const char *content)
{
	char got[64] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, content);
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st;
}

static unsigned int files(void)
{
	DIR *folder = opendir(dir);
	struct dirent *entry;
	unsigned int nr = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)))
		nr += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(folder);
	return nr;
}

/* Each case where files may have no name, and where they may not */
static void new_file(void)
{
	struct outfile out;

	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "new");
	assert_int_equal(access(name, F_OK), -1);
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(name, "new");
	assert_int_equal(stat_of(name).st_mode & 07777, 0644);
	assert_int_equal(files(), 1);
	outfile_drop(&out);
	assert_holds(name, "new");
}

static void file_that_is_there(void)
{
	struct outfile out;

	make(name, "old", 0600);
	if (!geteuid())
		assert_int_equal(chown(name, 12345, 23456), 0);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "dropped");
	assert_holds(name, "old");
	outfile_drop(&out);
	assert_holds(name, "old");
	assert_int_equal(files(), 1);

	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "new");
	assert_holds(name, "old");
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(name, "new");
	assert_int_equal(stat_of(name).st_mode & 07777, 0600);
	assert_int_equal(stat_of(name).st_uid, geteuid() ? geteuid() : 12345);
	assert_int_equal(stat_of(name).st_gid, geteuid() ? getegid() : 23456);
	assert_int_equal(files(), 1);
}

/* Names of which all lead to @other */
static void through_symlinks(void)
{
	struct outfile out;

	make(other, "old", 0640);
	assert_int_equal(symlink("other", name), 0);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "new");
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_true(S_ISLNK(stat_of(name).st_mode));
	assert_true(S_ISREG(stat_of(other).st_mode));
	assert_holds(other, "new");
	assert_int_equal(stat_of(other).st_mode & 07777, 0640);
	assert_int_equal(files(), 2);
}

static void both_ways(void (*check)(void))
{
	check();
	assert_int_equal(unlink(name), 0);
	unlink(other);
	fake.no_tmpfile = true;
	check();
}

static void test_new(void **state)
{
	(void)state;
	both_ways(new_file);
}

static void test_there(void **state)
{
	(void)state;
	both_ways(file_that_is_there);
}

static void test_symlink(void **state)
{
	(void)state;
	both_ways(through_symlinks);
}

static void test_refused(void **state)
{
	struct outfile out;
	char path[400];

	(void)state;
	assert_int_equal(try_open(&out, dir), EXIT_FAILED);
	assert_contains(messages, "Is a directory");
	snprintf(path, sizeof(path), "%s/none/name", dir);
	assert_int_equal(try_open(&out, path), EXIT_FAILED);
	assert_contains(messages, path);
	assert_contains(messages, "No such file or directory");
	assert_int_equal(try_open(&out, ""), EXIT_FAILED);
	assert_contains(messages, "not the name of a file");
	snprintf(path, sizeof(path), "%s/", name);
	assert_int_equal(try_open(&out, path), EXIT_FAILED);
	assert_contains(messages, "not the name of a file");
	assert_int_equal(symlink("nothing", name), 0);
	assert_int_equal(try_open(&out, name), EXIT_FAILED);
	assert_contains(messages, "leads to nothing");
	assert_int_equal(files(), 1);
	/* No disk has that much */
	unlink(name);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	assert_int_equal(outfile_reserve(&out, (uint64_t)1 << 62), EXIT_FAILED);
	assert_int_equal(outfile_reserve(&out, UINT64_MAX), EXIT_FAILED);
	assert_int_equal(outfile_reserve(&out, 4096), EXIT_OK);
	outfile_drop(&out);
	assert_int_equal(files(), 0);
}

/* What is no file is not replaced by one */
static void test_direct(void **state)
{
	struct outfile out;
	char got[8] = "";
	int fd;

	(void)state;
	assert_int_equal(symlink("/dev/null", name), 0);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "gone");
	assert_int_equal(outfile_reserve(&out, 1 << 20), EXIT_OK);
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_true(S_ISLNK(stat_of(name).st_mode));
	assert_true(S_ISCHR(stat_of("/dev/null").st_mode));

	assert_int_equal(mkfifo(other, 0600), 0);
	fd = open(other, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(outfile_open(&out, other), EXIT_OK);
	assert_true(out.stream);
	put(&out, "piped");
	assert_int_equal(read(fd, got, sizeof(got)), 5);
	assert_string_equal(got, "piped");
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	close(fd);
	assert_true(S_ISFIFO(stat_of(other).st_mode));
}

/* As long as a name may be */
static void test_long(void **state)
{
	struct outfile out;
	char path[600];

	(void)state;
	snprintf(path, sizeof(path), "%s/%0255d", dir, 7);
	assert_int_equal(outfile_open(&out, path), EXIT_OK);
	put(&out, "long");
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(path, "long");
	assert_int_equal(outfile_open(&out, path), EXIT_OK);
	put(&out, "again");
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(path, "again");
	unlink(path);
}

static int try_stdout(int fd)
{
	int saved = dup(STDOUT_FILENO), ret;
	struct outfile out;

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	ret = try_open(&out, "/dev/stdout");
	if (!ret)
		outfile_drop(&out);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	return ret;
}

/* Where the report goes the content does not, nor where errors go */
static void test_stdout(void **state)
{
	struct outfile out;
	int fd, screen;

	(void)state;
	make(name, "old", 0644);
	assert_int_equal(try_stdout(open(name, O_RDWR)), EXIT_FAILED);
	assert_contains(messages, "the report goes there");
	assert_holds(name, "old");
	assert_int_equal(openpty(&fd, &screen, NULL, NULL, NULL), 0);
	assert_int_equal(try_stdout(screen), EXIT_FAILED);
	assert_contains(messages, "the report goes there");
	close(fd);
	assert_int_equal(try_stdout(open("/dev/null", O_RDWR)), EXIT_OK);
	assert_int_equal(try_open(&out, "/dev/stderr"), EXIT_FAILED);
	assert_contains(messages, "error messages go there");
}

/* What outfile_commit() says is in @messages. Return: what it returns */
static int try_commit(struct outfile *out)
{
	FILE *said = tmpfile();
	int saved = dup(STDERR_FILENO), ret;
	ssize_t got;

	dup2(fileno(said), STDERR_FILENO);
	ret = outfile_commit(out);
	dup2(saved, STDERR_FILENO);
	close(saved);
	got = pread(fileno(said), messages, sizeof(messages) - 1, 0);
	messages[got > 0 ? got : 0] = '\0';
	fclose(said);
	return ret;
}

/* What was transferred is not lost with the name that it was for */
static void assert_kept(struct outfile *out, const char *why)
{
	char work[400], *at;

	put(out, "kept");
	assert_int_equal(try_commit(out), EXIT_FAILED);
	assert_contains(messages, why);
	at = strstr(messages, "its content is in ");
	assert_non_null(at);
	snprintf(work, sizeof(work), "%.*s", (int)strcspn(at + 18, "\n"), at + 18);
	assert_holds(work, "kept");
	assert_int_equal(unlink(work), 0);
}

/* What comes to the name during the transfer, and is not a file, is not replaced */
static void test_no_name(void **state)
{
	struct outfile out;

	(void)state;
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_kept(&out, "not a regular file");
	assert_int_equal(rmdir(name), 0);

	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_kept(&out, "not a regular file");
	assert_true(S_ISFIFO(stat_of(name).st_mode));
	assert_int_equal(unlink(name), 0);

	make(name, "old", 0644);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink("other", name), 0);
	assert_kept(&out, "not a regular file");
	assert_true(S_ISLNK(stat_of(name).st_mode));
}

/* Nor is it lost if nobody reads where it is */
static void test_nobody_listens(void **state)
{
	struct outfile out;
	struct dirent *entry;
	int ends[2], status;
	char work[600];
	DIR *folder;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		if (outfile_open(&out, name) || write(out.fd, "kept", 4) != 4 ||
		    mkdir(name, 0700) || dup2(ends[1], STDERR_FILENO) != STDERR_FILENO)
			_exit(2);
		close(ends[0]);
		_exit(outfile_commit(&out));
	}
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	assert_int_equal(rmdir(name), 0);
	assert_int_equal(files(), 1);
	folder = opendir(dir);
	while ((entry = readdir(folder)))
		if (strstr(entry->d_name, ".rdmatensor."))
			snprintf(work, sizeof(work), "%s/%s", dir, entry->d_name);
	closedir(folder);
	assert_holds(work, "kept");
	assert_int_equal(unlink(work), 0);
}

/* A file that comes during the transfer is replaced as one that was there before */
static void file_that_comes(void)
{
	struct outfile out;

	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "new");
	make(name, "secret", 0600);
	if (!geteuid())
		assert_int_equal(chown(name, 12345, 23456), 0);
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(name, "new");
	assert_int_equal(stat_of(name).st_mode & 07777, 0600);
	assert_int_equal(stat_of(name).st_uid, geteuid() ? geteuid() : 12345);
	assert_int_equal(files(), 1);
}

static void file_that_is_closed_to_others(void)
{
	struct outfile out;

	make(name, "old", 0644);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "new");
	assert_int_equal(chmod(name, 0600), 0);
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(name, "new");
	assert_int_equal(stat_of(name).st_mode & 07777, 0600);
	assert_int_equal(files(), 1);
	/* Nor was it readable under the name that it had in between */
	if (!fake.no_tmpfile)
		assert_int_equal(linked_mode, 0600);
}

static void test_meanwhile(void **state)
{
	(void)state;
	both_ways(file_that_comes);
	fake.no_tmpfile = false;
	assert_int_equal(unlink(name), 0);
	both_ways(file_that_is_closed_to_others);
}

/* Between the look at a device and its opening, a file takes its place */
static void test_replaced_device(void **state)
{
	struct outfile out;

	(void)state;
	make(other, "precious", 0644);
	assert_int_equal(symlink("/dev/null", name), 0);
	fake.rename_from = other;
	fake.rename_to = name;
	assert_int_equal(try_open(&out, name), EXIT_FAILED);
	assert_contains(messages, "was replaced while it was opened");
	assert_holds(name, "precious");
}

/* The content is there, but a crash could lose its name */
static void test_unsynced(void **state)
{
	struct outfile out;
	int ret;

	(void)state;
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	put(&out, "new");
	fake.no_files = true;
	ret = try_commit(&out);
	fake.no_files = false;
	assert_int_equal(ret, EXIT_FAILED);
	assert_contains(messages, "sync its folder: Too many open files");
	assert_holds(name, "new");
}

/* A process that ends by @signo while it writes. What it leaves: the former file */
/* Several files at a time, one of which is given up before the signal, leave nothing either */
static void killed_by(int signo)
{
	struct outfile out, second, third;
	char beside[2][600];
	int ready[2], status;
	char byte;
	pid_t pid;

	snprintf(beside[0], sizeof(beside[0]), "%s.2", name);
	snprintf(beside[1], sizeof(beside[1]), "%s.3", name);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if (outfile_open(&out, name) || outfile_open(&second, beside[0]) ||
		    outfile_open(&third, beside[1]) || write(out.fd, "half", 4) != 4)
			_exit(1);
		outfile_drop(&second);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(kill(pid, signo), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signo);
	assert_int_equal(files(), 1);
	assert_holds(name, "old");
}

static void test_killed(void **state)
{
	static const int ends[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGKILL,
	};
	size_t i;

	(void)state;
	make(name, "old", 0644);
	for (i = 0; i < NR(ends); i++)
		killed_by(ends[i]);
	/* Nobody can clean up behind SIGKILL where a file must have a name */
	fake.no_tmpfile = true;
	for (i = 0; i + 1 < NR(ends); i++)
		killed_by(ends[i]);
}

/* RLIMIT_FSIZE is told, and does not end the process */
static void test_limited(void **state)
{
	struct rlimit before, limit;
	struct outfile out;
	int ret, saved = dup(STDERR_FILENO);
	FILE *said = tmpfile();
	ssize_t got;

	(void)state;
	make(name, "old", 0644);
	assert_int_equal(outfile_open(&out, name), EXIT_OK);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	dup2(fileno(said), STDERR_FILENO);
	ret = outfile_reserve(&out, 1 << 20);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	outfile_drop(&out);
	got = pread(fileno(said), messages, sizeof(messages) - 1, 0);
	messages[got > 0 ? got : 0] = '\0';
	fclose(said);
	assert_int_equal(ret, EXIT_FAILED);
	assert_contains(messages, "File too large");
	assert_holds(name, "old");
}

#define ACL "system.posix_acl_access"
#define ACL_OF_NEW_FILES "system.posix_acl_default"

int __real_fremovexattr(int fd, const char *name);
int __wrap_fremovexattr(int fd, const char *name);

/* Where the file is another's, it is refused whether there is a list or not */
int __wrap_fremovexattr(int fd, const char *name)
{
	if (fgetxattr(fd, name, NULL, 0) >= 0)
		return __real_fremovexattr(fd, name);
	errno = EPERM;
	return -1;
}

/* Version 2, and entries of tag, permissions, id, as <linux/posix_acl_xattr.h> has them */
#define ANYBODY 0xff, 0xff, 0xff, 0xff
#define ACL_WITH(user, mask) { \
	2, 0, 0, 0, \
	1, 0, 6, 0, ANYBODY, \
	2, 0, 6, 0, user, 0, 0, 0, \
	4, 0, 4, 0, ANYBODY, \
	16, 0, mask, 0, ANYBODY, \
	32, 0, 0, 0, ANYBODY, \
}
static const unsigned char acl[] = ACL_WITH(77, 6), acl_of_folder[] = ACL_WITH(78, 7);

/* Where there are access control lists: if not here, then in memory */
static void go_where_acls_are(void)
{
	make(name, "old", 0640);
	if (!setxattr(name, ACL, acl, sizeof(acl), 0))
		return;
	teardown(NULL);
	snprintf(dir, sizeof(dir), "/dev/shm/outfile-XXXXXX");
	if (!mkdtemp(dir))
		skip();
	snprintf(name, sizeof(name), "%s/name", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	make(name, "old", 0640);
	if (setxattr(name, ACL, acl, sizeof(acl), 0))
		skip();
}

static void replace(const char *path)
{
	struct outfile out;

	assert_int_equal(outfile_open(&out, path), EXIT_OK);
	put(&out, "new");
	assert_int_equal(outfile_commit(&out), EXIT_OK);
	assert_holds(path, "new");
}

/* A list is kept, and what has none gets none of its folder's */
static void test_access_control_lists(void **state)
{
	unsigned char got[sizeof(acl) + 1];
	int i;

	(void)state;
	go_where_acls_are();
	make(other, "old", 0640);
	assert_int_equal(setxattr(dir, ACL_OF_NEW_FILES, acl_of_folder, sizeof(acl_of_folder), 0),
			 0);
	for (i = 0; i < 2; i++) {
		fake.no_tmpfile = i;
		replace(name);
		assert_int_equal(getxattr(name, ACL, got, sizeof(got)), sizeof(acl));
		assert_memory_equal(got, acl, sizeof(acl));
		assert_int_equal(stat_of(name).st_mode & 07777, 0660);
		replace(other);
		assert_int_equal(getxattr(other, ACL, got, sizeof(got)), -1);
		assert_int_equal(errno, ENODATA);
		assert_int_equal(stat_of(other).st_mode & 07777, 0640);
	}
	/* A new one is as others are that are made there */
	assert_int_equal(unlink(other), 0);
	replace(other);
	assert_int_equal(getxattr(other, ACL, got, sizeof(got)), sizeof(acl));
	assert_int_equal(got[16], 78);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_new), TEST(test_there), TEST(test_symlink), TEST(test_refused),
		TEST(test_direct), TEST(test_long), TEST(test_stdout), TEST(test_no_name),
		TEST(test_nobody_listens), TEST(test_meanwhile), TEST(test_replaced_device), TEST(test_unsynced),
		TEST(test_killed),
		TEST(test_limited),
		TEST(test_access_control_lists),
	};

	return cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
}
