// SPDX-License-Identifier: GPL-2.0
/*
 * A library to be preloaded: one call of the program fails, the one whose number is in
 * ROUGH_AT, as ROUGH_HOW says (a name in modes[]). Only calls to which that can happen are
 * counted, from main() on. What failed is written to the descriptor ROUGH_TELL, as
 * "CALL OBJECT".
 *
 * Calls within the C library itself do not come here, so what it does for others (fopen(),
 * fflush(), getaddrinfo()) fails as a whole.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <json-c/json.h>
#include <rdmatensor/uapi.h>

/* Of the C library, for a stream whose write has failed */
#define ERR_SEEN 0x20

enum mode { SHORT = 1, NOSPC = 2, IO = 4, INTR = 8, NFILE = 16, NOMEM = 32 };

static const struct {
	const char *name;
	enum mode mode;
	int error;
} modes[] = {
	{ "short", SHORT, 0 }, { "ENOSPC", NOSPC, ENOSPC }, { "EIO", IO, EIO },
	{ "EINTR", INTR, EINTR }, { "EMFILE", NFILE, EMFILE }, { "ENOMEM", NOMEM, ENOMEM },
};

static bool counting, no_tmpfile;
static enum mode mode;
static int error, tell = -1;
static long at, calls;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t nr, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

/* True: this call is the one, and errno is set */
static bool strikes(unsigned int possible, const char *call, const char *object)
{
	char line[PATH_MAX + 64];
	int len;

	if (!counting || !(possible & mode) || ++calls != at)
		return false;
	/* What it takes to tell is not the program's */
	counting = false;
	len = snprintf(line, sizeof(line), "%s %s", call, object);
	syscall(SYS_write, tell, line, len);
	counting = true;
	errno = error;
	return true;
}

/* What doctor leaves out of its report, or takes for the usual, if it is not to be had */
static bool is_aside(const char *object)
{
	return !strncmp(object, "/proc/", 6) || !strncmp(object, "/sys/devices/virtual/net/", 25);
}

