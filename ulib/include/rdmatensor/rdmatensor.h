/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * librdmatensor - tensors between machines by name
 *
 * A thin layer on /dev/rdmatensor: every call is one ioctl, or reads mapped
 * memory, unless its text says otherwise. The structs, flags and counters are
 * the kernel's own, <rdmatensor/uapi.h>, which this header includes; its texts
 * are not repeated here.
 *
 * Errors: a call that can fail returns 0, or a count, or a negative errno;
 * errno itself means nothing after it. Where a call
 * takes (cause, cause_len), a zero-terminated line with operation, object,
 * cause and remedy is stored there when the call fails, cut to cause_len bytes;
 * cause may be NULL. The errno values are those of <rdmatensor/uapi.h>.
 *
 * Units: sizes and offsets are bytes. Deadlines (deadline_ns) are absolute
 * CLOCK_MONOTONIC times in nanoseconds, 0 is "never"; rdmatensor_deadline_ms()
 * makes them. Durations say their unit in their name.
 *
 * Versions: structs of the kernel's grow, and a program keeps working with a later library. Each
 * call that takes such a struct passes the size that the program was compiled with: it is an
 * inline function over one whose name ends in _sized, which other languages bind. Fields that the
 * program does not have are left alone, and what it has for a later library only must be zero
 * (-E2BIG). struct rdmatensor_pool and struct rdmatensor_cqe keep their size.
 *
 * Ownership: strings and structs that are passed in are only read during the
 * call, with one exception: a prepared struct rdmatensor_op points to its name,
 * dims and text, so these must live until rdmatensor_submit() has returned.
 *
 * Threads: any number of threads may use one handle at once for control calls
 * and for rdmatensor_submit(), and be in blocking calls (rdmatensor_run() and those
 * after it), which take their own entries out of the completion ring. The rest of it
 * has one consumer: of the calls marked [reaps], one may run at a time on a handle, and
 * of these rdmatensor_reap() alone beside blocking calls. It leaves their entries to
 * them, and may return none where the ring had some. rdmatensor_close() runs alone.
 * rdmatensor_start() runs before any call that submits or reaps.
 *
 * Blocking calls cannot be cancelled by another thread, for their user_data is the
 * library's own: give them a deadline, or submit.
 *
 * Signals: a call that waits ends with -EINTR, except for the blocking calls, which go
 * on unless rdmatensor_interruptible() says otherwise.
 *
 * fork(): a child shares the context, and must leave the handle alone. The file
 * descriptor is closed by exec().
 */
#ifndef RDMATENSOR_RDMATENSOR_H
#define RDMATENSOR_RDMATENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdmatensor/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct rdmatensor - one context: an open /dev/rdmatensor and its ring */
struct rdmatensor;

/**
 * struct rdmatensor_pool - a pool
 * @base: first byte: of the mapping; of the caller's own memory, if that was registered; NULL, if
 *        it was imported
 * @bytes: length, whole pages
 * @id: the pool's id in operations and entries
 *
 * A plain value that the caller owns; it may be copied. A mapping goes with
 * rdmatensor_pool_destroy() or rdmatensor_close(); memory that was registered stays mapped.
 */
struct rdmatensor_pool {
	void *base;
	uint64_t bytes;
	uint32_t id;
};

/* rdma_cm port that the tool serves on, and that an address without one means */
#define RDMATENSOR_PORT 18521

/* As the offset of rdmatensor_fetch(): allocate the destination in the pool */
#define RDMATENSOR_ALLOC UINT64_MAX

/*
 * user_data from this value up belongs to the library's blocking calls. An
 * application that makes none of those calls may use all values.
 */
#define RDMATENSOR_USER_DATA_LIBRARY UINT64_C(0xffffffff00000000)

/*
 * Context
 */

/**
 * rdmatensor_version() - version of the library, as "1.2.3"
 */
const char *rdmatensor_version(void);

/**
 * rdmatensor_open() - make a context
 * @path: device file; NULL: the environment's RDMATENSOR_DEVICE_PATH, else
 *        /dev/rdmatensor
 * @out: the handle, for rdmatensor_close(); NULL if the call fails
 *
 * Return: 0; -ENOENT: the module is not loaded; -EACCES: no permission;
 * -ENOTTY: the file is no rdmatensor device; -ENOMEM.
 */
int rdmatensor_open(const char *path, struct rdmatensor **out);

/**
 * rdmatensor_open_cause() - the same, and why it fails
 * @path: as for rdmatensor_open()
 * @out: as for rdmatensor_open()
 * @cause: see above; names the file and what to do. Left alone if the call succeeds
 * @cause_len: its length
 */
int rdmatensor_open_cause(const char *path, struct rdmatensor **out, char *cause,
			  size_t cause_len);

/**
 * rdmatensor_close() - end a context
 * @rt: handle, or NULL
 *
 * Unmaps the ring and all pools that the handle has mapped. Fetches in flight are ended by
 * the kernel, which waits, in bounded time, until no peer can write any more. Pools, and
 * tensors that are published with uses 0, end with their domain: now, unless a descriptor from
 * rdmatensor_domain_create() or another context has it, too.
 */
void rdmatensor_close(struct rdmatensor *rt);

/**
 * rdmatensor_fd() - the file descriptor, for poll()
 * @rt: handle
 *
 * POLLIN: the ring has entries, and as long as it has some. POLLERR without POLLIN: rdmatensor_start()
 * has not run; or the device has gone, from when the channels have ended on, for good. Gathers, and
 * what the CPU still copies or compares, may have entries later, and so may what needs no peer and is
 * submitted then. A submit that waits is woken by entries alone. The descriptor belongs to the handle:
 * never read, write or close it.
 */
int rdmatensor_fd(const struct rdmatensor *rt);

int rdmatensor_query_sized(struct rdmatensor *rt, struct rdmatensor_query *query, size_t size);

/**
 * rdmatensor_query() - ioctl(RDMATENSOR_QUERY)
 * @rt: handle; START is not needed
 * @query: out; @query->size is filled in by the library
 */
static inline int rdmatensor_query(struct rdmatensor *rt, struct rdmatensor_query *query)
{
	return rdmatensor_query_sized(rt, query, sizeof(*query));
}

void rdmatensor_start_init_sized(struct rdmatensor_start *start, size_t size, const char *worker);

/**
 * rdmatensor_start_init() - make START's argument with all defaults
 * @start: cleared and filled in
 * @worker: this worker's name, cut to RDMATENSOR_WORKER_MAX - 1 bytes; NULL or
 *          "": the host's name and the process id, as "host-123"
 */
static inline void rdmatensor_start_init(struct rdmatensor_start *start, const char *worker)
{
	rdmatensor_start_init_sized(start, sizeof(*start), worker);
}

/**
 * rdmatensor_start_set() - choose a parameter's value, whatever the host's default is
 * @start: from rdmatensor_start_init(); its field and its mask are set
 * @name: of the parameter, as in rdmatensor-params(7)
 * @value: of its range, which may have 0; RDMATENSOR_PARAM_AUTO (rdmatensor/params.h): auto
 *
 * A field that is written without it is meant if it is not 0.
 *
 * Return: 0; -ENOENT: START has no such parameter; -EINVAL: out of its range.
 */
int rdmatensor_start_set(struct rdmatensor_start *start, const char *name, uint64_t value);

/**
 * rdmatensor_start_from_env() - take START's fields from the environment
 * @start: filled in where a variable is set and not empty
 * @cause: see above; names the variable, its value and the range
 * @cause_len: its length
 *
 * RDMA_DEVICE, and those of the table in rdmatensor/params.h, which
 * rdmatensor-params(7) shows. Numbers are decimal, or hexadecimal with 0x; or auto, where
 * that is in the range. Each is as rdmatensor_start_set() would have it.
 *
 * Return: 0; -EINVAL: a value is no number, out of its range, or the two names
 * of one parameter are set to different values; @start is unchanged then.
 */
