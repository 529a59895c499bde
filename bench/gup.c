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

void gup_load(const char *path, struct job *job)
{
	struct times get = {}, pin = {};
	double pages, ns, times[4];
	struct dirent **entries;
	size_t nr = list(path, &entries);

	for (size_t i = 0; i < nr; i++) {
		const char *name = entries[i]->d_name;

		if (strcmp(name, "get.txt") && strcmp(name, "pin.txt") && strcmp(name, "size"))
			errx(1, "%s/%s: unknown file", path, name);
		free(entries[i]);
	}
	free(entries);

	load_times(path, "get.txt", "GUP_FAST_BENCHMARK", &get);
	load_times(path, "pin.txt", "PIN_FAST_BENCHMARK", &pin);
	pages = load_pages(path);
	times[0] = least(get.acquire, get.nr);
	times[1] = least(get.release, get.nr);
	times[2] = least(pin.acquire, pin.nr);
	times[3] = least(pin.release, pin.nr);

	ns = 1000 / pages;
	add_figure(job, "ns/page", times[0] * ns, INTERRUPT_US * ns, "get");
	add_figure(job, "ns/page", times[1] * ns, INTERRUPT_US * ns, "put");
	add_figure(job, "ns/page", times[2] * ns, INTERRUPT_US * ns, "pin");
	add_figure(job, "ns/page", times[3] * ns, INTERRUPT_US * ns, "unpin");
	add_figure(job, "ns/page", (times[0] + times[1]) * ns, 2 * INTERRUPT_US * ns, "get+put");
	add_figure(job, "ns/page", (times[2] + times[3]) * ns, 2 * INTERRUPT_US * ns, "pin+unpin");

	free(get.acquire);
	free(get.release);
	free(pin.acquire);
	free(pin.release);
}
