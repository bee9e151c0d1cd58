// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TF_CONFIG, TensorFlow's variable: {"cluster": {JOB: ["HOST:PORT", ...], ...}, "task": {"type":
 * JOB, "index": N}}. A job may also be {"N": "HOST:PORT", ...}, with tasks that are not there left
 * out.
 *
 * Ranks are in the order of jobs, whatever order the text has: a chief (or master) first, the
 * others by their names; and of tasks. So rank 0 is the one that TensorFlow has save the
 * checkpoints.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define JOBS_MAX 64
#define TEXT_MAX (4 << 20)

/**
 * struct task - one of a job's
 * @job: its name, the JSON's
 * @index: its number
 * @address: as it is written, the JSON's
 */
struct task {
	const char *job;
	unsigned int index;
	const char *address;
};

/**
 * struct spec - a cluster that is read
 * @tasks: array of RANKS_MAX
 * @nr: of them
 */
struct spec {
	struct task *tasks;
	unsigned int nr;
};

/*
 * One without a cluster is what programs of a single process are given: it says nothing of ranks, and
 * does not hide what does. One that is no JSON is an error that find() tells.
 */
static bool is_there(void)
{
	const char *text = cluster_env("TF_CONFIG");
	struct json_object *root, *jobs, *sparse;
	bool has;

	root = text ? json_tokener_parse(text) : NULL;
	if (!root)
		return text;
	has = !json_object_is_type(root, json_type_object) ||
	      json_object_object_get_ex(root, "sparseCluster", &sparse) ||
	      (json_object_object_get_ex(root, "cluster", &jobs) &&
	       !(json_object_is_type(jobs, json_type_object) && !json_object_object_length(jobs)));
	json_object_put(root);
	return has;
}

static int no_memory(void)
{
	return node_fail(-ENOMEM, "cluster: TF_CONFIG: out of memory");
}

static int add(struct spec *spec, const char *job, unsigned int index, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_string))
		return node_fail(-EINVAL, "cluster: TF_CONFIG: cluster.%s[%u] is no text: write \"HOST:PORT\"",
				 job, index);
	if (spec->nr == RANKS_MAX)
		return node_fail(-ERANGE, "cluster: TF_CONFIG: more than %d tasks", RANKS_MAX);
	spec->tasks[spec->nr++] = (struct task) {
		.job = job, .index = index, .address = json_object_get_string(value),
	};
	return 0;
}

static int add_job(struct spec *spec, const char *job, struct json_object *tasks)
{
	uint64_t index;
	size_t i;
	int err = 0;

	if (json_object_is_type(tasks, json_type_array)) {
		for (i = 0; !err && i < json_object_array_length(tasks); i++)
			err = add(spec, job, (unsigned int)i, json_object_array_get_idx(tasks, i));
		return err;
	}
	if (!json_object_is_type(tasks, json_type_object))
		return node_fail(-EINVAL, "cluster: TF_CONFIG: cluster.%s is no list: write [\"HOST:PORT\", ...]",
				 job);
	json_object_object_foreach(tasks, key, value) {
		if (err)
			break;
		if (rt_parse_number(key, 0, UINT32_MAX, &index))
			err = node_fail(-EINVAL, "cluster: TF_CONFIG: cluster.%s has the task \"%s\": tasks are numbers",
					job, key);
		else
			err = add(spec, job, (unsigned int)index, value);
	}
	return err;
}

static int is_first(const char *job)
{
	return !strcmp(job, "chief") || !strcmp(job, "master");
}

static int by_rank(const void *left, const void *right)
{
	const struct task *a = left, *b = right;
	int order = is_first(b->job) - is_first(a->job);

	if (!order)
		order = strcmp(a->job, b->job);
	if (!order)
		order = a->index < b->index ? -1 : a->index > b->index;
	return order;
}

static int read_cluster(struct spec *spec, struct json_object *root)
{
	struct json_object *jobs;
	int err = 0;

	if (json_object_object_get_ex(root, "sparseCluster", &jobs))
		return node_fail(-EINVAL, "cluster: TF_CONFIG has a \"sparseCluster\", which names a task's own peers: ranks need all tasks: turn Kubeflow's enableDynamicWorker off, or use another source (RDMATENSOR_HOSTS)");
	if (!json_object_object_get_ex(root, "cluster", &jobs) ||
	    !json_object_is_type(jobs, json_type_object))
		return node_fail(-EINVAL, "cluster: TF_CONFIG has no \"cluster\": write {\"cluster\": {\"worker\": [\"HOST:PORT\", ...]}, \"task\": {\"type\": \"worker\", \"index\": 0}}");
	if (json_object_object_length(jobs) > JOBS_MAX)
		return node_fail(-ERANGE, "cluster: TF_CONFIG: more than %d jobs", JOBS_MAX);
	json_object_object_foreach(jobs, job, tasks) {
		if (err)
			break;
		err = add_job(spec, job, tasks);
	}
	if (err)
		return err;
	if (!spec->nr)
		return node_fail(-EINVAL, "cluster: TF_CONFIG: its cluster has no task");
	qsort(spec->tasks, spec->nr, sizeof(*spec->tasks), by_rank);
	return 0;
}