int rdmatensor_start_from_env(struct rdmatensor_start *start, char *cause,
			      size_t cause_len);

/**
 * rdmatensor_start_rest_from_env() - the same, for what the program has not chosen
 * @start: filled in where a variable is set and not empty, and the field was not set by
 *         rdmatensor_start_set() or written
 * @cause: see above
 * @cause_len: its length
 *
 * The variable of a field that is chosen already is not looked at, so that a program's
 * option is a remedy for a variable that is refused.
 *
 * Return: as rdmatensor_start_from_env().
 */
int rdmatensor_start_rest_from_env(struct rdmatensor_start *start, char *cause,
				   size_t cause_len);

/**
 * rdmatensor_start_listen() - set where START listens
 * @start: its listen_addr and RDMATENSOR_START_LISTEN are set
 * @addr: as for rdmatensor_parse_addr(); without a host: every IPv4 address; "[::]": every
 *        address. A port that is not there or 0: any free one, see rdmatensor_query()
 * @cause: see above
 * @cause_len: its length
 *
 * Return: as rdmatensor_parse_addr().
 */
int rdmatensor_start_listen(struct rdmatensor_start *start, const char *addr,
			    char *cause, size_t cause_len);

/**
 * rdmatensor_start() - ioctl(RDMATENSOR_START), and map the completion ring
 * @rt: handle
 * @start: from rdmatensor_start_init(). Its cause is valid after the call,
 *         failed or not
 *
 * After a failure, that of the mapping included, it may be called again. Of several
 * threads that call it at the same time one starts the context, by its own @start; the
 * others get -EISCONN.
 */
int rdmatensor_start(struct rdmatensor *rt, struct rdmatensor_start *start);

/**
 * rdmatensor_configure() - ioctl(RDMATENSOR_CONFIGURE)
 * @rt: handle
 * @mask: which flags to set
 * @flags: RDMATENSOR_CONFIGURE_VALIDATE
 */
int rdmatensor_configure(struct rdmatensor *rt, uint32_t mask, uint32_t flags);

/**
 * rdmatensor_stats() - ioctl(RDMATENSOR_STATS)
 * @rt: handle
 * @channel: a channel's counters; 0: the context's
 * @counters: out, indexed by enum rdmatensor_stat; those that the kernel does
 *            not have are 0
 * @nr: room at @counters, most often RDMATENSOR_STAT_NR
 */
int rdmatensor_stats(struct rdmatensor *rt, uint32_t channel,
		     uint64_t *counters, unsigned int nr);

/**
 * rdmatensor_stat_name() - name of a counter, as "tx_writes"
 * @stat: enum rdmatensor_stat
 *
 * Return: a static string; NULL: the library knows no such counter.
 */
const char *rdmatensor_stat_name(unsigned int stat);

/*
 * Domains: what stays when a process ends
 */

/**
 * rdmatensor_domain_create() - a descriptor of the handle's domain
 * @rt: handle, started
 * @flags: RDMATENSOR_DOMAIN_CLOEXEC, or 0
 * @fd: out: the caller's, to close
 *
 * Pools, their registration, and what was published with uses 0 stay as long as the descriptor,
 * or a copy of it, is open in any process. A process that is forked to keep it inherits the
 * context as well, which then stays open, too: fork before rdmatensor_open(), or execute a
 * program, for which @flags must be 0. See struct rdmatensor_domain_create.
 *
 * Return: 0; -EOPNOTSUPP: the module is older than this; -EUSERS, -EMFILE, -ENFILE, -ENODEV.
 */
int rdmatensor_domain_create(struct rdmatensor *rt, uint32_t flags, int *fd);

/**
 * rdmatensor_start_domain() - have rdmatensor_start() join a domain
 * @start: as initialised
 * @fd: of the domain; it may be closed after rdmatensor_start()
 *
 * Return: 0; -EINVAL: the struct has no room for it: the program was built with an older header.
 */
int rdmatensor_start_domain(struct rdmatensor_start *start, int fd);

/**
 * rdmatensor_domain_query() - ioctl(RDMATENSOR_DOMAIN_QUERY)
 * @fd: of the domain
 * @query: out; the caller sets size to that of its struct, and all else to 0
 *
 * Return: 0; -EINVAL: it is no domain's; -EBADF.
 */
int rdmatensor_domain_query(int fd, struct rdmatensor_domain_query *query);

/**
 * rdmatensor_lasting_query() - ioctl(RDMATENSOR_LASTING_QUERY)
 * @rt: handle, started
 * @query: in: the caller sets size to that of its struct, and all else to 0; out
 *
 * Called again with the same struct it goes through all tensors that were published
 * in the domain with uses 0.
 *
 * Return: 0; -ENOENT: there is no further one.
 */
int rdmatensor_lasting_query(struct rdmatensor *rt, struct rdmatensor_lasting_query *query);

/**
 * rdmatensor_dump() - ioctl(RDMATENSOR_DUMP)
 * @rt: handle; it need not be started
 * @dump: in: the caller sets size to that of its struct, command, buf_uptr and room, and all else to
 *        0; out
 *
 * What `rdmatensor show` tells of the calling user's own contexts and domains, as messages of
 * <rdmatensor/netlink.h>, for those who may not ask by netlink. Each call leaves out_bytes of them
 * in the buffer, which has at least RDMATENSOR_DUMP_ROOM_MIN bytes: struct nlmsghdr, struct
 * genlmsghdr, attributes; libnl's nlmsg_ok(), nlmsg_next() and genlmsg_parse() read them. Called
 * again with the same struct it goes on, until out_bytes is 0. If flags has
 * RDMATENSOR_DUMP_CHANGED after one of the calls, some may be missing: set place and generation to
 * 0, forget what came, and begin again. ulib/examples/own.c lists contexts so.
 *
 * Return: 0; -EINVAL; -EFAULT; -ENOMEM; -ENOTTY: the module is older than this.
 */
int rdmatensor_dump(struct rdmatensor *rt, struct rdmatensor_dump *dump);

/*
 * Pools
 */

/**
 * rdmatensor_pool_create() - make a pool that peers may write to, and map it
 * @rt: handle, started
 * @bytes: at least 1, rounded up to whole pages
 * @pool: out
 *
 * Return: 0; -ENOMEM: the memory cgroup's limit or the machine's, or, with the module's parameter
 * memlock, RLIMIT_MEMLOCK (ulimit -l); -EDQUOT: rdma.max of the RDMA cgroup; see struct
 * rdmatensor_pool_create.
 */
int rdmatensor_pool_create(struct rdmatensor *rt, uint64_t bytes,
			   struct rdmatensor_pool *pool);

/**
 * rdmatensor_pool_create_peers() - make a pool and map it
 * @rt: handle, started
 * @bytes: at least 1, rounded up to whole pages
 * @peers: what they may do with it. What is only published needs RDMATENSOR_POOL_PEERS_NONE,
 *         rows that are exported RDMATENSOR_POOL_PEERS_READ: then no peer can change them
 * @pool: out
 */
int rdmatensor_pool_create_peers(struct rdmatensor *rt, uint64_t bytes,
				 enum rdmatensor_pool_peers peers, struct rdmatensor_pool *pool);

/**
 * rdmatensor_pool_register() - make a pool of memory that the process has
 * @rt: handle, started
 * @addr: of the first page, a multiple of the page size
 * @bytes: a multiple of the page size, at least one
 * @peers: what they may do with it
 * @flags: RDMATENSOR_REGISTER_READ_ONLY, or 0
 * @pool: out: its base is @addr
 * @cause: as for rdmatensor_open_cause(), left alone on success
 * @cause_len: its length
 *
 * All of it is one region that the caller holds, so that any range of it can be published,
 * exported or be a destination. Nothing is left for rdmatensor_pool_alloc() and RDMATENSOR_ALLOC
 * (-ENOSPC), unless rdmatensor_pool_free() frees the region, at 0. The memory stays pinned, and
 * the same, until the pool is destroyed, whatever becomes of the addresses: keep them until then.
 * See struct rdmatensor_pool_register for the errors, and for what fork() does.
 */
