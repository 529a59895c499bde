/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of pinned pages share: the counters of /proc/vmstat, text files
 * of /proc and /sys, file systems to do direct I/O on, the way to mm/gup_test.c.
 */
#ifndef __MM_PIN_H
#define __MM_PIN_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/loop.h>

#include "../../../../mm/gup_test.h"
#include "kselftest.h"

#define FOLL_WRITE		0x01	/* include/linux/mm_types.h */

#define KPF_COMPOUND_HEAD	15
#define KPF_COMPOUND_TAIL	16
#define KPF_ZERO_PAGE		24
#define PM_PFRAME		((1ULL << 55) - 1)

#define NPAGES			512UL	/* pages of a buffer: a PMD's worth on most */
#define SETTLE_MS		5000
#define QUIET_MS		2000
#define REST_MS			50
#define PATH_LEN		256
#define WHY_LEN			160

static size_t pagesize;
static size_t bufsize;			/* NPAGES of them */
static size_t mthpsize __maybe_unused = 64 << 10;
static size_t pmdsize;

/* Why something cannot be had, for the reader of a skip. False, to be returned. */
static __printf(2, 3) bool because(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, WHY_LEN, fmt, args);
	va_end(args);
	return false;
}

/* ---- The counters ------------------------------------------------------- */

struct pins {
	long acquired;
	long released;
};

static char vmstat_why[WHY_LEN];
static struct pins pins_last;
static long pins_moved;			/* when they were seen to differ from before */

static long vmstat_item(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? atol(at + strlen(name)) : -1;
}

static void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The counts of each CPU reach /proc/vmstat late: have them folded in first. */
static struct pins pins_now(void)
{
	static char text[64 << 10];
	struct pins pins = { -1, -1 };
	ssize_t len = 0, ret;
	int fd;

	fd = open("/proc/sys/vm/stat_refresh", O_RDONLY);
	if (fd < 0) {
		because(vmstat_why, "/proc/sys/vm/stat_refresh: %s", strerror(errno));
		return pins;
	}
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);

	fd = open("/proc/vmstat", O_RDONLY);
	if (fd < 0) {
		because(vmstat_why, "/proc/vmstat: %s", strerror(errno));
		return pins;
	}
	while ((ret = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += ret;
	close(fd);
	text[len] = '\0';

	pins.acquired = vmstat_item(text, "nr_foll_pin_acquired ");
	pins.released = vmstat_item(text, "nr_foll_pin_released ");
	if (pins.acquired < 0 || pins.released < 0)
		because(vmstat_why, "/proc/vmstat: no nr_foll_pin_acquired, _released");
	if (pins.acquired != pins_last.acquired || pins.released != pins_last.released)
		pins_moved = now_ms();
	pins_last = pins;
	return pins;
}

static struct pins pins_since(const struct pins *before)
{
	struct pins now = pins_now();

	now.acquired -= before->acquired;
	now.released -= before->released;
	return now;
}

/*
 * Pins are dropped from an I/O's end and from work items, after its caller
 * returned: wait for the counters to agree, and to stay so for a second
 * reading. A lost pin does not come back: counts that stand still apart from
 * each other for QUIET_MS are final, and for REST_MS if it is the releases that
 * are ahead, as no release comes before its pin.
 */
static struct pins pins_settled(const struct pins *before)
{
	long start = now_ms(), quiet;
	struct pins now;

	pins_now();
	do {
		sleep_ms(1);
		now = pins_since(before);
		if (now.acquired == now.released)
			quiet = 1;
		else
			quiet = now.acquired > now.released ? QUIET_MS : REST_MS;
	} while (now_ms() - pins_moved <= quiet && now_ms() - start <= SETTLE_MS);
	return now;
}

/*
 * The counts, once what ran before this test has come to rest. The time since
 * SKIP_UNLESS_COUNTED() looked at them counts.
 */
static struct pins pins_at_rest(void)
{
	struct pins now = pins_now();
	long start = now_ms();

	while (now_ms() - pins_moved < REST_MS && now_ms() - start <= SETTLE_MS) {
		sleep_ms(1);
		now = pins_now();
	}
	return now;
}

#define SKIP_UNLESS_COUNTED() do {					\
	pins_now();							\
	if (vmstat_why[0])						\
		SKIP(return, "%s", vmstat_why);				\
} while (0)

#define EXPECT_PINNED_AND_RELEASED(before, npages) do {			\
	struct pins _pins = pins_settled(before);			\
									\
	EXPECT_GE(_pins.acquired, (long)(npages))			\
		TH_LOG("pins: %ld acquired", _pins.acquired);		\
	EXPECT_EQ(_pins.acquired, _pins.released)			\
		TH_LOG("pins: %ld acquired, %ld released",		\
		       _pins.acquired, _pins.released);			\
} while (0)