static bool strikes_fd(unsigned int possible, const char *call, int fd)
{
	char link[64], object[PATH_MAX];
	ssize_t len;

	/* No descriptor: a stream in memory */
	if (!counting || !(possible & mode) || fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = syscall(SYS_readlink, link, object, sizeof(object) - 1);
	object[len < 0 ? 0 : len] = '\0';
	return !is_aside(object) && strikes(possible, call, object);
}

#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int (*real_main)(int argc, char **argv, char **envp);

static int counted_main(int argc, char **argv, char **envp)
{
	const char *how = getenv("ROUGH_HOW");
	size_t i;
	int ret;

	for (i = 0; how && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(how, modes[i].name)) {
			mode = modes[i].mode;
			error = modes[i].error;
			at = atol(getenv("ROUGH_AT"));
			tell = atoi(getenv("ROUGH_TELL"));
		}
	no_tmpfile = getenv("ROUGH_NO_TMPFILE");
	counting = true;
	ret = real_main(argc, argv, envp);
	counting = false;
	return ret;
}

int __libc_start_main(int (*main)(int argc, char **argv, char **envp), int argc, char **argv,
		      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *end);

int __libc_start_main(int (*main)(int argc, char **argv, char **envp), int argc, char **argv,
		      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *end)
{
	REAL(__libc_start_main);
	real_main = main;
	return real(counted_main, argc, argv, init, fini, rtld_fini, end);
}

void *malloc(size_t bytes)
{
	return strikes(NOMEM, "malloc", "") ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t nr, size_t bytes)
{
	return strikes(NOMEM, "calloc", "") ? NULL : __libc_calloc(nr, bytes);
}

/*
 * json-c 0.16 takes what it has allocated for a name without a look. What it makes of a
 * failed allocation there is not for its callers to mend
 */
struct json_object *json_tokener_parse_ex(struct json_tokener *tok, const char *text, int len)
{
	enum mode before = mode;
	struct json_object *tree;

	REAL(json_tokener_parse_ex);
	if (mode == NOMEM)
		mode = 0;
	tree = real(tok, text, len);
	mode = before;
	return tree;
}

/* json-c 0.16 does not say that a text has no room to grow, and goes on without */
static bool is_json(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libjson-c");
}

void *realloc(void *old, size_t bytes)
{
	if (counting && mode == NOMEM && is_json(__builtin_return_address(0)))
		return __libc_realloc(old, bytes);
	return strikes(NOMEM, "realloc", "") ? NULL : __libc_realloc(old, bytes);
}

int open(const char *path, int flags, ...)
{
	bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	mode_t bits = 0;
	va_list args;

	REAL(open);
	if (makes) {
		va_start(args, flags);
		bits = va_arg(args, mode_t);
		va_end(args);
	}
	if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (strikes(IO | NFILE | NOMEM | (makes ? NOSPC : 0), "open", path))
		return -1;
	return real(path, flags, bits);
}

FILE *fopen(const char *path, const char *how)
{
	REAL(fopen);
	return !is_aside(path) && strikes(IO | NFILE, "fopen", path) ? NULL : real(path, how);
}

DIR *opendir(const char *path)
{
	REAL(opendir);
	return strikes(IO | NFILE, "opendir", path) ? NULL : real(path);
}

char *realpath(const char *path, char *to)
{
	REAL(realpath);
	return strikes(IO, "realpath", path) ? NULL : real(path, to);
}

int stat(const char *path, struct stat *st)
{
	REAL(stat);
	return strikes(IO, "stat", path) ? -1 : real(path, st);
}

int fstat(int fd, struct stat *st)
{
	REAL(fstat);
	return strikes_fd(IO, "fstat", fd) ? -1 : real(fd, st);
}

int fchown(int fd, uid_t user, gid_t group)
{
	REAL(fchown);
	return strikes_fd(IO, "fchown", fd) ? -1 : real(fd, user, group);
}

int fchmod(int fd, mode_t bits)
{
	REAL(fchmod);
	return strikes_fd(IO, "fchmod", fd) ? -1 : real(fd, bits);
}

int unlink(const char *path)
{
	REAL(unlink);
	return strikes(IO, "unlink", path) ? -1 : real(path);
}

int rename(const char *from, const char *to)
{
	REAL(rename);
	return strikes(IO | NOSPC, "rename", to) ? -1 : real(from, to);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	REAL(linkat);
	return strikes(IO | NOSPC, "linkat", to) ? -1 : real(from_fd, from, to_fd, to, flags);
}

int fsync(int fd)
{
	REAL(fsync);
	return strikes_fd(IO | NOSPC, "fsync", fd) ? -1 : real(fd);
}

int fallocate(int fd, int how, off_t from, off_t bytes)
{
	REAL(fallocate);
	return strikes_fd(IO | NOSPC | INTR, "fallocate", fd) ? -1 : real(fd, how, from, bytes);
}

int ftruncate(int fd, off_t bytes)
{
	REAL(ftruncate);
	return strikes_fd(IO | NOSPC | INTR, "ftruncate", fd) ? -1 : real(fd, bytes);
}

int close(int fd)
{
	REAL(close);
	/* It is closed all the same */
	if (strikes_fd(IO | NOSPC, "close", fd)) {
		real(fd);
		errno = error;
		return -1;
	}
	return real(fd);
}

/* What of @bytes is transferred when it is short */
static size_t half(size_t bytes)
{
	return bytes > 1 ? bytes / 2 : bytes;
}

/* The same of vectors: of the first that has any */
static const struct iovec *half_of(const struct iovec *vec, int *nr, struct iovec *part)
{
	while (*nr > 1 && !vec->iov_len) {
		vec++;
		--*nr;
	}
	part->iov_base = vec->iov_base;
	part->iov_len = half(vec->iov_len);
	*nr = 1;
	return part;
}

#define READS (SHORT | IO | INTR)
#define WRITES (SHORT | IO | INTR | NOSPC)

ssize_t read(int fd, void *to, size_t bytes)
{
	REAL(read);
	if (strikes_fd(READS, "read", fd)) {
		if (mode != SHORT)
			return -1;
		bytes = half(bytes);
	}
	return real(fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t from)
{
	REAL(pread);
	if (strikes_fd(READS, "pread", fd)) {
		if (mode != SHORT)
			return -1;
		bytes = half(bytes);
	}
	return real(fd, to, bytes, from);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
	REAL(write);
	if (strikes_fd(WRITES, "write", fd)) {
		if (mode != SHORT)
			return -1;
		bytes = half(bytes);
	}
	return real(fd, from, bytes);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t to)
{
	REAL(pwrite);
	if (strikes_fd(WRITES, "pwrite", fd)) {
		if (mode != SHORT)
			return -1;
		bytes = half(bytes);
	}
	return real(fd, from, bytes, to);
}

ssize_t preadv(int fd, const struct iovec *vec, int nr, off_t from)
{
	struct iovec part;

	REAL(preadv);
	if (strikes_fd(READS, "preadv", fd)) {
		if (mode != SHORT)
			return -1;
		vec = half_of(vec, &nr, &part);
	}
	return real(fd, vec, nr, from);
}

ssize_t pwritev(int fd, const struct iovec *vec, int nr, off_t to)
{
	struct iovec part;

	REAL(pwritev);
	if (strikes_fd(WRITES, "pwritev", fd)) {
		if (mode != SHORT)
			return -1;
		vec = half_of(vec, &nr, &part);
	}
	return real(fd, vec, nr, to);
}

ssize_t writev(int fd, const struct iovec *vec, int nr)
{
	struct iovec part;

	REAL(writev);
	if (strikes_fd(WRITES, "writev", fd)) {
		if (mode != SHORT)
			return -1;
		vec = half_of(vec, &nr, &part);
	}
	return real(fd, vec, nr);
}

char *fgets(char *to, int bytes, FILE *file)
{
	REAL(fgets);
	if (strikes_fd(IO, "fgets", fileno(file))) {
		file->_flags |= ERR_SEEN;
		return NULL;
	}
	return real(to, bytes, file);
}

int fflush(FILE *file)
{
	REAL(fflush);
	if (file && strikes_fd(IO | NOSPC, "fflush", fileno(file))) {
		__fpurge(file);
		file->_flags |= ERR_SEEN;
		errno = error;
		return EOF;
	}
	return real(file);
}

int fclose(FILE *file)
{
	REAL(fclose);
	if (strikes_fd(IO | (__fwritable(file) ? NOSPC : 0), "fclose", fileno(file))) {
		if (__fwritable(file))
			__fpurge(file);
		real(file);
		errno = error;
		return EOF;
	}
	return real(file);
}

/*
 * Stopping a process and letting it go on ends its waits. SUBMIT has taken its operations
 * by then
 */
static bool interrupts(int fd, unsigned long request, struct rdmatensor_submit *arg,
		       __typeof__(&ioctl) call)
{
	__u32 wait_nr;

	if (request == RDMATENSOR_CONNECT || request == RDMATENSOR_TABLE_OPEN)
		return strikes_fd(INTR, "ioctl", fd);
	if (request != RDMATENSOR_SUBMIT || !arg->wait_nr || !strikes_fd(INTR, "ioctl", fd))
		return false;
	wait_nr = arg->wait_nr;
	arg->wait_nr = 0;
	if (!call(fd, request, arg))
		errno = EINTR;
	arg->wait_nr = wait_nr;
	return true;
}

int ioctl(int fd, unsigned long request, ...)
{
	char name[32];
	va_list args;
	void *arg;

	REAL(ioctl);
	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (interrupts(fd, request, arg, real))
		return -1;
	snprintf(name, sizeof(name), "ioctl:%lu", request & 0xff);
	return strikes_fd(IO | NOMEM, name, fd) ? -1 : real(fd, request, arg);
}

void *mmap(void *where, size_t bytes, int prot, int flags, int fd, off_t from)
{
	REAL(mmap);
	return fd >= 0 && strikes_fd(NOMEM, "mmap", fd) ? MAP_FAILED :
	       real(where, bytes, prot, flags, fd, from);
}

int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *time, const sigset_t *set)
{
	REAL(ppoll);
	return strikes(INTR, "ppoll", "") ? -1 : real(fds, nr, time, set);
}

int poll(struct pollfd *fds, nfds_t nr, int ms)
{
	REAL(poll);
	return strikes(INTR, "poll", "") ? -1 : real(fds, nr, ms);
}

int socket(int domain, int type, int protocol)
{
	REAL(socket);
	return strikes(IO | NFILE | NOMEM, "socket", "") ? -1 : real(domain, type, protocol);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	REAL(bind);
	return strikes(IO | NOMEM, "bind", "") ? -1 : real(fd, addr, len);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	REAL(connect);
	return strikes(IO, "connect", "") ? -1 : real(fd, addr, len);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	REAL(setsockopt);
	return strikes(IO | NOMEM, "setsockopt", "") ? -1 : real(fd, level, option, value, len);
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	REAL(getsockname);
	return strikes(IO, "getsockname", "") ? -1 : real(fd, addr, len);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	REAL(sendmsg);
	return strikes(IO | NOMEM, "sendmsg", "") ? -1 : real(fd, msg, flags);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	REAL(recvmsg);
	return strikes(IO | NOMEM | INTR, "recvmsg", "") ? -1 : real(fd, msg, flags);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		struct addrinfo **out)
{
	REAL(getaddrinfo);
	return strikes(IO | NFILE, "getaddrinfo", host) ? EAI_SYSTEM :
	       real(host, service, hints, out);
}

int getifaddrs(struct ifaddrs **out)
{
	REAL(getifaddrs);
	return strikes(IO | NFILE, "getifaddrs", "") ? -1 : real(out);
}

struct if_nameindex *if_nameindex(void)
{
	REAL(if_nameindex);
	return strikes(IO | NFILE, "if_nameindex", "") ? NULL : real();
}