int rdmatensor_pool_register(struct rdmatensor *rt, void *addr, uint64_t bytes,
			     enum rdmatensor_pool_peers peers, uint32_t flags,
			     struct rdmatensor_pool *pool, char *cause, size_t cause_len);

/**
 * rdmatensor_pool_import() - make a pool of another driver's memory
 * @rt: handle, started
 * @dmabuf: descriptor of a dma-buf, which can be closed afterwards
 * @peers: what they may do with it
 * @flags: RDMATENSOR_IMPORT_READ_ONLY, or 0
 * @pool: out: its base is NULL: map the dma-buf where the CPU is to see it
 * @out_flags: out: RDMATENSOR_IMPORTED_UNREACHABLE, or 0; may be NULL
 * @cause: as for rdmatensor_open_cause(), left alone on success
 * @cause_len: its length
 *
 * All of it is one region, as for rdmatensor_pool_register(). See struct rdmatensor_pool_import
 * for the errors, and for what cannot be done with memory that the CPU cannot reach.
 */
int rdmatensor_pool_import(struct rdmatensor *rt, int dmabuf, enum rdmatensor_pool_peers peers,
			   uint32_t flags, struct rdmatensor_pool *pool, uint32_t *out_flags,
			   char *cause, size_t cause_len);

/**
 * rdmatensor_pool_query() - ioctl(RDMATENSOR_POOL_QUERY)
 * @rt: handle, started
 * @query: in: the caller sets size to that of its struct, pool_id and flags; out
 *
 * With RDMATENSOR_POOL_NEXT, called again with the same struct, it goes through all pools of the
 * domain. Return: 0; -ENOENT: there is no such pool, or no further one.
 */
int rdmatensor_pool_query(struct rdmatensor *rt, struct rdmatensor_pool_query *query);

/**
 * rdmatensor_pool_open() - use a pool of the domain that is there already, and map it
 * @rt: handle, started
 * @id: of the pool
 * @pool: out: base is NULL if it is memory that its maker has registered or imported, and mapped
 *        itself: map the file or the dma-buf
 *
 * Return: 0; -ENOENT: there is no such pool.
 */
int rdmatensor_pool_open(struct rdmatensor *rt, uint32_t id, struct rdmatensor_pool *pool);

/**
 * rdmatensor_pool_close() - unmap a pool, which stays in the domain
 * @rt: handle
 * @pool: the pool; cleared
 */
void rdmatensor_pool_close(struct rdmatensor *rt, struct rdmatensor_pool *pool);

/**
 * rdmatensor_pool_destroy() - destroy a pool and unmap it
 * @rt: handle
 * @pool: the pool; cleared when the call succeeds
 *
 * Memory that was registered stays mapped: it is the caller's.
 *
 * Return: 0; -ENOENT: there is no such pool; -EBUSY: something in it is published, exported or
 * being fetched (`rdmatensor show pools` has how much), and the pool is as before. Once all
 * entries have been reaped and all tables that have rows in it closed, it is not busy any more.
 */
int rdmatensor_pool_destroy(struct rdmatensor *rt,
			    struct rdmatensor_pool *pool);

/**
 * rdmatensor_pool_alloc() - allocate a region of a pool
 * @rt: handle
 * @pool: the pool
 * @bytes: at least 1
 * @offset: out: where it begins, a multiple of RDMATENSOR_REGION_ALIGN
 *
 * Give it back with rdmatensor_pool_free() or an operation RDMATENSOR_OP_FREE.
 */
int rdmatensor_pool_alloc(struct rdmatensor *rt,
			  const struct rdmatensor_pool *pool, uint64_t bytes,
			  uint64_t *offset);

/**
 * rdmatensor_pool_free() - give a region back (one SUBMIT)
 * @rt: handle
 * @pool: the pool
 * @offset: where the region begins
 *
 * Return: 0; -ENOENT: no region begins there; -EBUSY: a tensor in it is
 * published or being fetched.
 */
int rdmatensor_pool_free(struct rdmatensor *rt,
			 const struct rdmatensor_pool *pool, uint64_t offset);

/*
 * Tables
 */

/**
 * rdmatensor_table_export() - ioctl(RDMATENSOR_TABLE_EXPORT)
 * @rt: handle, started
 * @name: the table's
 * @pool: that the rows are in
 * @offset: of the first one, a multiple of 4096
 * @row_start: its number in the table
 * @row_end: number after the last row
 * @row_bytes: bytes of a row
 * @stride: distance of two rows in bytes; 0: @row_bytes
 * @data_type: enum rdmatensor_data_type of the elements
 * @table: out: for rdmatensor_table_close()
 *
 * Lets all peers of this context read the rows. See struct rdmatensor_table_export for
 * what has to be true of the pool's region, and for the errors.
 */
int rdmatensor_table_export(struct rdmatensor *rt, const char *name,
			    const struct rdmatensor_pool *pool, uint64_t offset,
			    uint64_t row_start, uint64_t row_end, uint64_t row_bytes,
			    uint64_t stride, uint32_t data_type, uint32_t *table);

int rdmatensor_table_open_sized(struct rdmatensor *rt, const char *name, const uint32_t *channels,
				unsigned int nr_channels, struct rdmatensor_table_open *open,
				size_t size);

/**
 * rdmatensor_table_open() - ioctl(RDMATENSOR_TABLE_OPEN)
 * @rt: handle, started
 * @name: the table's
 * @channels: to all owners, whichever side has connected them; RDMATENSOR_CHANNEL_SELF:
 *            this context's own export
 * @nr_channels: their number
 * @open: in: caches, order and timeout, all else 0; out: out_table, out_rows,
 *        out_row_bytes, data_type; and cause, valid after the call, failed or not
 *
 * Return: 0 or a negative errno, see struct rdmatensor_table_open.
 */
static inline int
rdmatensor_table_open(struct rdmatensor *rt, const char *name, const uint32_t *channels,
		      unsigned int nr_channels, struct rdmatensor_table_open *open)
{
	return rdmatensor_table_open_sized(rt, name, channels, nr_channels, open, sizeof(*open));
}

/**
 * rdmatensor_table_close() - ioctl(RDMATENSOR_TABLE_CLOSE)
 * @rt: handle, started
 * @table: from rdmatensor_table_export() or rdmatensor_table_open()
 */
int rdmatensor_table_close(struct rdmatensor *rt, uint32_t table);

/*
 * Channels
 */

/**
 * rdmatensor_parse_addr() - turn text into an address
 * @text: "host", "host:port", "v4", "v4:port", "[v6]:port", "[v6]", "v6",
 *        "v6%interface"; ":port" and "*:port" where @passive
 * @default_port: port when @text has none
 * @passive: an address to listen on: no host is every IPv4 address
 * @addr: out: struct sockaddr_in or _in6, the rest zero; 28 bytes, as in
 *        struct rdmatensor_connect and _start
 * @cause: see above
 * @cause_len: its length
 *
 * Host names are looked up by getaddrinfo(), so this may take seconds.
 *
 * Return: 0; -EINVAL: the text has no such form, or the port is not in
 * 1..65535 (@passive: 0..65535); -EADDRNOTAVAIL: the name is not known.
 */
int rdmatensor_parse_addr(const char *text, uint16_t default_port, int passive,
			  uint8_t addr[28], char *cause, size_t cause_len);

/**
 * rdmatensor_format_addr() - turn an address into text, as "10.0.0.1:18521"
 * @addr: as of struct rdmatensor_channel_query
 * @text: out, zero-terminated; 80 bytes hold all
 * @text_len: its length
 *
 * Return: @text; "-" for an address family that is neither IPv4 nor IPv6.
 */
const char *rdmatensor_format_addr(const uint8_t addr[28], char *text,
				   size_t text_len);

