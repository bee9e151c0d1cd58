// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * In place of what commands begin to do, by the linker's --wrap: nothing of this machine is
 * opened, written, asked or waited for. A context can be opened, and START looks at its
 * argument and refuses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include <rdmatensor/params.h>

#include "begun.h"
#include "fuzz.h"
#include "safetensors/safetensors.h"
#include "tool/cmd/doctor/devices.h"
#include "tool/cmd/doctor/host.h"
#include "tool/cmd/doctor/say.h"
#include "tool/common/netlink.h"
#include "tool/common/outfile.h"
#include "tool/common/params.h"
#include "tool/common/stop.h"

bool begun;

/* Values of the module's parameters, for show and set */
static char params_folder[] = "/tmp/fuzz-params-XXXXXX";
static unsigned int kind_start, kind_listen;
static unsigned int param_kinds[64];

static void remove_params(void)
{
	char path[128];
	size_t i;

	for (i = 0; i <= nr_params; i++) {
		snprintf(path, sizeof(path), "%s/%s", params_folder, i < nr_params ?
			 params[i].name : "device");
		unlink(path);
	}
	rmdir(params_folder);
}

void begun_init(void)
{
	char path[128];
	FILE *file;
	size_t i;

	HOLDS(nr_params <= NR(param_kinds));
	for (i = 0; i < nr_params; i++)
		if (*params[i].variable)
			param_kinds[i] = to_reach("START with %s", params[i].name);
	kind_start = to_reach("START");
	kind_listen = to_reach("START that listens");
	HOLDS(mkdtemp(params_folder));
	for (i = 0; i <= nr_params; i++) {
		snprintf(path, sizeof(path), "%s/%s", params_folder, i < nr_params ?
			 params[i].name : "device");
		file = fopen(path, "w");
		HOLDS(file && fputs("1\n", file) >= 0 && !fclose(file));
	}
	params_dir = params_folder;
	atexit(remove_params);
}

/* The library */

int __wrap_rdmatensor_open(const char *path, struct rdmatensor **out);
int __wrap_rdmatensor_open_cause(const char *path, struct rdmatensor **out, char *cause,
				  size_t cause_len);
void __wrap_rdmatensor_close(struct rdmatensor *rt);
int __wrap_rdmatensor_start(struct rdmatensor *rt, struct rdmatensor_start *start);
int __wrap_rdmatensor_query_sized(struct rdmatensor *rt, struct rdmatensor_query *query,
				    size_t size);

static char opened;

int __wrap_rdmatensor_open_cause(const char *path, struct rdmatensor **out, char *cause,
				  size_t cause_len)
{
	(void)cause;
	(void)cause_len;
	begun = true;
	HOLDS(path && *path);
	*out = (void *)&opened;
	return 0;
}

int __wrap_rdmatensor_open(const char *path, struct rdmatensor **out)
{
	return __wrap_rdmatensor_open_cause(path, out, NULL, 0);
}

void __wrap_rdmatensor_close(struct rdmatensor *rt)
{
	HOLDS(!rt || rt == (void *)&opened);
}

static void check_param(const char *name, uint64_t value, bool set)
{
	const struct param *param = param_find(name);

	HOLDS(param);
	if (!set)
		return;
	HOLDS((value >= param->least && value <= param->most &&
	       !(param->power_of_two && value & (value - 1))) ||
	      (param->value == RDMATENSOR_PARAM_AUTO && value == RDMATENSOR_PARAM_AUTO));
	reached(param_kinds[param - params]);
}