/* ---- Files of /proc and /sys -------------------------------------------- */

#define THP_DIR		"/sys/kernel/mm/transparent_hugepage"

static int read_text(const char *path, char *text, size_t size)
{
	ssize_t len;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	len = read(fd, text, size - 1);
	close(fd);
	if (len < 0)
		return -1;
	text[len] = '\0';
	return 0;
}

static int write_text(const char *path, const char *text)
{
	ssize_t len;
	int fd;

	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	len = write(fd, text, strlen(text));
	close(fd);
	return len < 0 ? -1 : 0;
}

/* Keep the word of "always [madvise] never" that is in force. */
static inline void keep_choice(const char *path, char *was, size_t size)
{
	char text[128], *from, *to;

	was[0] = '\0';
	if (read_text(path, text, sizeof(text)))
		return;
	from = strchr(text, '[');
	to = strchr(text, ']');
	if (from && to && from < to)
		snprintf(was, size, "%.*s", (int)(to - from - 1), from + 1);
}

/* Is [addr, addr + size) exactly one large folio, each page with @kpf set? */
static bool is_one_folio(const char *addr, size_t size, uint64_t kpf)
{
	size_t i, n = size / pagesize;
	uint64_t *map, *flags;
	int mapfd, flagsfd;
	bool ret = false;

	map = malloc(n * sizeof(*map));
	flags = malloc(n * sizeof(*flags));
	mapfd = open("/proc/self/pagemap", O_RDONLY);
	flagsfd = open("/proc/kpageflags", O_RDONLY);
	if (!map || !flags || mapfd < 0 || flagsfd < 0)
		goto out;
	if (pread(mapfd, map, n * sizeof(*map),
		  (uintptr_t)addr / pagesize * sizeof(*map)) !=
	    (ssize_t)(n * sizeof(*map)))
		goto out;
	for (i = 0; i < n; i++)
		map[i] &= PM_PFRAME;
	if (!map[0] || map[0] % n)
		goto out;
	if (pread(flagsfd, flags, n * sizeof(*flags), map[0] * sizeof(*flags)) !=
	    (ssize_t)(n * sizeof(*flags)))
		goto out;
	for (i = 0; i < n; i++) {
		if (map[i] != map[0] + i)
			goto out;
		if (!(flags[i] & (1 << (i ? KPF_COMPOUND_TAIL : KPF_COMPOUND_HEAD))) ||
		    (flags[i] & kpf) != kpf)
			goto out;
	}
	ret = true;
out:
	if (mapfd >= 0)
		close(mapfd);
	if (flagsfd >= 0)
		close(flagsfd);
	free(map);
	free(flags);
	return ret;
}

/* ---- What the I/O goes to ----------------------------------------------- */

struct target {
	const char *name;
	const char *fstype;		/* NULL: the block device itself */
	const char *mkfs[6];
	unsigned int block_size;
	char path[PATH_LEN];
	char why[WHY_LEN];		/* why it cannot be had; "" if it can */
	char image[PATH_LEN];		/* of the disk; "": one in workdir */
	size_t image_size;		/* 0: IMAGE_SIZE */
	const char *env;		/* not a disk, but mounted already, see dio.sh */
};

#define IMAGE_SIZE	(8 * bufsize)
#define FILE_SIZE	(2 * bufsize + 512)

static char workdir[32];