/**
 * rdmatensor_connect() - set up a channel to a peer
 * @rt: handle, started
 * @peer: as for rdmatensor_parse_addr(), port RDMATENSOR_PORT if none is there
 * @worker: name that the peer must have; NULL or "": any
 * @timeout_ms: bound on the whole call; 0: START's handshake_ms
 * @channel: out: the channel's id
 * @cause: see above; filled in on success too
 * @cause_len: its length
 *
 * Looks the name up, tries its addresses as rdmatensor_connect_peer() does, and waits for a
 * peer that is not up yet; for callers that do not want that, rdmatensor_connect_peer() has
 * RDMATENSOR_CONNECT_NOWAIT. Its CHANNEL_DOWN entry has user_data 0.
 */
int rdmatensor_connect(struct rdmatensor *rt, const char *peer,
		       const char *worker, uint32_t timeout_ms,
		       uint32_t *channel, char *cause, size_t cause_len);

int rdmatensor_connect_peer_sized(struct rdmatensor *rt, const char *peer,
				  struct rdmatensor_connect *connect, size_t size, char *cause,
				  size_t cause_len);

/**
 * rdmatensor_connect_peer() - the same, with all that ioctl(RDMATENSOR_CONNECT) takes
 * @rt: handle, started
 * @peer: as for rdmatensor_connect()
 * @connect: argument: @connect->addr and size are filled in by the library
 * @cause: see above; filled in on success too
 * @cause_len: its length
 *
 * A host may have several addresses, of which the RDMA device need not reach the first, and
 * the peer listens on one. They are tried in turns, in getaddrinfo()'s order: once each with
 * RDMATENSOR_CONNECT_NOWAIT, else until the timeout, for the peer may come later. The bound
 * is on all of them together. With one address it is one ioctl.
 *
 * Return: as the ioctl whose cause it is, or as rdmatensor_parse_addr().
 */
static inline int
rdmatensor_connect_peer(struct rdmatensor *rt, const char *peer,
			struct rdmatensor_connect *connect, char *cause, size_t cause_len)
{
	return rdmatensor_connect_peer_sized(rt, peer, connect, sizeof(*connect), cause,
					     cause_len);
}

int rdmatensor_connect_raw_sized(struct rdmatensor *rt, struct rdmatensor_connect *connect,
				 size_t size);

/**
 * rdmatensor_connect_raw() - ioctl(RDMATENSOR_CONNECT) as it is
 * @rt: handle, started
 * @connect: argument; @connect->size is filled in by the library
 */
static inline int
rdmatensor_connect_raw(struct rdmatensor *rt, struct rdmatensor_connect *connect)
{
	return rdmatensor_connect_raw_sized(rt, connect, sizeof(*connect));
}

/**
 * rdmatensor_disconnect() - ioctl(RDMATENSOR_DISCONNECT)
 * @rt: handle
 * @channel: the channel
 */
int rdmatensor_disconnect(struct rdmatensor *rt, uint32_t channel);

int rdmatensor_channel_query_sized(struct rdmatensor *rt, struct rdmatensor_channel_query *query,
				   size_t size);

/**
 * rdmatensor_channel_query() - ioctl(RDMATENSOR_CHANNEL_QUERY)
 * @rt: handle
 * @query: channel and flags are read, the rest is written; @query->size is
 *         filled in by the library
 */
static inline int
rdmatensor_channel_query(struct rdmatensor *rt, struct rdmatensor_channel_query *query)
{
	return rdmatensor_channel_query_sized(rt, query, sizeof(*query));
}

/**
 * rdmatensor_channel_find() - the channel to a worker, whichever side has connected it
 * @rt: handle, started
 * @worker: the peer's name
 * @channel: out: the one that has come last, if there are several
 *
 * A few ioctls: one for each channel. Return: 0; -ENOENT: no channel to it is up; -ENOTUNIQ:
 * two workers have that name.
 */
int rdmatensor_channel_find(struct rdmatensor *rt, const char *worker, uint32_t *channel);

/**
 * rdmatensor_step_abort() - ioctl(RDMATENSOR_STEP_ABORT)
 * @rt: handle
 * @step_id: the step
 * @status: negative errno that all of the step ends with
 * @text: goes with it; NULL: none. Cut to RDMATENSOR_STATUS_TEXT_MAX bytes
 */
int rdmatensor_step_abort(struct rdmatensor *rt, int64_t step_id, int status,
			  const char *text);

/*
 * Operations. Each rdmatensor_prep_*() clears and fills one entry of an array
 * for rdmatensor_submit(). Names are zero-terminated here; for other bytes set
 * op->name_uptr and op->name_len afterwards.
 */

/**
 * rdmatensor_op_ptr() - a pointer as the ABI holds it
 * @ptr: pointer
 */
static inline uint64_t rdmatensor_op_ptr(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

static inline void rdmatensor_prep(struct rdmatensor_op *op, int opcode,
				   const char *name, int64_t step_id,
				   uint64_t user_data)
{
	memset(op, 0, sizeof(*op));
	op->opcode = (__u16)opcode;
	op->user_data = user_data;
	op->step_id = step_id;
	if (name) {
		op->name_uptr = rdmatensor_op_ptr(name);
		op->name_len = (__u32)strlen(name);
	}
}

/**
 * rdmatensor_prep_publish() - offer a tensor
 * @op: entry to fill in
 * @name: the tensor's name
 * @step_id: its step
 * @pool_id: where it is: the pool,
 * @offset: the offset, a multiple of RDMATENSOR_REGION_ALIGN (any byte of a pool that was
 *          registered or imported),
 * @bytes: and the length
 * @data_type: enum rdmatensor_data_type
 * @ndims: length of its shape, 0 is a scalar
 * @dims: the shape; must live until the submit
 * @uses: deliveries, 0: until withdrawn
 * @user_data: for its entry RDMATENSOR_CQE_PUBLISH (with @uses 0: none comes)
 *
 * With op->flags |= RDMATENSOR_OP_COPY afterwards the tensor is copied before the
 * submit returns; its memory is free then.
 */
static inline void
rdmatensor_prep_publish(struct rdmatensor_op *op, const char *name,
			int64_t step_id, uint32_t pool_id, uint64_t offset,
			uint64_t bytes, uint32_t data_type, uint32_t ndims,
			const uint64_t *dims, uint32_t uses, uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_PUBLISH, name, step_id, user_data);
	op->pool_id = pool_id;
	op->offset = offset;
	op->bytes = bytes;
	op->data_type = data_type;
	op->ndims = ndims;
	op->dims_uptr = ndims ? rdmatensor_op_ptr(dims) : 0;
	op->uses = uses;
}

/**
 * rdmatensor_prep_publish_dead() - offer a dead tensor: meta-data, no content
 * @op: entry to fill in
 * @name: the tensor's name
 * @step_id: its step
 * @data_type: enum rdmatensor_data_type
 * @ndims: length of its shape
 * @dims: the shape; must live until the submit
 * @uses: deliveries, 0: until withdrawn
 * @user_data: for its entry
 */
static inline void
rdmatensor_prep_publish_dead(struct rdmatensor_op *op, const char *name,
			     int64_t step_id, uint32_t data_type,
			     uint32_t ndims, const uint64_t *dims, uint32_t uses,
			     uint64_t user_data)
{
	rdmatensor_prep_publish(op, name, step_id, 0, 0, 0, data_type, ndims,
				dims, uses, user_data);
	op->flags = RDMATENSOR_OP_DEAD;
}

/**
 * rdmatensor_prep_publish_failed() - say that there is no tensor, and why
 * @op: entry to fill in
 * @name: the tensor's name
 * @step_id: its step
 * @status: negative errno that fetches of it end with
 * @text: goes with it, NULL: none; at most RDMATENSOR_STATUS_TEXT_MAX bytes. Must live
 *        until the submit
 * @uses: deliveries, 0: until withdrawn
 * @user_data: for its entry
 */
