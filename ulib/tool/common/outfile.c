// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files that are written as a whole.
 *
 * The content has no name (O_TMPFILE) until it is on the disk, so a process that is killed
 * leaves nothing behind. Where there are no such files, it is .rdmatensor.PID.N in the same
 * folder, which signals that end the process remove. A link replaces nothing: a file that is
 * there is replaced by rename(), of such a name that lives for that long only.
 *
 * A transfer takes long, so what the name leads to is looked at twice: when it is opened, so
 * that nothing is transferred in vain, and when the content gets the name, so that what has
 * come there since is not destroyed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "message.h"
#include "outfile.h"

/* Attempts to find a free name for the content */
#define TRIES 100
/* Attribute with the access control list; the longest value that Linux takes */
#define ACL "system.posix_acl_access"
#define ACL_MAX 65536

/* Those whose content has a name, for the signal handler */
static struct outfile *litter;
static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

static void on_end(int signo)
{
	const struct outfile *out;

	for (out = litter; out; out = out->next)
		unlink(out->work);
	/* Ends the process: SA_RESETHAND has restored the default */
	raise(signo);
}

/* Signals wait until the handler knows what they would leave behind */
static void hold_signals(sigset_t *before)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&set, ends[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

static void watch(struct outfile *out)
{
	struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_RESETHAND }, old;
	size_t i;

	out->next = litter;
	litter = out;
	sigemptyset(&action.sa_mask);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!sigaction(ends[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(ends[i], &action, NULL);
}

static void unwatch(const struct outfile *out)
{
	struct sigaction action = { .sa_handler = SIG_DFL }, old;
	struct outfile **at = &litter;
	size_t i;

	while (*at && *at != out)
		at = &(*at)->next;
	if (*at)
		*at = out->next;
	if (litter)
		return;
	sigemptyset(&action.sa_mask);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!sigaction(ends[i], NULL, &old) && old.sa_handler == on_end)
			sigaction(ends[i], &action, NULL);
}

/*
 * Content that has all arrived is not lost with the name that it was for: it keeps its own, and
 * from before that is said, since nobody may read it
 */
static int refused(const struct outfile *out, const char *fmt, ...)
{
	char why[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	if (!out->whole || !*out->work)
		return failed("write %s: %s", out->name, why);
	unwatch(out);
	return failed("write %s: %s: its content is in %s", out->name, why, out->work);
}

static int outfile_failed(const struct outfile *out, const char *what, int err)
{
	return refused(out, "%s%s%s", what, *what ? ": " : "", strerror(err));
}

/* The folder that @path is in */
static const char *folder_of(const char *path, char *copy)
{
	snprintf(copy, PATH_MAX, "%s", path);
	return dirname(copy);
}

/* A name in @out's folder for its content. False: it does not fit */
static bool make_work(struct outfile *out)
{
	static unsigned int count;
	char folder[PATH_MAX];
	int len;

	len = snprintf(out->work, sizeof(out->work), "%s/.rdmatensor.%d.%u",
		       folder_of(out->path, folder), (int)getpid(), count++);
	return len > 0 && (size_t)len < sizeof(out->work);
}

/* Finds a free name for @make. 0 or a negative errno; then @work is "" */
static int with_work(struct outfile *out, int (*make)(struct outfile *out))
{
	int err = -EEXIST, i;
	sigset_t before;

	hold_signals(&before);
	for (i = 0; err == -EEXIST && i < TRIES; i++)
		err = make_work(out) ? make(out) : -ENAMETOOLONG;
	if (err)
		out->work[0] = '\0';
	else
		watch(out);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int create_work(struct outfile *out)
{
	out->fd = open(out->work, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, out->mode);
	return out->fd < 0 ? -errno : 0;
}

/* Gives a file without a name @work */
static int link_work(struct outfile *out)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", out->fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, out->work, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* A new file in @out's folder, without a name where that is possible */
static int create(struct outfile *out)
{
	char folder[PATH_MAX];

	/* Without it the file could not get a name later */
	if (access("/proc/self/fd", X_OK))
		return with_work(out, create_work);
	out->fd = open(folder_of(out->path, folder), O_TMPFILE | O_RDWR | O_CLOEXEC, out->mode);
	if (out->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
		return -errno;
	return with_work(out, create_work);
}

/* A name that leads to nothing yet; a dangling symlink is refused */
static int open_new(struct outfile *out)
{
	char folder[PATH_MAX], file[PATH_MAX], resolved[PATH_MAX];
	struct stat st;
	int err, len;

	if (!lstat(out->name, &st))
		return failed("write %s: it is a symlink that leads to nothing: remove it, or create what it leads to",
			      out->name);
	if (!realpath(folder_of(out->name, folder), resolved))
		return outfile_failed(out, folder, errno);
	snprintf(file, sizeof(file), "%s", out->name);
	len = snprintf(out->path, sizeof(out->path), "%s/%s", resolved, basename(file));
	if (len < 0 || (size_t)len >= sizeof(out->path))
		return outfile_failed(out, "", ENAMETOOLONG);
	out->mode = 0666;
	err = create(out);
	return err ? outfile_failed(out, "", -err) : EXIT_OK;
}

/*
 * Copies the other file's access control list, or removes the one that the folder has given
 * to the new file. 0 or a negative errno
 */
static int copy_acl(const struct outfile *out)
{
	static char acl[ACL_MAX];
	ssize_t len = getxattr(out->path, ACL, acl, sizeof(acl));

	if (len >= 0)
		return fsetxattr(out->fd, ACL, acl, (size_t)len, 0) ? -errno : 0;
	if (errno != ENODATA && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	if (fgetxattr(out->fd, ACL, NULL, 0) < 0)
		return 0;
	return fremovexattr(out->fd, ACL) ? -errno : 0;
}

/* What rename() would refuse only after the transfer. False: with a message */
static bool may_be_replaced(const struct outfile *out)
{
	struct statx st;

	if (statx(AT_FDCWD, out->path, 0, STATX_TYPE, &st))
		return true;
	if (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) {
		refused(out, "it is a mount point, and cannot be replaced: name a file in a folder that is mounted");
		return false;
	}
	if (st.stx_attributes & STATX_ATTR_APPEND) {
		refused(out, "it can only be appended to: chattr -a, or name another file");
		return false;
	}
	return true;
}

/* Gives the content the owner, the list and the mode of the file that it replaces */
static int take_over(struct outfile *out, const struct stat *st)
{
	struct stat own;
	int err;

	if (fstat(out->fd, &own))
		return outfile_failed(out, "", errno);
	/* What it was open to is closed to both the former owner and the next one meanwhile */
	if (own.st_mode & 077 &&
	    (own.st_uid != st->st_uid || own.st_gid != st->st_gid ||
	     (own.st_mode & 0777) != (st->st_mode & 0777)) && fchmod(out->fd, 0600))
		return outfile_failed(out, "", errno);
	if ((own.st_uid != st->st_uid || own.st_gid != st->st_gid) &&
	    fchown(out->fd, st->st_uid, st->st_gid))
		return refused(out, "it belongs to user %u and group %u, and a new file cannot be given to them: remove it, or name another file",
			       (unsigned int)st->st_uid, (unsigned int)st->st_gid);
	/* Before the mode, which would admit those whom the folder's list names */
	err = copy_acl(out);
	if (err)
		return refused(out, "its access control list cannot be given to a new file: %s: remove it, or name another file",
			       strerror(-err));
	/* Not the one from before, which the owner and the list may have changed */
	if (fstat(out->fd, &own))
		return outfile_failed(out, "", errno);
	/* Without set-user-ID, which must not apply to what a peer has sent */
	if ((own.st_mode & 0777) != (st->st_mode & 0777) &&
	    fchmod(out->fd, st->st_mode & 0777))
		return outfile_failed(out, "", errno);
	return EXIT_OK;
}

static int open_beside(struct outfile *out, const struct stat *st)
{
	int err;

	if (access(out->name, W_OK))
		return outfile_failed(out, "", errno);
	if (!realpath(out->name, out->path))
		return outfile_failed(out, "", errno);
	if (!may_be_replaced(out))
		return EXIT_FAILED;
	/* Closed to others until it has the owner and the mode of the other one */
	out->mode = 0600;
	err = create(out);
	if (err)
		return outfile_failed(out, "a new file beside it", -err);
	return take_over(out, st);
}

static int open_direct(struct outfile *out, const struct stat *st)
{
	struct stat own;

	out->direct = true;
	out->fd = open(out->name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (out->fd < 0)
		return outfile_failed(out, "", errno);
	if (fstat(out->fd, &own))
		return outfile_failed(out, "", errno);
	/* A regular file that has come there would be overwritten in place */
	if (own.st_dev != st->st_dev || own.st_ino != st->st_ino)
		return refused(out, "it was replaced while it was opened: try again");
	out->stream = lseek(out->fd, 0, SEEK_CUR) < 0 || isatty(out->fd);
	return EXIT_OK;
}

/* /dev/null takes both */
static bool is_same(int fd, const struct stat *st)
{
	struct stat own;

	return (!S_ISCHR(st->st_mode) || isatty(fd)) && !fstat(fd, &own) &&
	       own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

/*
 * What goes where the content would: it would be mixed with that, or its file be replaced.
 * NULL: nothing
 */
static const char *what_goes_to(const struct stat *st)
{
	if (is_same(STDOUT_FILENO, st))
		return "the report goes";
	return is_same(STDERR_FILENO, st) ? "error messages go" : NULL;
}

int outfile_open(struct outfile *out, const char *name)
{
	size_t len = strlen(name);
	struct stat st;
	int ret;

	memset(out, 0, sizeof(*out));
	out->name = name;
	out->fd = -1;
	/* RLIMIT_FSIZE fails the call, which is reported, and does not end the process */
	signal(SIGXFSZ, SIG_IGN);
	if (!len || name[len - 1] == '/')
		return failed("write \"%s\": this is not the name of a file", name);
	if (stat(name, &st))
		ret = errno == ENOENT ? open_new(out) : outfile_failed(out, "", errno);
	else if (S_ISDIR(st.st_mode))
		ret = outfile_failed(out, "", EISDIR);
	else if (what_goes_to(&st))
		ret = failed("write %s: %s there: name a file", name, what_goes_to(&st));
	else if (S_ISREG(st.st_mode))
		ret = open_beside(out, &st);
	else
		ret = open_direct(out, &st);
	if (ret)
		outfile_drop(out);
	return ret;
}

int outfile_reserve(struct outfile *out, uint64_t bytes)
{
	if (out->direct || !bytes)
		return EXIT_OK;
	if (bytes > INT64_MAX)
		return outfile_failed(out, "", EFBIG);
	while (fallocate(out->fd, 0, 0, (off_t)bytes)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return EXIT_OK;
		if (errno != EINTR)
			return failed("write %s: no room for %" PRIu64 " bytes: %s", out->name,
				      bytes, strerror(errno));
	}
	return EXIT_OK;
}

/* Makes the new name survive a crash */
static int sync_folder(const struct outfile *out)
{
	char folder[PATH_MAX];
	int fd = open(folder_of(out->path, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = 0;

	/* A folder may be writable and not readable */
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? 0 : -errno;
	if (fsync(fd) && errno != EINVAL && errno != EROFS && errno != EOPNOTSUPP &&
	    errno != ENOSYS)
		err = -errno;
	close(fd);
	return err;
}

/* Nothing had the name. 0 or a negative errno, -EEXIST: something has come there */
static int take_free_name(const struct outfile *out)
{
	if (!renameat2(AT_FDCWD, out->work, AT_FDCWD, out->path, RENAME_NOREPLACE))
		return 0;
	/* Not every file system knows the flag */
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!linkat(AT_FDCWD, out->work, AT_FDCWD, out->path, 0)) {
		unlink(out->work);
		return 0;
	}
	/* Nor does every one have links */
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return rename(out->work, out->path) ? -errno : 0;
}

static int replace(struct outfile *out, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return refused(out, "what has come there is not a regular file: name another file");
	if (access(out->path, W_OK))
		return outfile_failed(out, "", errno);
	if (!may_be_replaced(out) || take_over(out, st))
		return EXIT_FAILED;
	return rename(out->work, out->path) ? outfile_failed(out, "", errno) : EXIT_OK;
}

static int take_name(struct outfile *out)
{
	struct stat st;
	int err, i;

	for (i = 0; i < TRIES; i++) {
		if (!lstat(out->path, &st))
			return replace(out, &st);
		if (errno != ENOENT)
			return outfile_failed(out, "", errno);
		err = take_free_name(out);
		if (err != -EEXIST)
			break;
	}
	return err ? outfile_failed(out, "", -err) : EXIT_OK;
}

/*
 * While the content has no name, or one that is not told: it must not be open to more than the
 * file that it replaces. What is wrong with that one is told when it has a name
 */
static void close_to_others(struct outfile *out)
{
	struct stat st, own;

	if (!lstat(out->path, &st) && !fstat(out->fd, &own) &&
	    (own.st_uid != st.st_uid || own.st_gid != st.st_gid ||
	     (own.st_mode & 0777 & ~st.st_mode)))
		fchmod(out->fd, 0600);
}

/* On an error the content keeps its own name */
static int commit_name(struct outfile *out)
{
	int err;

	out->whole = true;
	err = take_name(out);
	if (!err) {
		unwatch(out);
		out->work[0] = '\0';
		err = sync_folder(out);
		if (err)
			err = outfile_failed(out, "sync its folder", -err);
	}
	out->work[0] = '\0';
	close(out->fd);
	out->fd = -1;
	return err;
}

int outfile_sync(struct outfile *out)
{
	if (!out->direct)
		close_to_others(out);
	if (fsync(out->fd) && !(out->direct && (errno == EINVAL || errno == EROFS)))
		return -errno;
	return 0;
}

int outfile_commit(struct outfile *out)
{
	int err = outfile_sync(out);

	if (!err && !out->direct && !*out->work)
		err = with_work(out, link_work);
	if (!err && !out->direct)
		return commit_name(out);
	if (close(out->fd) && !err)
		err = -errno;
	out->fd = -1;
	if (err)
		outfile_failed(out, "", -err);
	outfile_drop(out);
	return err ? EXIT_FAILED : EXIT_OK;
}

void outfile_drop(struct outfile *out)
{
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
	if (!*out->work)
		return;
	unlink(out->work);
	out->work[0] = '\0';
	unwatch(out);
}