/* As a number, or as text of one, which TensorFlow takes too */
static int read_index(struct json_object *task, unsigned int *out)
{
	struct json_object *index;
	uint64_t number;

	if (json_object_object_get_ex(task, "index", &index)) {
		int64_t value = json_object_get_int64(index);

		if (json_object_is_type(index, json_type_int) && value >= 0 && value <= UINT32_MAX) {
			*out = (unsigned int)value;
			return 0;
		}
		if (json_object_is_type(index, json_type_string) &&
		    !rt_parse_number(json_object_get_string(index), 0, UINT32_MAX, &number)) {
			*out = (unsigned int)number;
			return 0;
		}
	}
	return node_fail(-EINVAL, "cluster: TF_CONFIG: task.index is no number: write the task's of its job, from 0");
}

static int read_task(struct rdmatensor_cluster *cluster, const struct spec *spec,
		     struct json_object *root)
{
	struct json_object *task, *type;
	unsigned int index = 0, i;
	const char *job;
	int err;

	if (!json_object_object_get_ex(root, "task", &task) ||
	    !json_object_is_type(task, json_type_object) ||
	    !json_object_object_get_ex(task, "type", &type) ||
	    !json_object_is_type(type, json_type_string))
		return node_fail(-EINVAL, "cluster: TF_CONFIG has no \"task\" with a \"type\": write \"task\": {\"type\": \"worker\", \"index\": 0}");
	job = json_object_get_string(type);
	err = read_index(task, &index);
	if (err)
		return err;
	for (i = 0; i < spec->nr; i++)
		if (!strcmp(spec->tasks[i].job, job) && spec->tasks[i].index == index)
			break;
	if (i == spec->nr)
		return node_fail(-ERANGE, "cluster: TF_CONFIG: its cluster has no task %s/%u, which this process is to be: correct \"task\", or add it to \"cluster\"",
				 job, index);
	cluster->rank = i;
	return 0;
}

static int name_member(struct cluster_member *member, const struct task *task)
{
	char where[160], name[160], address[ADDRESS_ROOM];
	int err;

	snprintf(name, sizeof(name), "%.128s/%u", task->job, task->index);
	snprintf(where, sizeof(where), "TF_CONFIG: %.140s", name);
	err = cluster_tidy(where, task->address, address);
	if (err)
		return err;
	member->name = strdup(name);
	member->address = strdup(address);
	return member->name && member->address ? 0 : no_memory();
}

static int take(struct rdmatensor_cluster *cluster, struct spec *spec, struct json_object *root)
{
	unsigned int i;
	int err;

	err = read_cluster(spec, root);
	if (!err)
		err = read_task(cluster, spec, root);
	if (!err)
		err = cluster_members_make(&cluster->members, "TF_CONFIG", spec->nr);
	for (i = 0; !err && i < spec->nr; i++) {
		err = name_member(&cluster->members.at[i], &spec->tasks[i]);
		if (!err && i && !by_rank(&spec->tasks[i - 1], &spec->tasks[i]))
			err = node_fail(-EINVAL, "cluster: TF_CONFIG: it has the task %s twice",
					cluster->members.at[i].name);
	}
	return err ? err : cluster_members_check(&cluster->members, "TF_CONFIG");
}

/* The job is the cluster, as all of its tasks write it */
static int name_job(struct rdmatensor_cluster *cluster)
{
	uint64_t all = 0;
	unsigned int i;
	char text[32];

	for (i = 0; i < cluster->members.nr; i++)
		all = all * 31 + rdmatensor_group(cluster->members.at[i].address);
	snprintf(text, sizeof(text), "tf-%016llx", (unsigned long long)all);
	cluster->job = strdup(text);
	return cluster->job ? 0 : no_memory();
}

static int find(struct rdmatensor_cluster *cluster)
{
	const char *text = cluster_env("TF_CONFIG");
	struct spec spec = { 0 };
	struct json_tokener *tokener;
	struct json_object *root;
	size_t len;
	int err;

	if (!text)
		return node_fail(-EINVAL, "cluster: tf_config: TF_CONFIG is not set");
	len = strlen(text);
	if (len > TEXT_MAX)
		return node_fail(-EMSGSIZE, "cluster: TF_CONFIG has %zu bytes: more than %d are none", len,
				 TEXT_MAX);
	tokener = json_tokener_new();
	spec.tasks = calloc(RANKS_MAX, sizeof(*spec.tasks));
	if (!tokener || !spec.tasks) {
		err = no_memory();
		goto out_free;
	}
	root = json_tokener_parse_ex(tokener, text, (int)len + 1);
	if (!root) {
		err = node_fail(-EINVAL, "cluster: TF_CONFIG is no JSON: at byte %zu: %s",
				json_tokener_get_parse_end(tokener),
				json_tokener_error_desc(json_tokener_get_error(tokener)));
		goto out_free;
	}
	if (text[json_tokener_get_parse_end(tokener) + strspn(text + json_tokener_get_parse_end(tokener), " \t\r\n")])
		err = node_fail(-EINVAL, "cluster: TF_CONFIG: something follows its JSON at byte %zu",
				json_tokener_get_parse_end(tokener));
	else
		err = take(cluster, &spec, root);
	if (!err)
		err = name_job(cluster);
	json_object_put(root);
out_free:
	free(spec.tasks);
	if (tokener)
		json_tokener_free(tokener);
	return err;
}

const struct cluster_source cluster_tf_config = {
	.name = "tf_config",
	.is_there = is_there,
	.find = find,
};