static inline void
rdmatensor_prep_publish_failed(struct rdmatensor_op *op, const char *name,
			       int64_t step_id, int status, const char *text,
			       uint32_t uses, uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_PUBLISH, name, step_id, user_data);
	op->flags = RDMATENSOR_OP_FAILED;
	op->status = status;
	op->uses = uses;
	if (text) {
		op->text_uptr = rdmatensor_op_ptr(text);
		op->text_len = (__u32)strlen(text);
	}
}

/**
 * rdmatensor_prep_withdraw() - take a tensor back
 * @op: entry to fill in
 * @name: the tensor's name
 * @step_id: its step
 * @user_data: for its entry RDMATENSOR_CQE_WITHDRAW
 *
 * To mean one publication and no other of its name set op->target to its user_data afterwards.
 */
static inline void rdmatensor_prep_withdraw(struct rdmatensor_op *op,
					    const char *name, int64_t step_id,
					    uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_WITHDRAW, name, step_id, user_data);
}

/**
 * rdmatensor_group() - the number of a group that has a name
 * @name: any string
 *
 * Return: FNV-1a of 64 bits, the same in all versions: what rdmatensor_offer_generation() has.
 */
static inline uint64_t rdmatensor_group(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
	return hash;
}

/**
 * rdmatensor_prep_in_generation() - add a tensor to a generation
 * @op: prepared by rdmatensor_prep_publish() or rdmatensor_prep_publish_failed(), with uses 0
 * @group: whose generation: any number that its writers have agreed on
 *
 * The tensor is hidden until rdmatensor_prep_reveal() of its step and group. SUBMIT refuses it with
 * -EALREADY (that generation is visible), -EBUSY (another context of the domain fills it) and
 * -ENOSPC (RDMATENSOR_GENERATIONS_MAX of the domain are not over).
 */
static inline void rdmatensor_prep_in_generation(struct rdmatensor_op *op, uint64_t group)
{
	op->flags |= RDMATENSOR_OP_GENERATION;
	op->target = group;
}

/**
 * rdmatensor_prep_reveal() - make a generation visible in place of the former one
 * @op: entry to fill in
 * @group: its group
 * @step_id: its step
 * @user_data: for its entry RDMATENSOR_CQE_REVEAL, which comes when nothing reads the tensors of the
 *             former generation any more
 *
 * All tensors that this context has published for it become visible in one moment, in which those of
 * the group's visible generation, whatever its step, cease to be. SUBMIT refuses it with -ENOENT: there
 * is nothing hidden, or it is visible already.
 */
static inline void rdmatensor_prep_reveal(struct rdmatensor_op *op, uint64_t group,
					  int64_t step_id, uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_REVEAL, NULL, step_id, user_data);
	op->target = group;
}

/**
 * rdmatensor_prep_withdraw_generation() - take all tensors of a generation back
 * @op: entry to fill in
 * @group: its group
 * @step_id: its step
 * @user_data: for its entry RDMATENSOR_CQE_WITHDRAW
 *
 * Hidden or visible, of whatever context of the domain.
 */
static inline void rdmatensor_prep_withdraw_generation(struct rdmatensor_op *op, uint64_t group,
						       int64_t step_id, uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_WITHDRAW, NULL, step_id, user_data);
	op->flags = RDMATENSOR_OP_GENERATION;
	op->target = group;
}

/**
 * rdmatensor_prep_fetch() - fetch a tensor to a place in a pool
 * @op: entry to fill in
 * @channel: the peer, or RDMATENSOR_CHANNEL_SELF
 * @name: the tensor's name
 * @step_id: its step
 * @pool_id: destination: the pool,
 * @offset: the offset, a multiple of RDMATENSOR_REGION_ALIGN (any byte of a pool that was
 *          registered or imported),
 * @bytes: and its length, at least the tensor's
 * @deadline_ns: when to give up
 * @user_data: for its entry RDMATENSOR_CQE_FETCH
 *
 * With op->flags |= RDMATENSOR_OP_KEEP afterwards the peer remembers the destination,
 * and the next such fetches of the name to the same place need not tell it. With
 * RDMATENSOR_OP_NEWEST the newest step from @step_id on comes, and the entry says which; with
 * RDMATENSOR_OP_NOWAIT what is not offered is -ENOENT at once. Both go with the other kinds of fetches
 * too.
 */
static inline void
rdmatensor_prep_fetch(struct rdmatensor_op *op, uint32_t channel,
		      const char *name, int64_t step_id, uint32_t pool_id,
		      uint64_t offset, uint64_t bytes, uint64_t deadline_ns,
		      uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_FETCH, name, step_id, user_data);
	op->channel = channel;
	op->pool_id = pool_id;
	op->offset = offset;
	op->bytes = bytes;
	op->deadline_ns = deadline_ns;
}

/**
 * rdmatensor_prep_fetch_alloc() - fetch a tensor, allocating its place
 * @op: entry to fill in
 * @channel: the peer, or RDMATENSOR_CHANNEL_SELF
 * @name: the tensor's name
 * @step_id: its step
 * @pool_id: pool to allocate in; its entry says where the tensor is
 * @max_bytes: longest tensor to allocate for, 0: any
 * @deadline_ns: when to give up
 * @user_data: for its entry RDMATENSOR_CQE_FETCH
 *
 * The region is the caller's when the fetch has succeeded and tensor_bytes of its entry is not 0, to
 * free with rdmatensor_prep_free(). There is none if the fetch has failed or was cancelled, or if the
 * tensor is empty or dead: offset then means nothing.
 */
static inline void
rdmatensor_prep_fetch_alloc(struct rdmatensor_op *op, uint32_t channel,
			    const char *name, int64_t step_id,
			    uint32_t pool_id, uint64_t max_bytes,
			    uint64_t deadline_ns, uint64_t user_data)
{
	rdmatensor_prep_fetch(op, channel, name, step_id, pool_id, 0,
			      max_bytes, deadline_ns, user_data);
	op->flags = RDMATENSOR_OP_ALLOC;
}

/**
 * rdmatensor_prep_proxy() - let a fetch have a destination that its peer cannot write
 * @op: filled in by rdmatensor_prep_fetch()
 * @proxy_pool_id: pool that peers write, with room for the tensor while it is on its way
 *
 * Where the peer can write the destination it does. Else it writes to a region that the kernel
 * allocates in @proxy_pool_id, copies to the destination and frees.
 */
static inline void rdmatensor_prep_proxy(struct rdmatensor_op *op, uint32_t proxy_pool_id)
{
	op->flags |= RDMATENSOR_OP_PROXY;
	op->proxy_pool_id = proxy_pool_id;
}

/**
 * rdmatensor_prep_fetch_memory() - fetch a tensor to memory that is in no pool
 * @op: entry to fill in
 * @channel: the peer, or RDMATENSOR_CHANNEL_SELF
 * @name: the tensor's name
 * @step_id: its step
 * @to: destination: any address of the process. Its pages are locked memory until the entry
 * @bytes: its length, at least the tensor's
 * @proxy_pool_id: pool that peers write, with room for the tensor while it is on its way
 * @deadline_ns: when to give up
 * @user_data: for its entry RDMATENSOR_CQE_FETCH, whose offset is @to, and whose pool_id is 0
 */
static inline void
rdmatensor_prep_fetch_memory(struct rdmatensor_op *op, uint32_t channel,
			     const char *name, int64_t step_id, void *to,
			     uint64_t bytes, uint32_t proxy_pool_id,
			     uint64_t deadline_ns, uint64_t user_data)
{
	rdmatensor_prep_fetch(op, channel, name, step_id, 0, rdmatensor_op_ptr(to),
			      bytes, deadline_ns, user_data);
	rdmatensor_prep_proxy(op, proxy_pool_id);
}

