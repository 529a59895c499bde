// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of compare: its statistics directly, the rest by running it on folders
 * of results.  usage: test PROGRAM FIXTURES
 *
 * A test starts from results that pass, 2 boots of each kernel, and spoils one
 * file of one boot.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define FIO	"base/1/fio/dev/job.json"
#define GET	"base/1/gup/anon/512/get.txt"
#define PIN	"base/1/gup/anon/512/pin.txt"
#define SLOW	"base/1/gup/anon/512/slow.txt"
#define LONG	"base/1/gup/anon/512/longterm.txt"
#define PAGES	"base/1/gup/anon/512/size"

static const char * const boots[] = { "base/1", "base/2", "queue/1", "queue/2" };

static char program[4096], fixtures[4096];
static char output[1 << 16], errors[1 << 16];

/* What fio would say of 10 reads, and the key a test wants to spoil is in it. */
static const char good_fio[] =
	"{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"a\",\"error\":0,\"read\":{"
	"\"bw_bytes\":4096000,\"iops\":1000.5,\"runtime\":10,\"total_ios\":10,"
	"\"slat_ns\":{\"mean\":40.5,\"stddev\":1.5,\"N\":10},"
	"\"clat_ns\":{\"mean\":2000.25,\"stddev\":30.5,\"N\":10,\"percentile\":{"
	"\"50.000000\":1992,\"90.000000\":2008,\"99.000000\":2024,\"99.900000\":2040,"
	"\"99.990000\":2056},\"bins\":{\"1992\":5,\"2008\":4,\"2056\":1}},"
	"\"lat_ns\":{\"mean\":2040.75,\"stddev\":31.5,\"N\":10}},"
	"\"write\":{\"bw_bytes\":0,\"iops\":0,\"runtime\":0,\"total_ios\":0,"
	"\"clat_ns\":{\"mean\":0,\"stddev\":0,\"N\":0}},"
	"\"trim\":{\"bw_bytes\":0,\"iops\":0,\"runtime\":0,\"total_ios\":0},"
	"\"job_runtime\":10,\"usr_cpu\":10.0,\"sys_cpu\":40.0}]}\n";

static const char good_get[] =
	"TAP version 13\n1..1\n"
	"# GUP_FAST_BENCHMARK: Time: get:2064 put:278 us# \n"
	"ok 1 ioctl status 0\n"
	"# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0\n";

static const char good_pin[] =
	"TAP version 13\n1..1\n"
	"# PIN_FAST_BENCHMARK: Time: get:2916 put:1425 us# \n"
	"ok 1 ioctl status 0\n"
	"# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0\n";

static const char good_slow[] =
	"TAP version 13\n1..1\n"
	"# PIN_BASIC_TEST: Time: get:2916 put:1425 us# \n"
	"ok 1 ioctl status 0\n"
	"# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0\n";

static const char good_longterm[] =
	"TAP version 13\n1..1\n"
	"# PIN_LONGTERM_BENCHMARK: Time: get:2916 put:1425 us# \n"
	"ok 1 ioctl status 0\n"
	"# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:0 error:0\n";

static void put_bytes(const char *path, const char *data, size_t len)
{
	char copy[256];
	FILE *file;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *slash = copy; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(copy, 0777);
	}
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

/* The same file in every boot of one kernel, or of both. */
static void put_all(const char *kernel, const char *name, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(boots); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", boots[i], name);
		if (!strncmp(path, kernel, strlen(kernel)))
			put(path, text);
	}
}

static char *slurp(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(file);
	assert_true(getdelim(&text, &size, '\0', file) > 0);
	fclose(file);
	return text;
}

static char *fixture(const char *name)
{
	char path[8192];

	snprintf(path, sizeof(path), "%s/%s", fixtures, name);
	return slurp(path);
}

/* `text` with its first `from` replaced; a `from` that is not there is a bug of the test. */
static char *replace(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *result;

	assert_non_null(at);
	assert_true(asprintf(&result, "%.*s%s%s", (int)(at - text), text, to,
			     at + strlen(from)) >= 0);
	return result;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* A whole job of gup_test in each boot. */
static void put_gup(const char *job)
{
	static const struct {
		const char *file, *text;
	} files[] = {
		{ "get.txt", good_get },
		{ "pin.txt", good_pin },
		{ "slow.txt", good_slow },
		{ "longterm.txt", good_longterm },
		{ "size", "16384\n" },
	};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "gup/%s/%s", job, files[i].file);
		put_all("", path, files[i].text);
	}
}

static int setup(void **state)
{
	char root[] = "/tmp/compare-test.XXXXXX";

	if (!mkdtemp(root) || chdir(root))
		return -1;
	*state = strdup(root);
	put_all("", "fio/dev/job.json", good_fio);
	put_gup("anon/512");
	put_all("", "kernel.log", "not a result\n");
	return 0;
}

static int teardown(void **state)
{
	int ret = nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return ret;
}

static void read_back(int fd, char *into, size_t size)
{
	ssize_t len;

	lseek(fd, 0, SEEK_SET);
	len = read(fd, into, size - 1);
	assert_true(len >= 0);
	into[len] = '\0';
	close(fd);
}

