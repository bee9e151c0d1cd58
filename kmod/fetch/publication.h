/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Publications: tensors that this context offers, with the memory they are in; and those that
 * its domain does (fetch/lasting.h).
 */
#ifndef RDMATENSOR_PUBLICATION_H
#define RDMATENSOR_PUBLICATION_H

#include "core/core.h"
#include "core/slice.h"
#include "fetch/lasting.h"
#include "memory/buffer.h"
#include "memory/pool.h"

/**
 * struct rdmatensor_publication_layout - where a tensor lies whose elements do not lie together
 * @layout: checked against its meta-data
 * @cut: of all of it
 */
struct rdmatensor_publication_layout {
	struct rdmatensor_layout layout;
	struct rdmatensor_cut cut;
};

/**
 * struct rdmatensor_publication - one PUBLISH
 * @tensor: what the rendezvous table knows of it
 * @core: of the context, referenced; NULL: it is @lasting's
 * @lasting: what offers it until it is withdrawn; NULL: its context does
 * @lasting_id: its number there
 * @publisher: of the context that has published it
 * @pool: referenced, or @buffer's; NULL: dead, failed or empty
 * @offset: where in it
 * @layout: of the tensor from there on, allocated; NULL: its elements lie together
 * @use: hold on the range that is read; without @buffer
 * @share: a loopback fetch may have the tensor itself
 * @buffer: copy of the content; NULL: it is read from the publisher's memory
 * @told: its own entry was written at once, because the content was copied
 * @user_data: for its entry
 * @step_id: the step
 * @retired: its publisher has aborted the step; @lasting's alone
 * @withdrawing: a WITHDRAW waits for the release
 * @withdrawer: of the context that has asked for it, referenced; NULL: it has ended since
 * @quiet: that WITHDRAW has no entry
 * @withdraw_user_data: for the WITHDRAW's entry
 * @name_len: bytes of @name; 0: it is not @lasting's
 * @name: the tensor's, if it is @lasting's
 */
struct rdmatensor_publication {
	struct rdmatensor_tensor tensor;
	struct rdmatensor_core *core;
	struct rdmatensor_lasting *lasting;
	u32 lasting_id;
	u64 publisher;
	struct rdmatensor_pool *pool;
	u64 offset;
	struct rdmatensor_publication_layout *layout;
	struct rdmatensor_use use;
	bool share;
	struct rdmatensor_buffer *buffer;
	bool told;
	u64 user_data;
	s64 step_id;
	bool retired;
	bool withdrawing;
	struct rdmatensor_core *withdrawer;
	bool quiet;
	u64 withdraw_user_data;
	u16 name_len;
	char name[] __counted_by(name_len);
};

static inline struct rdmatensor_publication *
to_publication(struct rdmatensor_tensor *tensor)
{
	return container_of(tensor, struct rdmatensor_publication, tensor);
}

/**
 * struct rdmatensor_publish_args - a checked PUBLISH operation
 * @user_data: for its entry
 * @name: tensor's name, not zero-terminated
 * @name_len: its length
 * @step_id: the step
 * @uses: deliveries, 0: until withdrawn
 * @pool: where it is; a reference is the publication's after success. NULL: nowhere
 * @offset: in it
 * @layout: of its elements from there on, checked; NULL: they lie together. Without @share
 * @share: a loopback fetch may have it
 * @in_generation: it is hidden until the generation (@group, @step_id) is revealed; with @uses 0
 * @group: of that generation
 * @copy: copy the content to one of these buffers; NULL: read it in place
 * @meta: checked meta-data
 * @failed: error != 0: instead of a tensor
 */
struct rdmatensor_publish_args {
	u64 user_data;
	const char *name;
	u16 name_len;
	s64 step_id;
	u32 uses;
	struct rdmatensor_pool *pool;
	u64 offset;
	const struct rdmatensor_layout *layout;
	bool share;
	bool in_generation;
	u64 group;
	struct rdmatensor_buffers *copy;
	struct rdmatensor_meta meta;
	struct rdmatensor_status failed;
};

/**
 * rdmatensor_publish - offer a tensor
 * @core: of the context
 * @args: checked; the reference of args->pool is taken over on success
 *
 * Process context. With args->copy the completion entry is there on return. With args->uses 0 it
 * is a lasting one, if the context belongs to a domain (rdmatensor_lasting_join()).
 *
 * Return: 0; -EAGAIN: the ring is full; -EINVAL: the range; -ERANGE: a layout of other meta-data;
 * -EINVAL, -E2BIG: its elements overlap, or lie in too many runs; -EEXIST: a tensor is offered
 * under that name and step; -ENOMEM; the status of an aborted step; with args->copy an error of
 * rdmatensor_buffer_take(), or -EINTR: the process is being killed. With args->in_generation also
 * an error of rdmatensor_generation_use().
 */
int rdmatensor_publish(struct rdmatensor_core *core,
		       const struct rdmatensor_publish_args *args);

/**
 * rdmatensor_withdraw - withdraw what is offered under a name and step
 * @core: of the context
 * @user_data: for the WITHDRAW's entry; NULL: it has none
 * @name: any bytes
 * @name_len: bytes of @name
 * @step_id: the step
 * @id: user_data of the publication that is meant, with uses; 0: any
 *
 * Process context.
 *
 * Return: 0: an entry will come when nothing reads the tensor any more;
 * -ENOENT: nothing is offered; -EALREADY: it is being withdrawn; -EAGAIN: the ring is full.
 */
int rdmatensor_withdraw(struct rdmatensor_core *core, const u64 *user_data,
			const char *name, u16 name_len, s64 step_id, u64 id);

/* Releases a matched tensor: see rdmatensor_rendezvous_put(). Any context up to softirq */
void rdmatensor_publication_put(struct rdmatensor_publication *publication,
				bool delivered, struct list_head *matches);
/*
 * Frees tensors that the table has released: of an aborted step or a generation, or at close. May
 * sleep
 */
void rdmatensor_publication_release_list(struct list_head *released);

#endif /* RDMATENSOR_PUBLICATION_H */