/**
 * rdmatensor_prep_slice() - have a fetch bring a part of the tensor
 * @op: prepared by rdmatensor_prep_fetch(), rdmatensor_prep_fetch_alloc() or
 *      rdmatensor_prep_fetch_memory()
 * @ranges: of the first dims, the slowest first; or of the bytes of the content. To be there until
 *          SUBMIT has returned
 * @ndims: number of @ranges: of the dims behind them all is taken; 0: @ranges is one, of bytes
 *
 * The part lies at the destination without gaps, and the room that counts is the part's. Its entry has
 * the lengths of the ranges as its shape, and of dims without one theirs; a range of bytes is of
 * RDMATENSOR_DT_UINT8 with one dim, and is all that an opaque tensor has. -ERANGE: the tensor has no such
 * part, and the text says what it has. SUBMIT refuses it with -EOPNOTSUPP (the peer's module is too old)
 * and -EINVAL (more than RDMATENSOR_DIMS_MAX ranges, an end beyond 2^63 - 1; RDMATENSOR_OP_KEEP or
 * RDMATENSOR_OP_SHARE). See RDMATENSOR_OP_FETCH, in rdmatensor_opcode(3type).
 */
static inline void rdmatensor_prep_slice(struct rdmatensor_op *op,
					 const struct rdmatensor_range *ranges, uint32_t ndims)
{
	op->flags |= RDMATENSOR_OP_SLICE;
	op->ndims = ndims;
	op->dims_uptr = rdmatensor_op_ptr(ranges);
}

/**
 * rdmatensor_prep_strides() - elements that do not lie together
 * @op: prepared by rdmatensor_prep_publish(), by rdmatensor_prep_fetch() or
 *      rdmatensor_prep_fetch_memory(), and then by rdmatensor_prep_slice() or not
 * @strides: of each dim, the slowest first: bytes from an element to the next one, and how many elements
 *           have a place. To be there until SUBMIT has returned
 * @nr: number of @strides: the dims of what is published, or of what comes, its slice's; a range of bytes
 *      has one
 *
 * A tensor is published as a view: its offset is that of the first element, which may be anywhere in a
 * region, and it is read in place. A fetch writes each element to its place from the destination's offset
 * on, which may be anywhere, too, and nothing else; @bytes of it are those from the first element to the
 * last, and data_type may say of which type those are. Before anything is written the fetch ends with
 * -ERANGE if what comes has another number of dims or is opaque, with -EINVAL if elements would overlap
 * or are of another type, with -EMSGSIZE if a dim has more of them than places, or all of them take more
 * bytes. SUBMIT refuses it
 * with -EOPNOTSUPP (the peer's module is too old), -EINVAL (more than RDMATENSOR_DIMS_MAX strides, one
 * beyond 2^63 - 1; RDMATENSOR_OP_ALLOC, RDMATENSOR_OP_KEEP or RDMATENSOR_OP_SHARE), and a PUBLISH with
 * -ERANGE. See RDMATENSOR_OP_PUBLISH and RDMATENSOR_OP_FETCH, in rdmatensor_opcode(3type).
 */
static inline void rdmatensor_prep_strides(struct rdmatensor_op *op,
					   const struct rdmatensor_stride *strides, uint32_t nr)
{
	op->flags |= RDMATENSOR_OP_STRIDES;
	op->nr_strides = nr;
	op->strides_uptr = rdmatensor_op_ptr(strides);
}

/**
 * rdmatensor_prep_fetch_shared() - have the tensor itself that this context has published
 * @op: entry to fill in
 * @name: the tensor's name
 * @step_id: its step
 * @deadline_ns: when to give up
 * @user_data: for its entry RDMATENSOR_CQE_FETCH, which says in which pool it is, and where
 *
 * Its publisher must have set RDMATENSOR_OP_SHARE in the operation's flags. The bytes are to be
 * left alone, and to be released by an operation of rdmatensor_prep_release() if the entry
 * has RDMATENSOR_CQE_SHARED.
 */
static inline void
rdmatensor_prep_fetch_shared(struct rdmatensor_op *op, const char *name, int64_t step_id,
			     uint64_t deadline_ns, uint64_t user_data)
{
	rdmatensor_prep_fetch(op, RDMATENSOR_CHANNEL_SELF, name, step_id, 0, 0, 0,
			      deadline_ns, user_data);
	op->flags = RDMATENSOR_OP_SHARE;
}

/**
 * rdmatensor_prep_release() - give a tensor back that was had as it is
 * @op: entry to fill in
 * @share_id: of the fetch's entry
 */
static inline void rdmatensor_prep_release(struct rdmatensor_op *op, uint32_t share_id)
{
	rdmatensor_prep(op, RDMATENSOR_OP_RELEASE, NULL, 0, 0);
	op->target = share_id;
}

/**
 * rdmatensor_prep_cancel() - end fetches, gathers and lists
 * @op: entry to fill in
 * @target: user_data of the operations: of all that have it
 *
 * It has no entry of its own. Those of the operations come when no peer can write to their
 * destinations any more, with -ECANCELED, or with 0 if all of the content had come before. With
 * several lanes that may be the rest of a long tensor later (START's stripe_bytes). SUBMIT says
 * -ENOENT if there are none; one that is being cancelled counts, and a second time changes nothing.
 */
static inline void rdmatensor_prep_cancel(struct rdmatensor_op *op,
					  uint64_t target)
{
	rdmatensor_prep(op, RDMATENSOR_OP_CANCEL, NULL, 0, 0);
	op->target = target;
}

/**
 * rdmatensor_prep_gather() - gather rows of a table
 * @op: entry to fill in
 * @table: from rdmatensor_table_open()
 * @ids: which rows, in the order in which they are wanted; left alone until they are
 *       submitted
 * @nr_ids: their number
 * @pool_id: destination: the pool,
 * @offset: the offset, a multiple of RDMATENSOR_REGION_ALIGN (any byte of a pool that was
 *          registered or imported),
 * @bytes: and its length, at least nr_ids rows
 * @deadline_ns: when to give up
 * @user_data: for its entry RDMATENSOR_CQE_GATHER
 */
static inline void
rdmatensor_prep_gather(struct rdmatensor_op *op, uint32_t table, const uint64_t *ids,
		       uint64_t nr_ids, uint32_t pool_id, uint64_t offset, uint64_t bytes,
		       uint64_t deadline_ns, uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_GATHER, NULL, 0, user_data);
	op->table = table;
	op->ids_uptr = rdmatensor_op_ptr(ids);
	op->nr_ids = nr_ids;
	op->pool_id = pool_id;
	op->offset = offset;
	op->bytes = bytes;
	op->deadline_ns = deadline_ns;
}

/* As above, with ids of 32 bits */
static inline void
rdmatensor_prep_gather32(struct rdmatensor_op *op, uint32_t table, const uint32_t *ids,
			 uint64_t nr_ids, uint32_t pool_id, uint64_t offset, uint64_t bytes,
			 uint64_t deadline_ns, uint64_t user_data)
{
	rdmatensor_prep_gather(op, table, NULL, nr_ids, pool_id, offset, bytes, deadline_ns,
			       user_data);
	op->ids_uptr = rdmatensor_op_ptr(ids);
	op->flags = RDMATENSOR_OP_IDS32;
}

/**
 * rdmatensor_prep_list() - have what a peer offers described
 * @op: entry to fill in
 * @channel: to the peer; RDMATENSOR_CHANNEL_SELF: what this context itself offers
 * @prefix: names that begin with it, zero-terminated; NULL or "": all names. For other bytes set
 *          name_uptr and name_len afterwards
 * @pool_id: destination: the pool,
 * @offset: the offset, a multiple of RDMATENSOR_REGION_ALIGN (of 8 in a pool that was registered
 *          or imported),
 * @bytes: and its length, at least RDMATENSOR_LIST_ENTRY_MAX to have one entry in any case
 * @cursor: 0 to begin; then rdmatensor_list_cursor() of the entry before
 * @deadline_ns: when to give up
 * @user_data: for its entry RDMATENSOR_CQE_LIST
 *
 * SUBMIT refuses it with -EINVAL (no bytes, not aligned, no such pool or channel), -EACCES (the pool is
 * read-only), -ENOTCONN, -EOPNOTSUPP (the peer's module is too old, or the CPU cannot reach the pool)
 * and -EAGAIN, as other operations; its entry has -EACCES (the peer does not tell), -EMSGSIZE (no
 * room for the first description), -ETIMEDOUT, -ECANCELED, or how the channel ended.
 */