/* Run the program on base and queue; its exit status, with what it said in output[], errors[]. */
static int run_limited(rlim_t file_size, const char *stdout_path, const char * const *options)
{
	char out_path[] = "/tmp/compare-out.XXXXXX", err_path[] = "/tmp/compare-err.XXXXXX";
	int out = mkstemp(out_path), err = mkstemp(err_path), status;
	const char *argv[16] = { program };
	size_t argc = 1;
	pid_t pid;

	unlink(out_path);
	unlink(err_path);
	for (; *options; options++)
		argv[argc++] = *options;
	argv[argc++] = "base";
	argv[argc++] = "queue";

	pid = fork();
	if (!pid) {
		struct rlimit limit = { file_size, file_size };

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		dup2(stdout_path ? open(stdout_path, O_WRONLY) : out, 1);
		dup2(err, 2);
		execv(program, (char **)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	read_back(out, output, sizeof(output));
	read_back(err, errors, sizeof(errors));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define run(...) run_limited(RLIM_INFINITY, NULL, (const char *[]){ __VA_ARGS__, NULL })

/* The report of a run that must succeed. */
static json_t *report(const char *run_json)
{
	json_error_t error;
	json_t *json;
	int status;

	if (run_json)
		put("run.json", run_json);
	status = run_json ? run("-r", "run.json", "-o", "out") : run("-o", "out");
	if (status)
		print_error("%s", errors);
	assert_int_equal(status, 0);
	assert_string_equal(output, "out/report.txt\n");
	json = json_load_file("out/report.json", 0, &error);
	assert_non_null(json);
	return json;
}

static json_t *find(json_t *report, const char *job, const char *figure)
{
	json_t *each;
	size_t i;

	json_array_foreach(json_object_get(report, "figures"), i, each) {
		if (!strcmp(json_string_value(json_object_get(each, "job")), job) &&
		    !strcmp(json_string_value(json_object_get(each, "figure")), figure))
			return each;
	}
	return NULL;
}

static double value(json_t *report, const char *job, const char *figure, const char *key)
{
	json_t *found = find(report, job, figure);

	if (!found)
		print_error("%s: no %s\n", job, figure);
	assert_non_null(found);
	found = json_object_get(found, key);
	assert_true(json_is_number(found));
	return json_number_value(found);
}

static const char *word(json_t *report, const char *job, const char *figure, const char *key)
{
	json_t *found = find(report, job, figure);

	assert_non_null(found);
	return json_string_value(json_object_get(found, key));
}

static void assert_near(double a, double b)
{
	if (isnan(a) || isnan(b) || fabs(a - b) > 0.000000001 * fmax(fabs(a), fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

/* The program must refuse, say the file and the reason, and leave an old report alone. */
static void assert_refused(const char *path, const char *reason)
{
	static const char * const names[] = { "report.json", "report.md", "report.txt" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char old[64];

		snprintf(old, sizeof(old), "out/%s", names[i]);
		put(old, "old\n");
	}
	if (run("-o", "out") != 1)
		fail_msg("not refused: %s: %s\n%s", path, reason, errors);
	if (!strstr(errors, path) || !strstr(errors, reason))
		fail_msg("does not say \"%s: %s\" but: %s", path, reason, errors);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char old[64], *text;

		snprintf(old, sizeof(old), "out/%s", names[i]);
		text = slurp(old);
		assert_string_equal(text, "old\n");
		free(text);
	}
}

/* Refuse each spoilt text in place of a good one. */
struct spoil {
	const char *from, *to, *reason;
};

static void assert_each_refused(const char *path, const char *good, const struct spoil *spoil,
				size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char *text = replace(good, spoil[i].from, spoil[i].to);

		put(path, text);
		assert_refused(path, spoil[i].reason);
		free(text);
	}
	put(path, good);
	assert_int_equal(run("-o", "out"), 0);
}

/* ---- statistics ---- */

static void test_median_of_odd_and_even(void **state)
{
	(void)state;
	assert_true(median((double[]){ 7 }, 1) == 7);
	assert_true(median((double[]){ 9, 1, 5 }, 3) == 5);
	assert_true(median((double[]){ 4, 1, 3, 100 }, 4) == 3.5);
}

static struct row judged(size_t nr, double *base, double *queue, double step)
{
	struct row row = {
		.base = { .boots = base, .nr = nr, .step = step },
		.queue = { .boots = queue, .nr = nr, .step = step },
	};

	sum_up(&row.base);
	sum_up(&row.queue);
	judge(&row);
	return row;
}

static void test_noise_is_both_ranges_added(void **state)
{
	struct row row = judged(3, (double[]){ 100, 101, 99 }, (double[]){ 104, 110, 100 }, 0);

	(void)state;
	assert_near(row.ratio, 1.04);
	assert_near(row.noise, 2. / 100 + 10. / 104);
	assert_string_equal(row.verdict, "same");
	row = judged(2, (double[]){ 100, 104 }, (double[]){ 105, 109 }, 0);
	assert_string_equal(row.verdict, "same");
	row = judged(2, (double[]){ 100, 101 }, (double[]){ 105, 106 }, 0);
	assert_string_equal(row.verdict, "higher");
}

static void test_noise_is_never_below_the_resolution(void **state)
{
	struct row row = judged(2, (double[]){ 100, 100 }, (double[]){ 101, 101 }, 2);

	(void)state;
	assert_near(row.noise, 0.02);
	assert_string_equal(row.verdict, "same");
	row = judged(2, (double[]){ 100, 100 }, (double[]){ 103, 103 }, 2);
	assert_string_equal(row.verdict, "higher");
	row = judged(2, (double[]){ 100, 100 }, (double[]){ 97, 97 }, 2);
	assert_string_equal(row.verdict, "lower");
}

static void test_one_boot_has_no_noise(void **state)
{
	struct row row = judged(1, (double[]){ 100 }, (double[]){ 200 }, 1);

	(void)state;
	assert_true(isnan(row.noise));
	assert_near(row.ratio, 2);
	assert_string_equal(row.verdict, "unknown");
}

static void test_nothing_is_relative_to_zero(void **state)
{
	struct row row = judged(2, (double[]){ 0, 0 }, (double[]){ 5, 5 }, 1);

	(void)state;
	assert_true(isnan(row.ratio));
	assert_string_equal(row.verdict, "unknown");
	row = judged(2, (double[]){ 0, 0 }, (double[]){ 0, 0 }, 1);
	assert_true(isnan(row.ratio));
	assert_string_equal(row.verdict, "same");
	row = judged(3, (double[]){ 0, 0, 7 }, (double[]){ 5, 5, 5 }, 1);
	assert_true(isnan(row.noise));
	assert_string_equal(row.verdict, "unknown");
}

/* ---- the report ---- */

static void test_a_kernel_is_the_same_as_itself(void **state)
{
	json_t *json = report(NULL), *each;
	size_t i;

	(void)state;
	assert_true(json_array_size(json_object_get(json, "figures")) > 20);
	json_array_foreach(json_object_get(json, "figures"), i, each) {
		assert_string_equal(json_string_value(json_object_get(each, "verdict")), "same");
		assert_true(json_number_value(json_object_get(each, "ratio")) == 1);
	}
	json_decref(json);
}

static void test_report_json_has_its_keys_in_order(void **state)
{
	static const char * const expect[] = {
		"gup/anon/512 get", "gup/anon/512 put", "gup/anon/512 get+put",
		"gup/anon/512 pin", "gup/anon/512 unpin", "gup/anon/512 pin+unpin",
		"gup/anon/512 slow_pin", "gup/anon/512 slow_unpin", "gup/anon/512 slow_pin+unpin",
		"gup/anon/512 longterm_pin", "gup/anon/512 longterm_unpin",
		"gup/anon/512 longterm_pin+unpin",
		"fio/dev/job iops", "fio/dev/job bw", "fio/dev/job slat.mean",
		"fio/dev/job slat.stdev", "fio/dev/job clat.mean", "fio/dev/job clat.stdev",
		"fio/dev/job clat.p50", "fio/dev/job clat.p90", "fio/dev/job clat.p99",
		"fio/dev/job clat.p99.9", "fio/dev/job clat.p99.99", "fio/dev/job lat.mean",
		"fio/dev/job lat.stdev", "fio/dev/job usr", "fio/dev/job sys",
		"fio/dev/job sys_ns_per_io", "fio/dev/job usr_ns_per_io",
	};
	json_t *json = report(NULL), *figures = json_object_get(json, "figures"), *each;
	size_t i;

	(void)state;
	assert_int_equal(json_object_size(json), 2);
	assert_int_equal(json_object_size(json_object_get(json, "run")), 0);
	assert_int_equal(json_array_size(figures), ARRAY_SIZE(expect));
	json_array_foreach(figures, i, each) {
		const char *job, *figure, *unit, *verdict;
		double base, queue, ratio, noise;
		json_t *base_boots, *queue_boots;
		char name[64];

		assert_int_equal(json_unpack(each, "{ss ss ss sF sF sF sF ss so so !}",
					     "job", &job, "figure", &figure, "unit", &unit,
					     "base", &base, "queue", &queue, "ratio", &ratio,
					     "noise", &noise, "verdict", &verdict,
					     "base_boots", &base_boots,
					     "queue_boots", &queue_boots), 0);
		snprintf(name, sizeof(name), "%s %s", job, figure);
		assert_string_equal(name, expect[i]);
		assert_int_equal(json_array_size(base_boots), 2);
		assert_int_equal(json_array_size(queue_boots), 2);
		assert_near(json_number_value(json_array_get(base_boots, 1)), base);
	}
	json_decref(json);
}

static void test_values_and_resolutions_of_fio(void **state)
{
	json_t *json = report(NULL);

	(void)state;
	assert_true(value(json, "fio/dev/job", "iops", "base") == 1000.5);
	assert_true(value(json, "fio/dev/job", "bw", "queue") == 4096000);
	assert_true(value(json, "fio/dev/job", "clat.mean", "base") == 2000.25);
	assert_near(value(json, "fio/dev/job", "clat.stdev", "base"), 30.5);
	assert_true(value(json, "fio/dev/job", "clat.p99.9", "base") == 2040);
	assert_near(value(json, "fio/dev/job", "usr", "base"), 10);
	assert_near(value(json, "fio/dev/job", "sys", "base"), 40);
	assert_near(value(json, "fio/dev/job", "sys_ns_per_io", "base"), 400000);
	assert_near(value(json, "fio/dev/job", "usr_ns_per_io", "base"), 100000);

	assert_near(value(json, "fio/dev/job", "iops", "noise"), 0.1);
	assert_near(value(json, "fio/dev/job", "clat.p50", "noise"), 1.0 / 64);
	assert_near(value(json, "fio/dev/job", "sys_ns_per_io", "noise"), 0.25);
	assert_near(value(json, "fio/dev/job", "slat.mean", "noise"), 1 / 40.5);
	assert_string_equal(word(json, "fio/dev/job", "clat.p50", "unit"), "ns");
	json_decref(json);
}

static void test_values_of_gup(void **state)
{
	json_t *json;

	(void)state;
	put(GET, "TAP version 13\n1..1\n"
	    "# GUP_FAST_BENCHMARK: Time: get:2064 put:278 us# \n"
	    "# GUP_FAST_BENCHMARK: Time: get:9000 put:900 us# \n"
	    "# GUP_FAST_BENCHMARK: Time: get:2066 put:276 us# \n"
	    "ok 1 ioctl status 0\n");
	json = report("{\"mode\": \"kvm\"}");
	assert_near(value(json, "gup/anon/512", "get", "base"), 2064 * 1000. / 16384);
	assert_near(value(json, "gup/anon/512", "get", "noise"), 4. / 2064);
	assert_near(value(json, "gup/anon/512", "put", "base"), 277 * 1000. / 16384);
	assert_near(value(json, "gup/anon/512", "put", "noise"), 4. / 277);
	assert_near(value(json, "gup/anon/512", "get+put", "queue"), 2342 * 1000. / 16384);
	assert_near(value(json, "gup/anon/512", "pin+unpin", "queue"), 4341 * 1000. / 16384);
	assert_string_equal(word(json, "gup/anon/512", "get", "unit"), "ns/page");
	json_decref(json);
}

static void test_icount_counts_instructions(void **state)
{
	json_t *json = report("{\"mode\": \"icount\"}");
	char *text = slurp("out/report.txt");

	(void)state;
	assert_string_equal(word(json, "gup/anon/512", "pin", "unit"), "instructions/page");
	assert_string_equal(word(json, "fio/dev/job", "clat.mean", "unit"), "ns");
	assert_non_null(strstr(text, "says nothing of caches or contention"));
	free(text);
	json_decref(json);
}

static void test_a_slowed_queue_is_higher(void **state)
{
	char *slow = replace(good_fio, "\"mean\":2000.25", "\"mean\":2400");
	char *text;
	json_t *json;

	(void)state;
	put_all("queue", "fio/dev/job.json", slow);
	put_all("queue", "gup/anon/512/pin.txt",
		"1..1\n# PIN_FAST_BENCHMARK: Time: get:3000 put:1000 us\nok 1\n");
	json = report(NULL);
	assert_string_equal(word(json, "fio/dev/job", "clat.mean", "verdict"), "higher");
	assert_string_equal(word(json, "gup/anon/512", "pin", "verdict"), "higher");
	assert_string_equal(word(json, "gup/anon/512", "unpin", "verdict"), "lower");
	assert_string_equal(word(json, "gup/anon/512", "get", "verdict"), "same");
	text = slurp("out/report.txt");
	assert_non_null(strstr(text, "4 of 29 figures differ beyond the noise."));
	assert_non_null(strstr(text, "* +19.99"));
	free(text);
	free(slow);
	json_decref(json);
}

static void test_run_is_copied_and_shown(void **state)
{
	static const char shown[] =
		"    mode: tcg\n    base.commit: a|b\n    jobs[0]: 1\n    jobs[1]: x\n"
		"    big: 9007199254740993\n    none: {}\n    lines: \"a\\nb\"\n"
		"    boots: 2 of base";
	static const char written[] =
		"{ \"mode\": \"tcg\", \"base\": {\"commit\": \"a|b\"}, \"jobs\": [1, \"x\"],"
		" \"big\": 9007199254740993, \"none\": {}, \"lines\": \"a\\nb\"}";
	char *text;

	(void)state;
	json_decref(report(written));
	text = slurp("out/report.json");
	assert_non_null(strstr(text, written));
	free(text);
	text = slurp("out/report.txt");
	assert_non_null(strstr(text, shown));
	free(text);
	text = slurp("out/report.md");
	assert_non_null(strstr(text, shown));
	free(text);
}

/* Every line of a table is as wide as its head, seen as plain text. */
static void test_markdown_tables_are_aligned(void **state)
{
	size_t width = 0, rows = 0;
	char *text, *rest, *line;

	(void)state;
	json_decref(report(NULL));
	text = slurp("out/report.md");
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		size_t now = 0;

		for (const char *c = line; *line == '|' && *c; c++)
			now += (*c & 0xc0) != 0x80;
		if (now && width)
			assert_int_equal(now, width);
		rows += now > 0;
		width = now;
	}
	assert_int_equal(rows, 2 + 4 + 2 + 12 + 2 + 17);
	free(text);
}

static void test_text_goes_to_stdout_without_o(void **state)
{
	char *text;

	(void)state;
	json_decref(report(NULL));
	text = slurp("out/report.txt");
	assert_int_equal(run_limited(RLIM_INFINITY, NULL, (const char *[]){ NULL }), 0);
	assert_string_equal(output, text);
	assert_null(strstr(text, " \n"));
	free(text);
}

static void test_help_and_usage(void **state)
{
	(void)state;
	assert_int_equal(run("--help"), 0);
	assert_non_null(strstr(output, "usage: compare"));
	assert_int_equal(run("--no-such-option"), 2);
	assert_int_equal(run("a-third-folder"), 2);
}

static void test_one_boot_is_said(void **state)
{
	json_t *json;
	char *text;

	(void)state;
	assert_int_equal(nftw("base/2", remove_entry, 8, FTW_DEPTH), 0);
	assert_int_equal(nftw("queue/2", remove_entry, 8, FTW_DEPTH), 0);
	json = report(NULL);
	assert_string_equal(word(json, "fio/dev/job", "iops", "verdict"), "unknown");
	assert_true(json_is_null(json_object_get(find(json, "fio/dev/job", "iops"), "noise")));
	text = slurp("out/report.txt");
	assert_non_null(strstr(text, "one boot: no noise figure"));
	free(text);
	json_decref(json);
}

static void test_contending_threads_give_their_median(void **state)
{
	static const char three[] =
		"1..1\n# GUP_FAST_BENCHMARK: Time: get:100 put:30 us\n"
		"# GUP_FAST_BENCHMARK: Time: get:300 put:10 us\n"
		"# GUP_FAST_BENCHMARK: Time: get:200 put:20 us\nok 1\n";
	json_t *json;

	(void)state;
	put_gup("shared/512");
	put_all("", "gup/anon/512/get.txt", three);
	put_all("", "gup/shared/512/get.txt", three);
	json = report(NULL);
	assert_near(value(json, "gup/anon/512", "get", "base"), 100 * 1000. / 16384);
	assert_near(value(json, "gup/shared/512", "get", "base"), 200 * 1000. / 16384);
	assert_near(value(json, "gup/shared/512", "get+put", "base"), 220 * 1000. / 16384);
	json_decref(json);
}

static void test_boots_and_jobs_are_in_natural_order(void **state)
{
	json_t *json, *array;

	(void)state;
	put_gup("anon/64");
	assert_int_equal(rename("base/1", "base/10"), 0);
	put("base/10/gup/anon/512/size", "8192\n");
	json = report(NULL);
	array = json_object_get(json, "figures");
	assert_string_equal(json_string_value(json_object_get(json_array_get(array, 0), "job")),
			    "gup/anon/64");
	array = json_object_get(find(json, "gup/anon/512", "get"), "base_boots");
	assert_near(json_number_value(json_array_get(array, 0)), 2064 * 1000. / 16384);
	assert_near(json_number_value(json_array_get(array, 1)), 2064 * 1000. / 8192);
	json_decref(json);
}

/* ---- fio ---- */

static void test_notes_before_the_json(void **state)
{
	char *text = replace(good_fio, "{", "fio: this platform\nnote: iodepth >= 1\n{");
	json_t *json;

	(void)state;
	put(FIO, text);
	json = report(NULL);
	assert_true(value(json, "fio/dev/job", "iops", "base") == 1000.5);
	json_decref(json);
	free(text);
}

static void test_no_percentiles_is_no_figure(void **state)
{
	json_t *json = report(NULL);

	(void)state;
	assert_null(find(json, "fio/dev/job", "slat.p50"));
	assert_null(find(json, "fio/dev/job", "lat.p99"));
	assert_non_null(find(json, "fio/dev/job", "lat.mean"));
	json_decref(json);
}

static void test_newer_fio_has_more_keys(void **state)
{
	/* job_start since 3.36; later latency_*_ns, _us; prios and total_err on demand. */
	char *more = replace(good_fio, "\"error\":0,",
			     "\"job_start\":1701234567890,\"error\":0,\"total_err\":0,"
			     "\"latency_target_ns\":0,\"latency_window_us\":0,\"for_each\":[[]],"
			     "\"sync\":{\"total_ios\":0},\"steadystate\":{\"attained\":-1e300},");
	char *prios = replace(more, "\"total_ios\":10,",
			      "\"total_ios\":10,\"prios\":[{\"prioclass\":2,\"clat_ns\":{}}],");
	json_t *json, *old = report(NULL);

	(void)state;
	put_all("", "fio/dev/job.json", prios);
	json = report(NULL);
	assert_true(json_equal(json, old));
	json_decref(json);
	json_decref(old);
	free(prios);
	free(more);
}

static void test_fio_3_33_psync_has_no_slat(void **state)
{
	char *text = fixture("fio-3.33-psync.json");
	json_t *json;

	(void)state;
	put_all("", "fio/dev/job.json", text);
	json = report(NULL);
	assert_null(find(json, "fio/dev/job", "slat.mean"));
	assert_null(find(json, "fio/dev/job", "slat.p50"));
	assert_non_null(find(json, "fio/dev/job", "clat.p99.99"));
	assert_non_null(find(json, "fio/dev/job", "lat.p50"));
	assert_true(value(json, "fio/dev/job", "iops", "base") == 8000);
	json_decref(json);
	free(text);
}

static void test_fio_3_33_both_directions(void **state)
{
	char *text = fixture("fio-3.33-mix.json");
	json_t *json, *given = json_loads(text, 0, NULL), *jobs = json_object_get(given, "jobs");
	double read, write, mean;

	(void)state;
	assert_int_equal(json_unpack(jobs, "[{s{sF} s{sF s{sF}}}]", "read", "iops", &read,
				     "write", "iops", &write, "slat_ns", "mean", &mean), 0);
	put_all("", "fio/dev/job.json", text);
	json = report(NULL);
	assert_near(value(json, "fio/dev/job", "read.iops", "base"), read);
	assert_near(value(json, "fio/dev/job", "write.iops", "base"), write);
	assert_near(value(json, "fio/dev/job", "write.slat.mean", "base"), mean);
	assert_non_null(find(json, "fio/dev/job", "read.lat.p99.99"));
	assert_non_null(find(json, "fio/dev/job", "sys"));
	assert_null(find(json, "fio/dev/job", "iops"));
	assert_null(find(json, "fio/dev/job", "trim.iops"));
	json_decref(json);
	json_decref(given);
	free(text);
}

/* fio's own percentiles are the reference: a job and its twin have those of the job. */
static void test_merged_percentiles_are_those_of_fio(void **state)
{
	static const char * const names[] = { "p50", "p90", "p99", "p99.9", "p99.99" };
	char *text = fixture("fio-3.33-mix.json"), *twice;
	json_t *given = json_loads(text, 0, NULL), *jobs = json_object_get(given, "jobs");
	json_t *one, *two;

	(void)state;
	put_all("", "fio/dev/job.json", text);
	one = report(NULL);
	json_array_append(jobs, json_array_get(jobs, 0));
	twice = json_dumps(given, 0);
	put_all("", "fio/dev/job.json", twice);
	two = report(NULL);
	assert_string_equal(errors, "");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char figure[32];

		snprintf(figure, sizeof(figure), "read.clat.%s", names[i]);
		assert_true(value(one, "fio/dev/job", figure, "base") ==
			    value(two, "fio/dev/job", figure, "base"));
	}
	assert_near(value(two, "fio/dev/job", "write.bw", "base"),
		    2 * value(one, "fio/dev/job", "write.bw", "base"));
	assert_near(value(two, "fio/dev/job", "read.lat.mean", "base"),
		    value(one, "fio/dev/job", "read.lat.mean", "base"));
	assert_near(value(two, "fio/dev/job", "sys_ns_per_io", "base"),
		    value(one, "fio/dev/job", "sys_ns_per_io", "base"));
	json_decref(one);
	json_decref(two);
	json_decref(given);
	free(twice);
	free(text);
}

static void test_fio_3_33_two_jobs(void **state)
{
	char *text = fixture("fio-3.33-two-jobs.json");
	json_t *json, *given = json_loads(text, 0, NULL), *jobs = json_object_get(given, "jobs");
	double first, second;

	(void)state;
	assert_int_equal(json_unpack(jobs, "[{s{sF}},{s{sF}}]", "read", "iops", &first,
				     "read", "iops", &second), 0);
	put_all("", "fio/dev/job.json", text);
	json = report(NULL);
	assert_near(value(json, "fio/dev/job", "iops", "base"), first + second);
	assert_non_null(find(json, "fio/dev/job", "slat.p99.99"));
	/* They ran for less than a millisecond: there is no CPU time to tell of. */
	assert_null(find(json, "fio/dev/job", "sys"));
	json_decref(json);
	json_decref(given);
	free(text);
}

/* Two jobs: 10 samples with mean 100, and 30 with mean 200. */
#define TWO_JOBS(bins1, bins2)								\
	"{\"jobs\":["									\
	"{\"error\":0,\"read\":{\"bw_bytes\":1000,\"iops\":10,\"runtime\":10,\"total_ios\":10,"	\
	"\"clat_ns\":{\"mean\":100,\"stddev\":2,\"N\":10,\"percentile\":{\"50.000000\":1}"	\
	bins1 "}}," NO_IO("write") "," NO_IO("trim")					\
	",\"job_runtime\":100,\"usr_cpu\":10,\"sys_cpu\":20},"				\
	"{\"error\":0,\"read\":{\"bw_bytes\":3000,\"iops\":30,\"runtime\":10,\"total_ios\":30,"	\
	"\"clat_ns\":{\"mean\":200,\"stddev\":3,\"N\":30,\"percentile\":{\"50.000000\":1}"	\
	bins2 "}}," NO_IO("write") "," NO_IO("trim")					\
	",\"job_runtime\":300,\"usr_cpu\":30,\"sys_cpu\":60}]}"
#define NO_IO(name) \
	"\"" name "\":{\"bw_bytes\":0,\"iops\":0,\"runtime\":0,\"total_ios\":0}"

static void test_several_jobs_with_bins_are_merged(void **state)
{
	json_t *json;

	(void)state;
	put_all("", "fio/dev/job.json", TWO_JOBS(",\"bins\":{\"100\":10}",
						 ",\"bins\":{\"90\":11,\"300\":19}"));
	json = report(NULL);
	assert_near(value(json, "fio/dev/job", "iops", "base"), 40);
	assert_near(value(json, "fio/dev/job", "bw", "base"), 4000);
	assert_near(value(json, "fio/dev/job", "clat.mean", "base"), 175);
	/* 9 * 2^2 + 29 * 3^2 within the jobs, 10 * 75^2 + 30 * 25^2 between them */
	assert_near(value(json, "fio/dev/job", "clat.stdev", "base"), sqrt(75297 / 39.));
	assert_near(value(json, "fio/dev/job", "clat.p50", "base"), 100);
	assert_near(value(json, "fio/dev/job", "clat.p90", "base"), 300);
	assert_near(value(json, "fio/dev/job", "usr", "base"), 25);
	assert_near(value(json, "fio/dev/job", "sys", "base"), 50);
	assert_near(value(json, "fio/dev/job", "sys_ns_per_io", "base"), 200e6 / 40);
	assert_null(strstr(errors, "left out"));
	json_decref(json);
}

/* In fio 32967 of 33000 samples are less than 99.9 %, which is not exact in binary. */
static void test_merging_rounds_as_fio_does(void **state)
{
	char *text = replace(TWO_JOBS(",\"bins\":{\"100\":10}",
				      ",\"bins\":{\"90\":32957,\"300\":33}"),
			     "\"stddev\":3,\"N\":30", "\"stddev\":3,\"N\":32990");
	json_t *json;

	(void)state;
	put_all("", "fio/dev/job.json", text);
	json = report(NULL);
	assert_near(value(json, "fio/dev/job", "clat.p99", "base"), 90);
	assert_near(value(json, "fio/dev/job", "clat.p99.9", "base"), 300);
	json_decref(json);
	free(text);
}

static void test_several_jobs_without_bins_have_no_percentiles(void **state)
{
	json_t *json;

	(void)state;
	put_all("", "fio/dev/job.json", TWO_JOBS(",\"bins\":{\"100\":10}", ""));
	json = report(NULL);
	assert_null(find(json, "fio/dev/job", "clat.p50"));
	assert_near(value(json, "fio/dev/job", "clat.mean", "base"), 175);
	assert_non_null(strstr(errors, FIO ": clat: percentiles of 2 jobs left out"));
	json_decref(json);
}

static void test_hostile_fio_is_refused(void **state)
{
	static const struct spoil spoil[] = {
		{ "\"iops\":1000.5", "\"iops\":1e300", "jobs[0].read.iops: out of range" },
		{ "\"iops\":1000.5", "\"iops\":1e999", ":1: " },
		{ "\"iops\":1000.5", "\"iops\":99999999999999999999", "jobs[0].read.iops" },
		{ "\"iops\":1000.5", "\"iops\":-1", "jobs[0].read.iops: out of range" },
		{ "\"iops\":1000.5", "\"iops\":nan", ":1: " },
		{ "\"iops\":1000.5", "\"iops\":\"1000\"", "jobs[0].read.iops: not of type number" },
		{ "\"iops\":1000.5", "\"iops\":null", "jobs[0].read.iops: not of type number" },
		{ "\"iops\":1000.5,", "", "jobs[0].read.iops: missing" },
		{ "\"runtime\":10,", "\"runtime\":0,", "jobs[0].read.runtime: 0" },
		{ "\"total_ios\":10", "\"total_ios\":0", "total_ios: 0" },
		{ "\"error\":0", "\"error\":5", "jobs[0].error: fio failed" },
		{ "\"error\":0,", "", "jobs[0].error: missing" },
		{ "\"mean\":40.5", "\"mean\":-40.5", "jobs[0].read.slat_ns.mean" },
		{ "\"slat_ns\":{\"mean\":40.5,\"stddev\":1.5,\"N\":10}", "\"slat_ns\":[]",
		  "jobs[0].read.slat_ns: not of type object" },
		{ "\"99.900000\":2040", "\"99.900000\":[]",
		  "jobs[0].read.clat_ns.percentile.99.900000" },
		{ "\"percentile\":{", "\"percentile\":7,\"x\":{",
		  "clat_ns.percentile: not of type" },
		{ "\"1992\":5", "\"1992x\":5", "clat_ns.bins.1992x: not a bin" },
		{ "\"1992\":5", "\"1992\":6", "clat_ns.bins: 11 samples, but N is 10" },
		{ "\"jobs\":[{", "\"jobs\":{\"x\":{", ":1: " },
		{ "\"jobs\":[{", "\"jobs\":[7,{", "jobs[0]: not of type object" },
		{ "\"jobs\":[{", "\"jobs\":[],\"x\":[{", "jobs: empty" },
		{ "\"jobs\":[{", "\"x\":[{", "jobs: missing" },
		{ "\"write\":{", "\"mixed\":{", "jobs[0].write: missing" },
		{ "\"sys_cpu\":40.0", "\"sys_cpu\":true", "jobs[0].sys_cpu" },
		{ "}]}\n", "}]}\ntrailing", ":2: end of file expected" },
		{ "}]}\n", "}]}{}", "end of file expected" },
		{ "}]}\n", "}", ":1: " },
		{ good_fio, "", "empty" },
		{ good_fio, "no JSON at all\n", ":2: " },
		{ good_fio, "[1]\n", ":2: " },
		{ good_fio, "{}\n", "jobs: missing" },
	};

	(void)state;
	assert_each_refused(FIO, good_fio, spoil, ARRAY_SIZE(spoil));
}

static void test_fio_cut_off_anywhere_is_refused(void **state)
{
	(void)state;
	for (size_t len = 1; len < sizeof(good_fio) - 2; len += 97) {
		put_bytes(FIO, good_fio, len);
		assert_refused(FIO, ":1: ");
	}
}

static void test_deep_nesting_is_refused(void **state)
{
	static char deep[200001];

	(void)state;
	memset(deep, '[', sizeof(deep) - 1);
	memcpy(deep, "{\"jobs\":", 8);
	put(FIO, deep);
	assert_refused(FIO, ":1: maximum parsing depth reached");
}

static void test_nul_bytes_are_refused(void **state)
{
	char text[sizeof(good_fio)];

	(void)state;
	memcpy(text, good_fio, sizeof(text));
	text[20] = '\0';
	put_bytes(FIO, text, sizeof(text) - 1);
	assert_refused(FIO, "a NUL byte at offset 20");
	put(FIO, good_fio);
	put_bytes(GET, "TAP version 13\n\0", 16);
	assert_refused(GET, "a NUL byte at offset 15");
}

static void test_what_is_not_a_file_is_refused(void **state)
{
	(void)state;
	unlink(FIO);
	mkdir(FIO, 0777);
	assert_refused(FIO, "not a regular file");
	rmdir(FIO);
	mkfifo(FIO, 0666);
	assert_refused(FIO, "not a regular file");
	unlink(FIO);
	assert_int_equal(symlink("nowhere", FIO), 0);
	assert_refused(FIO, "No such file");
}

/* ---- gup ---- */

static void test_hostile_gup_is_refused(void **state)
{
	static const struct spoil get[] = {
		{ " us# \n", " us# , truncated (size: 4096)# \n", ":3: " },
		{ "ok 1 ioctl status 0", "not ok 1 ioctl status -14", ":4: " },
		{ "ok 1 ioctl status 0", "ok 1 # SKIP Please run this test as root", ":4: " },
		{ "1..1\n", "1..0 # SKIP HugeTLB is unavailable\n", ":2: " },
		{ "1..1\n", "Bail out! mmap: Cannot allocate memory\n",
		  ":2: not a result of GUP_FAST_BENCHMARK: Bail" },
		{ "GUP_FAST", "PIN_FAST", ":3: not a result of GUP_FAST_BENCHMARK" },
		{ "get:2064", "get:-1", ":3: " },
		{ "get:2064", "get:99999999999999999999", ":3: " },
		{ "get:2064", "get:", ":3: " },
		{ "get:2064 put:278", "get:2064", ":3: " },
		{ "# GUP_FAST_BENCHMARK: Time: get:2064 put:278 us# \n", "", "no Time line" },
		{ "ok 1 ioctl status 0\n", "", "cut off" },
		{ "1..1\n", "1..2\n", "cut off" },
		{ "TAP version 13\n", "Segmentation fault\n", ":1: " },
		{ good_get, "", "empty" },
	};
	static const struct spoil pin[] = {
		{ "PIN_FAST", "GUP_FAST", ":3: not a result of PIN_FAST_BENCHMARK" },
		{ "PIN_FAST", "PIN_LONGTERM", ":3: not a result of PIN_FAST_BENCHMARK" },
	};
	static const struct spoil pages[] = {
		{ "16384\n", "0\n", "not a number of pages" },
		{ "16384\n", "-5\n", "not a number of pages" },
		{ "16384\n", "64M\n", "not a number of pages" },
		{ "16384\n", "99999999999999999999\n", "not a number of pages" },
		{ "16384\n", "", "empty" },
	};

	(void)state;
	assert_each_refused(GET, good_get, get, ARRAY_SIZE(get));
	assert_each_refused(PIN, good_pin, pin, ARRAY_SIZE(pin));
	assert_each_refused(PAGES, "16384\n", pages, ARRAY_SIZE(pages));
}

/* ---- folders ---- */

static void test_what_one_boot_has_all_must_have(void **state)
{
	(void)state;
	put("queue/2/fio/dev/other.json", good_fio);
	assert_refused("base/1/fio/dev/other.json", "missing, but queue/2 has it");
	unlink("queue/2/fio/dev/other.json");
	put("base/1/fio/dev/other.json", good_fio);
	assert_refused("base/2/fio/dev/other.json", "missing, but base/1 has it");
	put("base/2/fio/dev/other.json", good_fio);
	assert_refused("queue/1/fio/dev/other.json", "missing, but base/1 has it");
}

static void test_a_figure_one_boot_lacks_is_an_error(void **state)
{
	char *text = replace(good_fio, "\"90.000000\":2008,", "");

	(void)state;
	put("queue/1/fio/dev/job.json", text);
	assert_refused("queue/1/fio/dev/job.json", "no clat.p90, but base/1 has it");
	put("queue/1/fio/dev/job.json", good_fio);
	put("base/1/fio/dev/job.json", text);
	assert_refused("base/1/fio/dev/job.json", "no clat.p90, but base/2 has it");
	free(text);
}

static void test_every_gup_file_must_be_there(void **state)
{
	static const char * const paths[] = { GET, PIN, SLOW, LONG, PAGES };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char *text = slurp(paths[i]);

		unlink(paths[i]);
		assert_refused(paths[i], "No such file");
		put(paths[i], text);
		free(text);
	}
}

static void test_unknown_files_are_refused(void **state)
{
	static const struct {
		const char *path, *reason;
	} cases[] = {
		{ "base/1/fio/stray.json", "Not a directory" },
		{ "base/1/fio/dev/job.txt", "unknown file" },
		{ "base/1/fio/dev/.json", "unknown file" },
		{ "base/1/fio/dev/a b.json", "unusable name" },
		{ "base/1/fio/dev/a|b.json", "unusable name" },
		{ "base/1/gup/anon/512/other", "unknown file" },
		{ "base/1/gup/anon/stray", "Not a directory" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put(cases[i].path, good_fio);
		assert_refused(cases[i].path, cases[i].reason);
		unlink(cases[i].path);
	}
	mkdir("base/1/fio/empty", 0777);
	assert_refused("base/1/fio/empty", "empty");
}

static void test_no_boots_and_no_jobs_are_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(boots); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/fio", boots[i]);
		assert_int_equal(nftw(path, remove_entry, 8, FTW_DEPTH), 0);
		snprintf(path, sizeof(path), "%s/gup", boots[i]);
		assert_int_equal(nftw(path, remove_entry, 8, FTW_DEPTH), 0);
	}
	assert_refused("base", "no jobs");
	assert_int_equal(nftw("queue", remove_entry, 8, FTW_DEPTH), 0);
	assert_refused("queue", "No such file");
	put("queue/README", "no boot\n");
	assert_refused("queue", "no boots");
}

