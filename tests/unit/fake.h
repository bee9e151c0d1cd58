/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fake device: open() of FAKE_PATH gives a file whose ioctls are answered
 * here, by copies within this process. Every context sees what all contexts
 * published, so a channel leads anywhere, and all have the same domain. It knows no waiting but that for who is
 * silent or absent: a fetch of what is not published ends at once with -ETIMEDOUT, or -ENOENT with NOWAIT.
 */
#ifndef TESTS_FAKE_H
#define TESTS_FAKE_H

#include <stdbool.h>
#include <stddef.h>

#include <rdmatensor/rdmatensor.h>

#define FAKE_PATH "/dev/fake-rdmatensor"
/* Entries of a ring of no length of its own */
#define FAKE_RING 64
/* The one text that is kept: as long as that, which is more than the library knows of */
#define FAKE_TEXT_ID 7
#define FAKE_TEXT_LEN 2000
#define FAKE_EVERYBODY 255

/* What the next calls do besides */
extern struct fake {
	/* Entries that are put in front of the next operation's */
	unsigned int extra;
	/* The next fetch by a proxy finds no room, and the one after it has such an entry */
	const struct rdmatensor_cqe *crowded;
	/* A publish with uses > 0 stays until it is withdrawn */
	bool hold;
	/* The next withdrawals find no memory */
	unsigned int fail_withdrawals;
	/* The next fetch's entry comes only when the library has looked in vain */
	bool late;
	/* The next withdrawal's entry comes with fake_late() */
	bool late_withdrawal;
	/* What is withdrawn was taken just before, and another of its name is withdrawn */
	bool taken;
	/* No withdrawal ends, and each wait finds an entry of something else */
	bool busy;
	/* Entries come when somebody waits, and not before */
	bool lazy;
	/* The next waits end with this, once each */
	int wait_error;
	unsigned int wait_errors;
	/* Files must have names */
	bool no_tmpfile;
	/* No file can be opened */
	bool no_files;
	/* Before the next file is opened, the first takes the place of the second */
	const char *rename_from;
	const char *rename_to;
	/* Errors of the next call, by ioctl number */
	int open_error;
	int connect_error;
	/* The same of CONNECT to an IPv6 address */
	int connect_error_v6;
	/* How long each CONNECT takes */
	unsigned int connect_ms;
	/* From this CONNECT on there is a peer; 0: never */
	unsigned int connects_until;
	/* After so many CONNECTs nobody listens any more; 0: never */
	unsigned int connects_most;
	/* This CONNECT ends with that error; 0: none */
	unsigned int connect_bad;
	int connect_bad_error;
	/* Behind each channel is another worker */
	bool restarts;
	/* From this channel on the peers have another index; 0: never */
	uint32_t other_index_from;
	/*
	 * Behind this channel a worker has its index, and nothing else, or what has another type;
	 * 0: behind none
	 */
	uint32_t empty_channel;
	bool other_type;
	/* The worker at an address that ends in this byte has not the tensor of that name, once */
	uint8_t lacking_worker;
	const char *lacking;
	/* Tensors with this in their names were failed with -ECANCELED; NULL: none */
	const char *failed;
	/* So often one of those was asked for */
	unsigned int failures;
	/*
	 * The worker at an address that ends in this byte has nothing, and what is asked of it lasts until its
	 * deadline, if it is silent also with NOWAIT, and a list; 0: nobody is such a one, FAKE_EVERYBODY
	 */
	uint8_t stranger;
	bool silent;
	/* Nobody listens at an address that ends in this byte; a CONNECT that waits does that until its timeout */
	uint8_t absent;
	/*
	 * Fetches end when somebody waits, the oldest first and no more than it waits for. Those of a
	 * channel that goes down end with that, -ECONNRESET for 0, and nothing is written for them
	 */
	bool flies;
	int down_error;
	/*
	 * After a channel has gone down none of the others' ends before the next CONNECT, or with
	 * other_index_from before the DISCONNECT that follows
	 */
	bool stalls;
	/*
	 * Those of a channel that goes down do not end with it: when its successor is in use they come
	 * all the same, with other bytes
	 */
	bool ghosts;
	/* How long each of them takes to end */
	unsigned int land_ms;
	/* Nobody listens before so many have ended; 0: always */
	unsigned int connects_landed;
	/* What the domain that was made last says of its device */
	bool device_gone;
	int pool_error;
	/* The module does not know RDMATENSOR_SUBMIT_HEAD; how often it was asked for */
	bool old;
	unsigned int too_big;
	/* Counts */
	/* FREEs of what is no region of a fetch, regions that were made for fetches, and FREEs of those */
	unsigned int bad_frees;
	unsigned int regions;
	unsigned int frees;
	/* Fetches that ended when somebody waited, and DISCONNECTs */
	unsigned int landed;
	unsigned int disconnects;
	unsigned int submits;
	unsigned int waits;
	/* Operations that were taken, and whose entries were not yet, at most */
	unsigned int flying_most;
	/* At this fetch the channel has gone down, and then again after as many; 0: never */
	unsigned int fetches_until_down;
	unsigned int fetches_each;
	/* Bytes of the last tree that was made of JSON */
	size_t tree_bytes;
	/* The last CONNECT's argument, as it came */
	struct rdmatensor_connect connected;
	/* How many there were, and by the last byte of their addresses */
	unsigned int connects;
	unsigned int connects_to[256];
	/* Lists that were asked for */
	unsigned int lists;
} fake;

/* Forgets all publications and settings */
void fake_reset(void);
/* Puts an entry into the ring of every started context that listens */
void fake_event(int type, uint32_t channel);
/* What was late comes, and @extra others before it */
void fake_late(void);
/* How many contexts are open */
unsigned int fake_open(void);
/* How many tensors are published */
unsigned int fake_published(void);

#endif
