// SPDX-License-Identifier: GPL-2.0
/*
 * Read the JSON of one fio run (--output-format=json or json+, 3.33 and newer).
 *
 * Every key that is used must have the type and range it has in fio's stat.c;
 * other keys come and go between versions and are not looked at.
 */
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char * const directions[] = { "read", "write", "trim" };
static const char * const latencies[] = { "slat", "clat", "lat" };
static const struct {
	const char *name, *key;
	double percent;
} percentiles[] = {
	{ "p50", "50.000000", 50 },
	{ "p90", "90.000000", 90 },
	{ "p99", "99.000000", 99 },
	{ "p99.9", "99.900000", 99.9 },
	{ "p99.99", "99.990000", 99.99 },
};

/* fio keeps 64 buckets an octave and reports their midpoints. */
#define BUCKET_ERROR (1.0 / 64)

/* A value in the document, and the way to it for a complaint. */
struct at {
	const char *file;
	json_t *json;
	char key[128];
};

static struct at get(const struct at *from, const char *key, json_type type)
{
	static const char * const types[] = { "object", "array", "string", "integer", "number" };
	struct at at = { .file = from->file, .json = json_object_get(from->json, key) };
	int len = snprintf(at.key, sizeof(at.key), "%s%s%s", from->key, *from->key ? "." : "", key);

	if (len < 0 || (size_t)len >= sizeof(at.key))
		errx(1, "%s: %s: key too long: %s", at.file, from->key, key);
	if (!at.json)
		errx(1, "%s: %s: missing", at.file, at.key);
	if (json_typeof(at.json) != type)
		errx(1, "%s: %s: not of type %s", at.file, at.key, types[type]);
	return at;
}

/* The document was read with JSON_DECODE_INT_AS_REAL: every number is real. */
static double number(const struct at *from, const char *key)
{
	struct at at = get(from, key, JSON_REAL);
	double value = json_real_value(at.json);

	if (!(value >= 0 && value <= ABSURD))
		errx(1, "%s: %s: out of range: %g", at.file, at.key, value);
	return value;
}

struct bin {
	double value;		/* first, for by_value() */
	double samples;
};

/* One of slat, clat and lat over all the jobs of the run that have samples. */
struct latency {
	size_t jobs, with_percentiles, with_bins;
	double n, mean;
	double squares;				/* sum of squared distances from the mean */
	double percentile[ARRAY_SIZE(percentiles)];	/* of the last job; NAN: not there */
	struct bin *bins;			/* of all jobs */
	size_t nr;
};

struct direction {
	double ios;
	double iops, iops_step;
	double bw, bw_step;
	struct latency latency[ARRAY_SIZE(latencies)];
};

struct run {
	struct direction direction[ARRAY_SIZE(directions)];
	size_t jobs;
	double job_runtime;			/* ms, summed */
	double usr, sys;			/* ms, times 100 */
};

static void add_bins(struct latency *lat, const struct at *bins, double n)
{
	double sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach(bins->json, key, value) {
		const char *end = key;
		struct bin *bin;

		lat->bins = grow(lat->bins, lat->nr, sizeof(*lat->bins));
		bin = &lat->bins[lat->nr++];
		bin->samples = number(bins, key);
		if (!decimal(&end, &bin->value) || *end)
			errx(1, "%s: %s.%s: not a bin", bins->file, bins->key, key);
		sum += bin->samples;
	}
	if (sum != n)
		errx(1, "%s: %s: %g samples, but N is %g", bins->file, bins->key, sum, n);
}

static void add_latency(struct latency *lat, const struct at *at)
{
	double n = number(at, "N"), mean = number(at, "mean"), stddev = number(at, "stddev");
	double delta = mean - lat->mean, total = lat->n + n;

	if (!n)
		return;

	/* Chan et al.: exact, as if one job had taken all the samples. */
	lat->squares += stddev * stddev * (n - 1) + delta * delta * (lat->n / total) * n;
	lat->mean += delta * (n / total);
	lat->n = total;
	lat->jobs++;

	for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++)
		lat->percentile[i] = NAN;
	if (json_object_get(at->json, "percentile")) {
		struct at list = get(at, "percentile", JSON_OBJECT);

		lat->with_percentiles++;
		for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++) {
			if (json_object_get(list.json, percentiles[i].key))
				lat->percentile[i] = number(&list, percentiles[i].key);
		}
	}
	if (json_object_get(at->json, "bins")) {
		struct at bins = get(at, "bins", JSON_OBJECT);

		lat->with_bins++;
		add_bins(lat, &bins, n);
	}
}

static void add_direction(struct direction *dir, const struct at *at)
{
	double ios = number(at, "total_ios"), runtime = number(at, "runtime");
	double iops = number(at, "iops"), bw = number(at, "bw_bytes");

	if (!ios)
		return;
	if (!runtime)
		errx(1, "%s: %s.runtime: 0, but there was I/O", at->file, at->key);

	/* fio divides by a runtime in whole milliseconds. */
	dir->ios += ios;
	dir->iops += iops;
	dir->iops_step += iops / runtime;
	dir->bw += bw;
	dir->bw_step += bw / runtime;

	for (size_t i = 0; i < ARRAY_SIZE(latencies); i++) {
		char key[16];

		snprintf(key, sizeof(key), "%s_ns", latencies[i]);
		if (json_object_get(at->json, key)) {
			struct at lat = get(at, key, JSON_OBJECT);

			add_latency(&dir->latency[i], &lat);
		}
	}
}