static void test_hostile_run_json_is_refused(void **state)
{
	static const char * const texts[] = {
		"[]", "{", "{} x", "{\"mode\":\"bare\"}", "{\"mode\":1}", "{\"a\":1,\"a\":2}", "",
		"note\n{}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put("run.json", texts[i]);
		assert_int_equal(run("-r", "run.json"), 1);
		assert_non_null(strstr(errors, "run.json"));
	}
	assert_int_equal(run("-r", "absent.json"), 1);
}

/* ---- writing ---- */

static void assert_only_old_report(void)
{
	char *text = slurp("out/report.json");

	assert_string_equal(text, "old\n");
	free(text);
	unlink("out/report.json");
	/* rmdir() proves that no temporary file was left. */
	assert_int_equal(rmdir("out"), 0);
}

static void test_full_disk_leaves_the_old_report(void **state)
{
	(void)state;
	put("out/report.json", "old\n");
	assert_int_equal(run_limited(4096, NULL, (const char *[]){ "-o", "out", NULL }), 1);
	assert_non_null(strstr(errors, "out/report.json: File too large"));
	assert_only_old_report();
}

static void test_failed_second_file_leaves_the_old_report(void **state)
{
	/* Elements of an array take a line each in the Markdown, 2 bytes in the JSON. */
	char run_json[4100] = "{\"a\":[1";
	struct stat json, md;

	(void)state;
	for (size_t len = strlen(run_json); len < 4000; len += 2)
		strcpy(run_json + len, ",1");
	strcat(run_json, "]}");
	json_decref(report(run_json));
	assert_int_equal(stat("out/report.json", &json), 0);
	assert_int_equal(stat("out/report.md", &md), 0);
	assert_true(json.st_size < md.st_size);

	assert_int_equal(nftw("out", remove_entry, 8, FTW_DEPTH), 0);
	put("out/report.json", "old\n");
	assert_int_equal(run_limited(json.st_size, NULL, (const char *[]){
			 "-r", "run.json", "-o", "out", NULL }), 1);
	assert_non_null(strstr(errors, "out/report.md: File too large"));
	assert_only_old_report();
}