static inline void
rdmatensor_prep_list(struct rdmatensor_op *op, uint32_t channel, const char *prefix,
		     uint32_t pool_id, uint64_t offset, uint64_t bytes, uint64_t cursor,
		     uint64_t deadline_ns, uint64_t user_data)
{
	rdmatensor_prep(op, RDMATENSOR_OP_LIST, NULL, 0, user_data);
	op->channel = channel;
	if (prefix && prefix[0]) {
		op->name_uptr = rdmatensor_op_ptr(prefix);
		op->name_len = (uint32_t)strlen(prefix);
	}
	op->pool_id = pool_id;
	op->offset = offset;
	op->bytes = bytes;
	op->target = cursor;
	op->deadline_ns = deadline_ns;
}

/**
 * rdmatensor_list_cursor() - where the next list goes on
 * @cqe: entry RDMATENSOR_CQE_LIST of one that has not failed
 *
 * Return: for rdmatensor_prep_list(), to the same peer in the same life of it; 0: nothing follows.
 */
static inline uint64_t rdmatensor_list_cursor(const struct rdmatensor_cqe *cqe)
{
	return cqe->cursor;
}

/**
 * rdmatensor_list_next() - go through what a list has described
 * @list: first byte of its destination
 * @bytes: tensor_bytes of its entry
 * @at: the description before it; NULL: begin
 *
 * What it returns lies within the list, whatever a peer that can write to the destination made of it
 * before; use a pool that peers cannot write.
 *
 * Return: the next description; NULL: there are no more.
 */
static inline const struct rdmatensor_list_entry *
rdmatensor_list_next(const void *list, uint64_t bytes, const struct rdmatensor_list_entry *at)
{
	uint64_t offset = at ? (uint64_t)((const char *)at - (const char *)list) + at->bytes : 0;
	const struct rdmatensor_list_entry *next;

	if (offset % 8 || offset >= bytes || bytes - offset < sizeof(*next))
		return NULL;
	next = (const struct rdmatensor_list_entry *)(const void *)((const char *)list + offset);
	if (next->bytes > bytes - offset ||
	    next->bytes <= sizeof(*next) + 8 * (uint64_t)next->ndims + next->name_len)
		return NULL;
	return next;
}

/**
 * rdmatensor_list_dims() - the shape of what is described
 * @at: the description
 *
 * Return: ndims dims, slowest first.
 */
static inline const uint64_t *rdmatensor_list_dims(const struct rdmatensor_list_entry *at)
{
	return (const uint64_t *)(const void *)(at + 1);
}

/**
 * rdmatensor_list_name() - the name of what is described
 * @at: the description
 *
 * Return: name_len bytes as they were published, any, and a 0 behind them.
 */
static inline const char *rdmatensor_list_name(const struct rdmatensor_list_entry *at)
{
	return (const char *)(rdmatensor_list_dims(at) + at->ndims);
}

/**
 * rdmatensor_prep_free() - give a region back
 * @op: entry to fill in
 * @pool_id: the pool
 * @offset: where the region begins
 */
static inline void rdmatensor_prep_free(struct rdmatensor_op *op,
					uint32_t pool_id, uint64_t offset)
{
	rdmatensor_prep(op, RDMATENSOR_OP_FREE, NULL, 0, 0);
	op->pool_id = pool_id;
	op->offset = offset;
}

int rdmatensor_submit_sized(struct rdmatensor *rt, const struct rdmatensor_op *ops,
			    size_t op_size, unsigned int nr, unsigned int wait_nr,
			    uint64_t deadline_ns, unsigned int *done);

/**
 * rdmatensor_submit() - submit operations, and wait if asked to
 * @rt: handle, started
 * @ops: operations; more than RDMATENSOR_SUBMIT_MAX are submitted in parts
 * @nr: their number, 0 is allowed
 * @wait_nr: then wait until the ring has this many entries to reap
 * @deadline_ns: end of the wait
 * @done: out: operations that were taken, from the first; NULL: not asked for
 *
 * Return: 0: all were taken, and the wait came to its goal. Else a negative
 * errno, with @done valid: if *@done < @nr it is the error of operation *@done
 * (-EAGAIN: the ring has no place: wait for an entry, reap, and submit the rest again) and there was no wait; else the
 * wait ended by -ETIME or -EINTR.
 */
static inline int
rdmatensor_submit(struct rdmatensor *rt, const struct rdmatensor_op *ops, unsigned int nr,
		  unsigned int wait_nr, uint64_t deadline_ns, unsigned int *done)
{
	return rdmatensor_submit_sized(rt, ops, sizeof(*ops), nr, wait_nr, deadline_ns, done);
}

/*
 * Completions
 */

/**
 * rdmatensor_wait() - wait until the ring has entries to reap
 * @rt: handle, started
 * @nr: how many
 * @deadline_ns: end of the wait
 *
 * No system call when they are there already. Beside a thread that reaps it tells that so
 * many were there at one moment, of which that thread may have taken some since; and it
 * goes on waiting for as many that are there together. Entries of blocking calls of other threads
 * count, and rdmatensor_reap() leaves them to those: it may return none after this, and a thread
 * that only reaps is woken for each of them. The entry of a withdrawal that a signal
 * interrupted counts, and is then dropped.
 *
 * Return: 0, -ETIME or -EINTR.
 */
int rdmatensor_wait(struct rdmatensor *rt, unsigned int nr,
		    uint64_t deadline_ns);

/**
 * rdmatensor_reap() - take entries out of the ring; no system call [reaps]
 * @rt: handle, started
 * @cqes: out, copies
 * @nr: room at @cqes
 *
 * Return: entries taken, 0 if there are none.
 */
unsigned int rdmatensor_reap(struct rdmatensor *rt, struct rdmatensor_cqe *cqes,
			     unsigned int nr);

/**
 * rdmatensor_ready() - entries that wait to be reaped; no system call [reaps]
 * @rt: handle, started
 */
unsigned int rdmatensor_ready(struct rdmatensor *rt);

/**
 * rdmatensor_peek() - look at an entry in place; no system call [reaps]
 * @rt: handle, started
 * @i: 0 is the oldest
 *
 * Return: the entry, in the ring, valid until rdmatensor_advance() has passed
 * it or a blocking call has run; NULL: there is none.
 */
const struct rdmatensor_cqe *rdmatensor_peek(struct rdmatensor *rt,
					     unsigned int i);

/**
 * rdmatensor_advance() - drop the oldest entries; no system call [reaps]
 * @rt: handle, started
 * @nr: at most what rdmatensor_ready() said
 */
void rdmatensor_advance(struct rdmatensor *rt, unsigned int nr);

/*
 * Blocking calls. They take exactly their own entry out of the
 * ring; all others stay there, in their order, for a later rdmatensor_reap().
 * An entry that nobody reaps keeps its place in the ring: reap from time to
 * time, at the latest when a call says -EAGAIN.
 */

/**
 * rdmatensor_interruptible() - whether blocking calls end by a signal
 * @rt: handle
 * @on: 1: they return -EINTR; 0, as at first: they go on
 *
 * For all of its threads, from their next call on. Before it returns, a fetch or gather is cancelled
 * and a publication withdrawn, so that the buffer is the caller's again: that waits for the peer,
 * as long as a cancel does. What ends before that ends as it does without a signal. A withdrawal
 * goes on after -EINTR, and its entry is dropped: the buffer is free when the publication's entry,
 * or a second withdrawal, says so.
 */
