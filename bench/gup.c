// SPDX-License-Identifier: GPL-2.0
/* Read what the kernel's mm/gup_test printed (KTAP). */
#include <ctype.h>
#include <err.h>
#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

/*
 * What a timer interrupt costs, in gup_test's unit: whether one more falls into the loop that is
 * timed depends on where the tick stands, even where all else repeats to the instruction.
 */
#define INTERRUPT_US 4

/* Read a number made of digits alone, and step over it. */
bool decimal(const char **text, double *value)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *value <= ABSURD;
}

static bool skip(const char **text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(*text, prefix, len))
		return false;
	*text += len;
	return true;
}

struct times {
	double *acquire, *release;	/* us, one of each a repeat */
	size_t nr;
};

/*
 * "# COMMAND: Time: get:G put:P us", then what kselftest puts in front of the
 * newline that gup_test prints as a message of its own.
 */
static bool parse_time(const char *line, const char *command, struct times *times)
{
	double acquire, release;

	if (!skip(&line, "# ") || !skip(&line, command) || !skip(&line, ": Time: get:") ||
	    !decimal(&line, &acquire) || !skip(&line, " put:") || !decimal(&line, &release) ||
	    !skip(&line, " us") || line[strspn(line, "# ")])
		return false;

	times->acquire = grow(times->acquire, times->nr, sizeof(*times->acquire));
	times->release = grow(times->release, times->nr, sizeof(*times->release));
	times->acquire[times->nr] = acquire;
	times->release[times->nr++] = release;
	return true;
}

static bool parse_line(const char *line, const char *command, struct times *times,
		       double *planned, double *passed)
{
	double nr;

	if (strstr(line, "Time:"))
		return parse_time(line, command, times);
	if (*line == '#' || !strcmp(line, "TAP version 13") || !strcmp(line, "KTAP version 1"))
		return true;
	if (skip(&line, "1..") && decimal(&line, &nr) && !*line) {
		*planned += nr;
		return true;
	}
	/* A directive after the # (SKIP, XFAIL) says that nothing was measured. */
	if (skip(&line, "ok ") && !strchr(line, '#')) {
		*passed += 1;
		return true;
	}
	return false;
}

static void load_times(const char *dir, const char *name, const char *command,
		       struct times *times)
{
	char *path = format("%s/%s", dir, name);
	char *text = read_text(path), *rest = text, *line;
	double planned = 0, passed = 0;

	for (size_t nr = 1; (line = strsep(&rest, "\n")); nr++) {
		if (*line && !parse_line(line, command, times, &planned, &passed))
			errx(1, "%s:%zu: not a result of %s: %s", path, nr, command, line);
	}
	if (!times->nr)
		errx(1, "%s: no Time line", path);
	if (!passed || passed != planned)
		errx(1, "%s: cut off: %g of %g tests have ended", path, passed, planned);
	free(text);
	free(path);
}

/*
 * Of several runs in one boot the least: all that makes one differ from the next, an interrupt
 * above all, only ever adds.
 */
static double least(const double *values, size_t nr)
{
	double min = values[0];

	for (size_t i = 1; i < nr; i++)
		min = fmin(min, values[i]);
	return min;
}

static double load_pages(const char *dir)
{
	char *path = format("%s/size", dir), *text = read_text(path);
	const char *rest = text;
	double pages;

	if (!decimal(&rest, &pages) || !pages || rest[strspn(rest, "\n")])
		errx(1, "%s: not a number of pages", path);
	free(text);
	free(path);
	return pages;
}

/* The runs of one job: what is timed, and what its two times and their sum are called. */
static const struct run {
	const char *file, *command, *acquire, *release, *both;
} runs[] = {
	{ "get.txt", "GUP_FAST_BENCHMARK", "get", "put", "get+put" },
	{ "pin.txt", "PIN_FAST_BENCHMARK", "pin", "unpin", "pin+unpin" },
	{ "slow.txt", "PIN_BASIC_TEST", "slow_pin", "slow_unpin", "slow_pin+unpin" },
	{ "longterm.txt", "PIN_LONGTERM_BENCHMARK", "longterm_pin", "longterm_unpin",
	  "longterm_pin+unpin" },
};

#define NR_RUNS (sizeof(runs) / sizeof(*runs))

static bool known_file(const char *name)
{
	for (size_t i = 0; i < NR_RUNS; i++) {
		if (!strcmp(name, runs[i].file))
			return true;
	}
	return !strcmp(name, "size");
}

static void load_run(const char *path, const struct run *run, double pages, struct job *job)
{
	/* Of threads that contend the least is the one run that met no other. */
	double (*typical)(const double *, size_t) = strstr(path, "/shared/") ? median : least;
	double ns = 1000 / pages, acquire, release;
	struct times times = {};

	load_times(path, run->file, run->command, &times);
	acquire = typical(times.acquire, times.nr);
	release = typical(times.release, times.nr);
	add_figure(job, "ns/page", acquire * ns, INTERRUPT_US * ns, run->acquire);
	add_figure(job, "ns/page", release * ns, INTERRUPT_US * ns, run->release);
	add_figure(job, "ns/page", (acquire + release) * ns, 2 * INTERRUPT_US * ns, run->both);
	free(times.acquire);
	free(times.release);
}

void gup_load(const char *path, struct job *job)
{
	struct dirent **entries;
	size_t nr = list(path, &entries);
	double pages;

	for (size_t i = 0; i < nr; i++) {
		if (!known_file(entries[i]->d_name))
			errx(1, "%s/%s: unknown file", path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);

	pages = load_pages(path);
	for (size_t i = 0; i < NR_RUNS; i++)
		load_run(path, &runs[i], pages, job);
}