static void test_output_that_is_no_folder_is_an_error(void **state)
{
	(void)state;
	put("out", "a file\n");
	assert_int_equal(run("-o", "out"), 1);
	assert_non_null(strstr(errors, "out/report.json: Not a directory"));
	assert_int_equal(run("-o", "no/such/folder"), 1);
	assert_non_null(strstr(errors, "no/such/folder"));
}

static void test_full_stdout_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(run_limited(RLIM_INFINITY, "/dev/full", (const char *[]){ NULL }), 1);
	assert_non_null(strstr(errors, "stdout: No space left"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median_of_odd_and_even),
		cmocka_unit_test(test_noise_is_both_ranges_added),
		cmocka_unit_test(test_noise_is_never_below_the_resolution),
		cmocka_unit_test(test_one_boot_has_no_noise),
		cmocka_unit_test(test_nothing_is_relative_to_zero),
		TEST(test_a_kernel_is_the_same_as_itself),
		TEST(test_report_json_has_its_keys_in_order),
		TEST(test_values_and_resolutions_of_fio),
		TEST(test_values_of_gup),
		TEST(test_contending_threads_give_their_median),
		TEST(test_icount_counts_instructions),
		TEST(test_a_slowed_queue_is_higher),
		TEST(test_run_is_copied_and_shown),
		TEST(test_markdown_tables_are_aligned),
		TEST(test_text_goes_to_stdout_without_o),
		TEST(test_help_and_usage),
		TEST(test_one_boot_is_said),
		TEST(test_boots_and_jobs_are_in_natural_order),
		TEST(test_notes_before_the_json),
		TEST(test_no_percentiles_is_no_figure),
		TEST(test_newer_fio_has_more_keys),
		TEST(test_fio_3_33_psync_has_no_slat),
		TEST(test_fio_3_33_both_directions),
		TEST(test_merged_percentiles_are_those_of_fio),
		TEST(test_fio_3_33_two_jobs),
		TEST(test_several_jobs_with_bins_are_merged),
		TEST(test_merging_rounds_as_fio_does),
		TEST(test_several_jobs_without_bins_have_no_percentiles),
		TEST(test_hostile_fio_is_refused),
		TEST(test_fio_cut_off_anywhere_is_refused),
		TEST(test_deep_nesting_is_refused),
		TEST(test_nul_bytes_are_refused),
		TEST(test_what_is_not_a_file_is_refused),
		TEST(test_hostile_gup_is_refused),
		TEST(test_what_one_boot_has_all_must_have),
		TEST(test_a_figure_one_boot_lacks_is_an_error),
		TEST(test_every_gup_file_must_be_there),
		TEST(test_unknown_files_are_refused),
		TEST(test_no_boots_and_no_jobs_are_errors),
		TEST(test_hostile_run_json_is_refused),
		TEST(test_full_disk_leaves_the_old_report),
		TEST(test_failed_second_file_leaves_the_old_report),
		TEST(test_output_that_is_no_folder_is_an_error),
		TEST(test_full_stdout_is_an_error),
	};

	if (argc != 3 || !realpath(argv[1], program) || !realpath(argv[2], fixtures)) {
		fprintf(stderr, "usage: test PROGRAM FIXTURES\n");
		return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