static int run(const char *const *argv, const char *last)
{
	const char *args[12];
	int i, status;
	pid_t pid;

	for (i = 0; argv[i]; i++)
		args[i] = argv[i];
	args[i++] = last;
	args[i] = NULL;

	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(args[0], (char **)args);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A loop device on the target's image, gone with the last that has it open. */
static int attach(struct target *t, char *dev)
{
	struct loop_config config = {
		.block_size = t->block_size,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	struct stat st;
	int ctl, fd, loop = -1, ret, tries = 0;

	if (!t->image[0])
		snprintf(t->image, sizeof(t->image), "%s/%s.img", workdir, t->name);
	fd = open(t->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) ||
	    (!st.st_size && ftruncate(fd, t->image_size ?: IMAGE_SIZE))) {
		because(t->why, "%s: %s", t->image, strerror(errno));
		return -1;
	}
	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (ctl < 0) {
		because(t->why, "/dev/loop-control: %s", strerror(errno));
		return -1;
	}
	config.fd = fd;
	/* Somebody else may be faster to take the free one. */
	do {
		close(loop);
		snprintf(dev, PATH_LEN, "/dev/loop%d", ioctl(ctl, LOOP_CTL_GET_FREE));
		loop = open(dev, O_RDWR | O_CLOEXEC);
		ret = loop < 0 ? -1 : ioctl(loop, LOOP_CONFIGURE, &config);
	} while (ret && errno == EBUSY && ++tries < 10);
	/* Kept open for AUTOCLEAR, but not for writing: that forbids a mount. */
	if (!ret)
		ret = open(dev, O_RDONLY | O_CLOEXEC);
	if (ret < 0)
		because(t->why, "%s: %s", dev, strerror(errno));
	close(ctl);
	close(loop);
	close(fd);
	return ret;
}

/* A file to do the I/O to, in @dir. */
static void target_fill(struct target *t, const char *dir)
{
	char *data = calloc(1, FILE_SIZE);
	size_t off = 0;
	ssize_t ret;
	int fd;

	snprintf(t->path, sizeof(t->path), "%s/file", dir);
	fd = open(t->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (; fd >= 0 && data && off < FILE_SIZE; off += ret) {
		ret = write(fd, data + off, FILE_SIZE - off);
		if (ret <= 0)
			break;
	}
	if (off < FILE_SIZE || fsync(fd))
		because(t->why, "%s: %zu bytes written of %zu: %s",
			t->path, off, FILE_SIZE, strerror(errno));
	free(data);
	close(fd);
}

static void target_make(struct target *t)
{
	char dev[PATH_LEN], dir[PATH_LEN / 2];
	int ret;

	if (t->env) {
		if (getenv(t->env))
			target_fill(t, getenv(t->env));
		else
			because(t->why, "%s is not set: run this by dio.sh", t->env);
		return;
	}
	if (attach(t, dev) < 0)
		return;
	if (!t->fstype) {
		snprintf(t->path, sizeof(t->path), "%s", dev);
		return;
	}

	ret = run(t->mkfs, dev);
	if (ret) {
		because(t->why, "%s: %s", t->mkfs[0],
			ret == 127 ? "not found" : "failed");
		return;
	}
	snprintf(dir, sizeof(dir), "%s/%s", workdir, t->name);
	if (mkdir(dir, 0700) || mount(dev, dir, t->fstype, 0, NULL)) {
		because(t->why, "mount -t %s %s: %s", t->fstype, dev,
			strerror(errno));
		return;
	}
	target_fill(t, dir);
}

static void targets_fail(struct target *targets, unsigned int n, const char *what)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		because(targets[i].why, "%s: %s", what, strerror(errno));
}

/* Mounts and images are seen by this process only, and go with it. */
static void targets_make(struct target *targets, unsigned int n)
{
	unsigned int i;

	if (!mkdtemp(strcpy(workdir, "/tmp/mm-pin.XXXXXX")))
		return targets_fail(targets, n, workdir);
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return targets_fail(targets, n, "mount namespace");
	if (mount("mm-pin", workdir, "tmpfs", 0, NULL))
		return targets_fail(targets, n, "mount -t tmpfs");
	for (i = 0; i < n; i++)
		target_make(&targets[i]);
}

static inline void targets_gone(void)
{
	umount2(workdir, MNT_DETACH);
	rmdir(workdir);
}

/* ---- The way in and out of a test program -------------------------------- */

static void (*tests_end)(void);

static void end_and_die(int sig)
{
	tests_end();
	signal(sig, SIG_DFL);
	raise(sig);
}

/*
 * The sizes, and @end to be called at the end, whatever ends the program. False
 * if it is only to print (-l, -h), and so needs nothing.
 */
static inline bool tests_begin(int argc, char **argv, void (*end)(void))
{
	char text[32];
	int i;

	pagesize = sysconf(_SC_PAGESIZE);
	bufsize = NPAGES * pagesize;
	if (!read_text(THP_DIR "/hpage_pmd_size", text, sizeof(text)))
		pmdsize = strtoul(text, NULL, 10);

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-l") || !strcmp(argv[i], "-h"))
			return false;

	if (geteuid()) {
		ksft_print_header();
		ksft_exit_skip("needs root: mounts, loop devices, /proc/sys/vm/stat_refresh\n");
	}
	tests_end = end;
	atexit(end);
	signal(SIGINT, end_and_die);
	signal(SIGTERM, end_and_die);
	return true;
}

/* ---- mm/gup_test.c ------------------------------------------------------ */

#define GUP_TEST_PATH	"/sys/kernel/debug/gup_test"

static inline int gup_open(char *why)
{
	int fd = open(GUP_TEST_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		because(why, "%s: %s", GUP_TEST_PATH, strerror(errno));
	return fd;
}

#endif /* __MM_PIN_H */