int __wrap_rdmatensor_start(struct rdmatensor *rt, struct rdmatensor_start *start)
{
	HOLDS(rt == (void *)&opened && start->size == sizeof(*start));
	reached(kind_start);
#define CHECK(_name, _value, _least, _most, _kind, _set, ...) \
	check_param(#_name, start->_name, start->set & (_set));
	RDMATENSOR_PARAMS(CHECK)
	check_param("validate", !!(start->flags & RDMATENSOR_START_VALIDATE),
		    start->set & RDMATENSOR_SET_VALIDATE);
	HOLDS(memchr(start->device_name, 0, sizeof(start->device_name)));
	HOLDS(*start->worker && memchr(start->worker, 0, sizeof(start->worker)));
	if (start->flags & RDMATENSOR_START_LISTEN) {
		HOLDS(start->listen_addr[0] == AF_INET || start->listen_addr[0] == AF_INET6);
		reached(kind_listen);
	}
	strcpy(start->cause, "nothing starts here");
	return -ENODEV;
}

int __wrap_rdmatensor_query_sized(struct rdmatensor *rt, struct rdmatensor_query *query,
				    size_t size)
{
	HOLDS(rt == (void *)&opened);
	HOLDS(size == sizeof(*query));
	memset(query, 0, size);
	query->abi_version = RDMATENSOR_ABI_VERSION;
	return 0;
}

/* Files */

int __wrap_outfile_open(struct outfile *out, const char *name);
void __wrap_outfile_drop(struct outfile *out);
int __wrap_st_open(const char *path, struct st_file *file, int *fd, char *error, size_t error_len);

int __wrap_outfile_open(struct outfile *out, const char *name)
{
	begun = true;
	memset(out, 0, sizeof(*out));
	out->fd = -1;
	out->name = name;
	return *name ? EXIT_OK : failed("write: no name");
}

void __wrap_outfile_drop(struct outfile *out)
{
	HOLDS(out->fd == -1);
}

int __wrap_st_open(const char *path, struct st_file *file, int *fd, char *error, size_t error_len)
{
	const struct st_tensor tensor = { .name = "w", .data_type = RDMATENSOR_DT_FLOAT };

	begun = true;
	*fd = -1;
	if (strcmp(path, "model.safetensors")) {
		snprintf(error, error_len, "%.100s: no such file", path);
		return -ENOENT;
	}
	return st_make(&tensor, 1, NULL, file, error, error_len);
}

/* The host */

int __wrap_keeper_get(const char *path, int *domain, char *label);
int __wrap_keeper_end(const char *path, bool *there);
bool __wrap_doctor_module(struct doctor *doctor);
bool __wrap_doctor_devices(struct doctor *doctor);
int __wrap_dump_objects(int cmd, uint32_t context, struct json_object **out,
			struct dump_extent *extent);
int __wrap_dump_messages(int cmd, uint32_t context, const struct dump_reader *reader, void *arg,
			 struct dump_extent *extent);
int __wrap_metrics_listen(const char *address, uint64_t most);
int __wrap_look_for_context(uint32_t context);
int __wrap_listen_events(bool (*event)(struct json_object *object, void *arg), void *arg);
void __wrap_stop_init(void);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out);
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out);

int __wrap_keeper_get(const char *path, int *domain, char *label)
{
	HOLDS(path && *path);
	begun = true;
	*domain = -1;
	*label = '\0';
	return EXIT_OK;
}

int __wrap_keeper_end(const char *path, bool *there)
{
	HOLDS(path && *path);
	begun = true;
	*there = false;
	return EXIT_OK;
}

bool __wrap_doctor_module(struct doctor *doctor)
{
	begun = true;
	doctor_say(doctor, VERDICT_FAIL, "module", "load it", "there is none");
	return false;
}

bool __wrap_doctor_devices(struct doctor *doctor)
{
	HOLDS(begun);
	doctor_say(doctor, VERDICT_OK, "devices", NULL, "%s", "there is one");
	return true;
}

int __wrap_dump_objects(int cmd, uint32_t context, struct json_object **out,
			struct dump_extent *extent)
{
	(void)cmd;
	(void)out;
	(void)extent;
	begun = true;
	HOLDS(context <= INT32_MAX);
	return failed("netlink: nothing is asked here");
}

int __wrap_dump_messages(int cmd, uint32_t context, const struct dump_reader *reader, void *arg,
			 struct dump_extent *extent)
{
	(void)cmd;
	(void)extent;
	begun = true;
	HOLDS(!context && reader && arg);
	return failed("netlink: nothing is asked here");
}

int __wrap_metrics_listen(const char *address, uint64_t most)
{
	begun = true;
	HOLDS(address && most <= 10000000);
	return failed("listen: nobody is listened to here");
}

int __wrap_look_for_context(uint32_t context)
{
	begun = true;
	HOLDS(context <= INT32_MAX);
	return EXIT_OK;
}

int __wrap_listen_events(bool (*event)(struct json_object *object, void *arg), void *arg)
{
	begun = true;
	HOLDS(event && arg);
	return EXIT_OK;
}

/* libFuzzer has its own signals */
void __wrap_stop_init(void)
{
	begun = true;
}

/* Nobody is asked for a host's address */
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out)
{
	struct addrinfo numeric = *hints;

	numeric.ai_flags |= AI_NUMERICHOST;
	return __real_getaddrinfo(host, service, &numeric, out);
}