static void add_job(struct run *run, const struct at *job)
{
	double error = number(job, "error"), runtime = number(job, "job_runtime");
	double usr = number(job, "usr_cpu"), sys = number(job, "sys_cpu");

	if (error)
		errx(1, "%s: %s.error: fio failed, errno %g", job->file, job->key, error);

	run->jobs++;
	run->job_runtime += runtime;
	run->usr += usr * runtime;
	run->sys += sys * runtime;
	for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
		struct at dir = get(job, directions[i], JSON_OBJECT);

		add_direction(&run->direction[i], &dir);
	}
}

/* Percentiles do not add up, but the bins they were taken from do. */
static void merge_percentiles(struct latency *lat)
{
	double seen = 0;
	size_t p = 0;

	qsort(lat->bins, lat->nr, sizeof(*lat->bins), by_value);
	for (size_t i = 0; i < lat->nr; i++) {
		seen += lat->bins[i].samples;
		/* In long double as in fio: one ulp decides which bin 32967 of 33000 is in. */
		while (p < ARRAY_SIZE(percentiles) &&
		       seen >= (long double)percentiles[p].percent / 100 * lat->n)
			lat->percentile[p++] = lat->bins[i].value;
	}
}

static void latency_figures(const char *path, struct job *job, const char *prefix,
			    const char *name, struct latency *lat)
{
	if (!lat->jobs)
		return;

	add_figure(job, "ns", lat->mean, 1, "%s%s.mean", prefix, name);
	add_figure(job, "ns", lat->n > 1 ? sqrt(lat->squares / (lat->n - 1)) : 0, 1,
		   "%s%s.stdev", prefix, name);

	if (lat->jobs > 1 && lat->with_bins == lat->jobs) {
		merge_percentiles(lat);
	} else if (lat->jobs > 1) {
		if (lat->with_percentiles)
			warnx("%s: %s%s: percentiles of %zu jobs left out: no bins (json+)",
			      path, prefix, name, lat->jobs);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++) {
		double value = lat->percentile[i];

		if (!isnan(value))
			add_figure(job, "ns", value, fmax(1, BUCKET_ERROR * value),
				   "%s%s.%s", prefix, name, percentiles[i].name);
	}
}

static void figures(const char *path, struct job *job, struct run *run)
{
	size_t used = 0;
	double ios = 0;

	for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
		used += run->direction[i].ios > 0;
		ios += run->direction[i].ios;
	}
	if (!ios)
		errx(1, "%s: jobs[].{read,write,trim}.total_ios: 0: there was no I/O", path);

	for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
		struct direction *dir = &run->direction[i];
		char prefix[16] = "";

		if (!dir->ios)
			continue;
		if (used > 1)
			snprintf(prefix, sizeof(prefix), "%s.", directions[i]);
		add_figure(job, "IOPS", dir->iops, dir->iops_step, "%siops", prefix);
		add_figure(job, "B/s", dir->bw, dir->bw_step, "%sbw", prefix);
		for (size_t j = 0; j < ARRAY_SIZE(latencies); j++)
			latency_figures(path, job, prefix, latencies[j], &dir->latency[j]);
	}

	/* CPU time is in whole milliseconds too; a run shorter than one has none. */
	if (run->job_runtime) {
		double step = 100 * run->jobs / run->job_runtime;

		add_figure(job, "%", run->usr / run->job_runtime, step, "usr");
		add_figure(job, "%", run->sys / run->job_runtime, step, "sys");
		step = 1e6 * run->jobs / ios;
		add_figure(job, "ns", run->sys / 100 * 1e6 / ios, step, "sys_ns_per_io");
		add_figure(job, "ns", run->usr / 100 * 1e6 / ios, step, "usr_ns_per_io");
	}
}

/* Whatever fio said before the document must not shift the line of an error. */
static void blank_notes(char *text)
{
	for (; *text && *text != '{'; text++) {
		if (*text != '\n')
			*text = ' ';
	}
}

void fio_load(const char *path, struct job *job)
{
	struct at root = { .file = path }, jobs;
	size_t stem = strlen(job->name) - strlen(".json");
	char *text = read_text(path);
	struct run run = {};
	json_error_t error;

	if (strcmp(job->name + stem, ".json") || job->name[stem - 1] == '/')
		errx(1, "%s: unknown file: not NAME.json", path);
	job->name[stem] = '\0';

	blank_notes(text);
	root.json = json_loads(text, JSON_DECODE_INT_AS_REAL, &error);
	if (!root.json)
		errx(1, "%s:%d: %s", path, error.line, error.text);
	free(text);

	jobs = get(&root, "jobs", JSON_ARRAY);
	for (size_t i = 0; i < json_array_size(jobs.json); i++) {
		struct at entry = { .file = path, .json = json_array_get(jobs.json, i) };

		snprintf(entry.key, sizeof(entry.key), "jobs[%zu]", i);
		if (!json_is_object(entry.json))
			errx(1, "%s: %s: not of type object", path, entry.key);
		add_job(&run, &entry);
	}
	if (!run.jobs)
		errx(1, "%s: jobs: empty", path);

	figures(path, job, &run);
	for (size_t i = 0; i < ARRAY_SIZE(directions); i++)
		for (size_t j = 0; j < ARRAY_SIZE(latencies); j++)
			free(run.direction[i].latency[j].bins);
	json_decref(root.json);
}
