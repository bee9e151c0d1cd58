/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * safetensors files: 8 bytes of little-endian header length, a JSON header, and
 * the tensors' bytes one behind the other without holes.
 *
 * The header of a file, or of a peer, is not trusted: st_parse() is the one
 * place that judges it, for reading and for writing.
 */
#ifndef ST_SAFETENSORS_H
#define ST_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <rdmatensor/uapi.h>

/* Longest header, as the format has it */
#define ST_HEADER_MAX 100000000u
/* Bytes of the length in front of it */
#define ST_LENGTH_BYTES 8u
/* Room for an error line with a whole name in it */
#define ST_ERROR_MAX 1024

/**
 * struct st_tensor - one tensor of a file
 * @name: zero-terminated, 1..RDMATENSOR_NAME_MAX bytes
 * @dtype: its element type's name in a header, which is never freed; NULL, for st_make():
 *         the one of @data_type
 * @data_type: enum rdmatensor_data_type
 * @ndims: length of the shape
 * @dims: the shape
 * @begin: first byte, counted from the end of the header
 * @bytes: length
 */
struct st_tensor {
	char *name;
	const char *dtype;
	uint32_t data_type;
	uint32_t ndims;
	uint64_t dims[RDMATENSOR_DIMS_MAX];
	uint64_t begin;
	uint64_t bytes;
};

/**
 * struct st_file - what a header says
 * @tensors: in the order of their bytes
 * @nr: their number
 * @header: the JSON text, padding included, zero-terminated besides
 * @header_bytes: its length
 * @data_bytes: bytes behind the header
 */
struct st_file {
	struct st_tensor *tensors;
	size_t nr;
	char *header;
	size_t header_bytes;
	uint64_t data_bytes;
};

/**
 * st_parse() - judge a header and take it apart
 * @json: its text, without the length in front
 * @json_bytes: its length
 * @data_bytes: bytes that follow it; UINT64_MAX: whatever the header says
 * @file: out, for st_free(); untouched if the call fails
 * @error: out: a line that names what is wrong, and the tensor
 * @error_len: its length, ST_ERROR_MAX is enough
 *
 * Return: 0; -EINVAL: the header is no good; -ENOMEM.
 */
int st_parse(const char *json, size_t json_bytes, uint64_t data_bytes,
	     struct st_file *file, char *error, size_t error_len);

/**
 * st_open() - open a file and read its header
 * @path: the file
 * @file: out, for st_free()
 * @fd: out: the file, open for reading; its data begins at st_data_offset()
 * @error: as for st_parse()
 * @error_len: as for st_parse()
 *
 * Return: 0, or a negative errno.
 */
int st_open(const char *path, struct st_file *file, int *fd, char *error,
	    size_t error_len);

/** st_free() - free what st_parse(), st_open() or st_make() made */
void st_free(struct st_file *file);

/** st_data_offset() - where the data begins in the file */
static inline uint64_t st_data_offset(const struct st_file *file)
{
	return ST_LENGTH_BYTES + (uint64_t)file->header_bytes;
}

/** st_find() - the tensor with this name, or NULL */
const struct st_tensor *st_find(const struct st_file *file, const char *name);

/**
 * st_make() - make a header
 * @tensors: names, types and shapes; begin and bytes are not looked at: the
 *           tensors' bytes follow each other in this order
 * @nr: their number
 * @metadata: pairs of strings for __metadata__, ended by NULL; NULL: none
 * @file: out, for st_free(). Equal arguments give equal bytes
 * @error: as for st_parse()
 * @error_len: as for st_parse()
 *
 * Return: 0; -EINVAL: no file can have these tensors; -ENOMEM.
 */
int st_make(const struct st_tensor *tensors, size_t nr,
	    const char *const *metadata, struct st_file *file, char *error,
	    size_t error_len);

/**
 * st_write_header() - write the length and the header, and size the file
 * @fd: file, open for writing
 * @file: from st_make() or st_parse()
 *
 * Return: 0, or a negative errno.
 */
int st_write_header(int fd, const struct st_file *file);

/**
 * st_data_type() - of a name in a header, as "F32"; RDMATENSOR_DT_INVALID: none
 * @name: the name
 * @bits: out: length of an element, which may be less than a byte. The type is
 *        RDMATENSOR_DT_VARIANT where there is none of that length
 */
uint32_t st_data_type(const char *name, uint32_t *bits);

/** st_dtype() - the same name, which is never freed; NULL: there is no such type */
const char *st_dtype(const char *name);

/** st_data_type_name() - the name in a header; NULL: the format has none, or several */
const char *st_data_type_name(uint32_t data_type);

/** st_element_bytes() - bytes of an element; 0: unknown, as of what is opaque */
size_t st_element_bytes(uint32_t data_type);

#endif