void rdmatensor_interruptible(struct rdmatensor *rt, int on);

int rdmatensor_run_sized(struct rdmatensor *rt, const struct rdmatensor_op *op, size_t op_size,
			 struct rdmatensor_cqe *cqe);

/**
 * rdmatensor_run() - submit one operation and wait for its entry
 * @rt: handle, started
 * @op: one that makes an entry: a fetch, gather, list, withdraw, or publish with uses > 0; its user_data
 *      is replaced
 * @cqe: out: its entry, with user_data as it was in @op. If the operation was
 *       not taken, @cqe->type is 0
 *
 * Waits for as long as it takes: bound a fetch, gather or list by its deadline_ns.
 *
 * Return: the entry's result, or why the operation was not taken. -EINTR by a signal has an entry with
 * the result -ECANCELED; one with -EINTR as its result is of a publisher that failed with it.
 */
static inline int
rdmatensor_run(struct rdmatensor *rt, const struct rdmatensor_op *op, struct rdmatensor_cqe *cqe)
{
	return rdmatensor_run_sized(rt, op, sizeof(*op), cqe);
}

/**
 * rdmatensor_fetch() - fetch a tensor and wait for it
 * @rt: handle, started
 * @channel: the peer, or RDMATENSOR_CHANNEL_SELF
 * @name: the tensor's name
 * @step_id: its step
 * @pool: destination
 * @offset: in it; RDMATENSOR_ALLOC: allocate, to be freed with
 *          rdmatensor_pool_free()
 * @bytes: room there; with RDMATENSOR_ALLOC the longest tensor to take, 0: any
 * @deadline_ns: when to give up with -ETIMEDOUT
 * @cqe: out: meta-data, and where it is: pool->base + cqe->offset
 *
 * Return: as rdmatensor_run().
 */
int rdmatensor_fetch(struct rdmatensor *rt, uint32_t channel, const char *name,
		     int64_t step_id, const struct rdmatensor_pool *pool,
		     uint64_t offset, uint64_t bytes, uint64_t deadline_ns,
		     struct rdmatensor_cqe *cqe);

/**
 * rdmatensor_gather() - gather rows of a table, and wait for them
 * @rt: handle, started
 * @table: from rdmatensor_table_open()
 * @ids: which rows
 * @nr_ids: their number
 * @pool: destination
 * @offset: in it, a multiple of RDMATENSOR_REGION_ALIGN (any byte of a pool that was registered
 *          or imported)
 * @bytes: room there, at least nr_ids rows
 * @deadline_ns: when to give up with -ETIMEDOUT
 * @cqe: out: of a gather that failed, tensor_bytes is the number of rows that were not
 *       delivered, offset the position of the first one (of -ERANGE: of the id that the
 *       table has not), and its text says more
 *
 * Return: as rdmatensor_run().
 */
int rdmatensor_gather(struct rdmatensor *rt, uint32_t table, const uint64_t *ids,
		      uint64_t nr_ids, const struct rdmatensor_pool *pool, uint64_t offset,
		      uint64_t bytes, uint64_t deadline_ns, struct rdmatensor_cqe *cqe);

/**
 * rdmatensor_publish() - publish a tensor and wait until it is used up
 * @rt: handle, started
 * @name: the tensor's name
 * @step_id: its step
 * @pool: where it is
 * @offset: in it
 * @bytes: its length
 * @data_type: enum rdmatensor_data_type
 * @ndims: length of its shape
 * @dims: the shape
 * @uses: deliveries, at least 1
 * @deadline_ns: when to withdraw it
 *
 * Whatever is returned, the buffer is the caller's again.
 *
 * Return: 0: delivered @uses times; -ETIMEDOUT: withdrawn; -EINVAL: @uses is 0,
 * or as PUBLISH; else the status of a STEP_ABORT.
 */
int rdmatensor_publish(struct rdmatensor *rt, const char *name, int64_t step_id,
		       const struct rdmatensor_pool *pool, uint64_t offset,
		       uint64_t bytes, uint32_t data_type, uint32_t ndims,
		       const uint64_t *dims, uint32_t uses, uint64_t deadline_ns);

/**
 * rdmatensor_withdraw() - withdraw a tensor and wait until its buffer is free
 * @rt: handle, started
 * @name: the tensor's name
 * @step_id: its step
 *
 * Return: 0; -ENOENT: it is not published.
 */
int rdmatensor_withdraw(struct rdmatensor *rt, const char *name,
			int64_t step_id);

/*
 * Small helpers; no system calls but clock_gettime()
 */

/**
 * rdmatensor_now_ns() - CLOCK_MONOTONIC in nanoseconds
 */
uint64_t rdmatensor_now_ns(void);

/**
 * rdmatensor_deadline_ms() - a deadline from now
 * @ms: milliseconds from now; negative: never, which is 0
 */
uint64_t rdmatensor_deadline_ms(int64_t ms);

/**
 * rdmatensor_data_type_size() - bytes of an element
 * @data_type: enum rdmatensor_data_type
 *
 * Return: bytes; 0: opaque, or unknown.
 */
size_t rdmatensor_data_type_size(uint32_t data_type);

/**
 * rdmatensor_data_type_name() - name of an element type, as "float"
 * @data_type: enum rdmatensor_data_type
 *
 * Return: a static string; NULL: unknown.
 */
const char *rdmatensor_data_type_name(uint32_t data_type);

/**
 * rdmatensor_cqe_text() - say in words how an operation ended
 * @cqe: an entry
 * @text: out, zero-terminated, as "Connection timed out" or with the peer's
 *        words "Invalid argument: no such layer"; of a place that was too small, with
 *        the tensor's length; of an entry that a call has not filled in, because its operation
 *        was not submitted, it says so
 * @text_len: its length
 *
 * Return: @text.
 */
const char *rdmatensor_cqe_text(const struct rdmatensor_cqe *cqe, char *text,
				size_t text_len);

/* Room for all that rdmatensor_status_text() may say, and for words of the system's before it */
#define RDMATENSOR_STATUS_ROOM (RDMATENSOR_STATUS_TEXT_MAX + 128)

/**
 * rdmatensor_status_text() - as rdmatensor_cqe_text(), with all of a text that is longer than
 * an entry has room for: one ioctl(RDMATENSOR_STATUS_TEXT) then, else none
 * @rt: handle that the entry is of
 * @cqe: an entry
 * @text: out, zero-terminated
 * @text_len: its length; RDMATENSOR_STATUS_ROOM holds all
 *
 * If the kernel keeps the text no more, its beginning has to do.
 *
 * Return: @text.
 */
const char *rdmatensor_status_text(struct rdmatensor *rt, const struct rdmatensor_cqe *cqe,
				   char *text, size_t text_len);

/**
 * rdmatensor_similar() - names that a peer offers and that look like one that it does not
 * @rt: handle, started
 * @channel: to the peer, or RDMATENSOR_CHANNEL_SELF
 * @name: what is not there
 * @deadline_ns: end of the look, which is not 0
 * @text: out, zero-terminated, for people: up to three names, as
 *        did you mean "weights" or "weight.0"?, or the step under which @name itself is offered; "": neither
 * @len: its length; RDMATENSOR_STATUS_ROOM holds all
 *
 * Lists what the peer offers (RDMATENSOR_OP_LIST), in a pool of its own that is destroyed again, and
 * takes some time for each name that is about as long. A blocking call.
 *
 * Return: number of names in @text; 0: none; or why there was no list, or no whole one: as for
 * rdmatensor_prep_list() and rdmatensor_pool_create(), -ENOMEM, -EINVAL.
 */
int rdmatensor_similar(struct rdmatensor *rt, uint32_t channel, const char *name,
		       uint64_t deadline_ns, char *text, size_t len);

#ifdef __cplusplus
}
#endif

#endif /* RDMATENSOR_RDMATENSOR_H */
