// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pins of user pages (FOLL_PIN) under everything else that moves, splits, drops
 * or shares these pages at the same time. What it guards:
 *
 *  - However they end, as many pins are released as were taken: afterwards
 *    nr_foll_pin_acquired and nr_foll_pin_released have moved alike.
 *  - Memory keeps what was written to it. Every word of every region tells where
 *    it belongs and when it was written; only an operation that may lose data
 *    (MADV_DONTNEED, MADV_FREE, a hole, a truncation) makes it zero or what the
 *    file holds, and nothing makes it another page's.
 *  - A long-term pin and the mapping keep showing the same page: fork() with a
 *    child that writes, copy on write in the parent, migration, KSM, reclaim or
 *    a collapse must not replace a pinned page, nor free it before it is
 *    released, even if it is no longer mapped.
 *  - Direct I/O reaches the pages that the program sees, also during fork().
 *  - What must not be pinned is not: secretmem, a DAX file for the long term, a
 *    page cache that needs to know of writes for a long-term write.
 *
 * Each actor is a thread that does one thing over and over, to random parts of
 * shared regions or to memory of its own. They live in three processes, as in
 * one they would wait for its mmap_lock most of the time. The parent of these
 * watches the time, so that the test ends even if a thread hangs in the kernel,
 * and undoes the settings. The kernel's log is part of the result.
 *
 *	pin_stress [SECONDS]
 *
 * Where an actor has done nothing by then, on a slow machine, it goes on for up
 * to four times as long. Who has done nothing after that has failed.
 *
 * The counters belong to the whole machine: nothing else may do direct I/O
 * while this runs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <linux/falloc.h>

#include "mm_pin.h"

#define SECONDS		60
#define PATIENCE	4		/* times SECONDS, until each actor had its turn */
#define GRACE_MS	60000		/* for the last operation of each actor */
#define KICK_MS		3000		/* an offlining that takes longer is given up */

#define THP_SIZE_DIR	THP_DIR "/hugepages-%zukB"
#define KSM_DIR		"/sys/kernel/mm/ksm"
#define MEMORY_DIR	"/sys/devices/system/memory"
#define SPLIT_PATH	"/sys/kernel/debug/split_huge_pages"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
#define MPOL_MF_MOVE	2		/* include/uapi/linux/mempolicy.h */

/* ---- What the processes share --------------------------------------- */

#define MAX_ACTORS	48
#define MAX_REGIONS	32

struct result {
	const char *doing;		/* for the watchdog: what, and since when */
	long since;
	long tries;			/* operations begun, */
	long ops;			/* and those that did what they are for */
	long failures;
	char failure[WHY_LEN];		/* the first one */
	char skip[WHY_LEN];		/* why there is nothing to do */
	bool done;
};

static struct shared {
	bool stop;
	int block;			/* memory block to put back online, or -1 */
	unsigned int generation[MAX_REGIONS];
	long pinned[MAX_REGIONS];	/* times that some of it was pinned */
	char no_region[MAX_REGIONS][WHY_LEN];
	struct result result[MAX_ACTORS + 1];
} *shared;

static __thread struct result *self;
static __thread unsigned int seed;

static bool stopping(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

static void begin(const char *what)
{
	self->since = now_ms();
	self->doing = what;
	self->tries++;
}

static void did(bool it)
{
	self->ops += it;
}

static __printf(1, 2) bool fail(const char *fmt, ...)
{
	va_list args;

	if (!__atomic_fetch_add(&self->failures, 1, __ATOMIC_RELAXED)) {
		va_start(args, fmt);
		vsnprintf(self->failure, WHY_LEN, fmt, args);
		va_end(args);
	}
	return false;
}

#define skip(...)	((void)because(self->skip, __VA_ARGS__))

static unsigned int rnd(unsigned int below)
{
	return rand_r(&seed) % below;
}

/* ---- Regions and their contents ----------------------------------------- */

enum kind {
	SMALL,			/* anonymous, one page a folio */
	MTHP,			/* anonymous, 64 KiB folios, mapped by PTEs */
	THP,			/* anonymous, one folio mapped by a PMD */
	HUGETLB,
	HUGETLB_SHARED,
	SHMEM,			/* memfd */
	SHMEM_PRIVATE,
	CACHE,			/* file on ext4 */
	CACHE_PRIVATE,
	DAX,			/* file on ext4 on persistent memory */
	SECRETMEM,
};

enum backing { ANON, MEMFD, ON_EXT4, ON_DAX, SECRET };

static const struct kind_info {
	const char *name;
	enum backing backing;
	int flags;
	int advice;
	unsigned int part;	/* of bufsize; too small for a PMD unless it is all */
	size_t *folio;		/* the size that makes it this kind, or NULL */
} kinds[] = {
#define PRIVATE_ANON	(MAP_PRIVATE | MAP_ANONYMOUS)
#define SHARED_ANON	(MAP_SHARED | MAP_ANONYMOUS)
	[SMALL] = { "small", ANON, PRIVATE_ANON, MADV_NOHUGEPAGE, 16, NULL },
	[MTHP] = { "mthp", ANON, PRIVATE_ANON, MADV_HUGEPAGE, 8, &mthpsize },
	[THP] = { "thp", ANON, PRIVATE_ANON, MADV_HUGEPAGE, 1, &pmdsize },
	[HUGETLB] = { "hugetlb", ANON, PRIVATE_ANON | MAP_HUGETLB, 0, 1, NULL },
	[HUGETLB_SHARED] = { "hugetlb shared", ANON, SHARED_ANON | MAP_HUGETLB, 0, 1, NULL },
	[SHMEM] = { "shmem", MEMFD, MAP_SHARED, 0, 1, NULL },
	[SHMEM_PRIVATE] = { "shmem private", MEMFD, MAP_PRIVATE, 0, 16, NULL },
	[CACHE] = { "cache", ON_EXT4, MAP_SHARED, 0, 16, NULL },
	[CACHE_PRIVATE] = { "cache private", ON_EXT4, MAP_PRIVATE, 0, 16, NULL },
	[DAX] = { "dax", ON_DAX, MAP_SHARED, 0, 16, NULL },
	[SECRETMEM] = { "secretmem", SECRET, MAP_SHARED, 0, 16, NULL },
};

/* What may happen to a region; CALM ones never lose a word. */
enum {
	CALM	= 1,
	DISCARD	= 2,		/* MADV_DONTNEED, MADV_FREE */
	PUNCH	= 4,		/* holes, truncation */
	ALIKE	= 8,		/* all pages have one content, for KSM */
	ANY	= CALM | DISCARD | PUNCH | ALIKE,
};

struct region {
	enum kind kind;
	unsigned int fate;
	unsigned int id;
	char *arena;		/* bufsize of address space of its own */
	char *addr;		/* NULL: cannot be had */
	size_t size;
	size_t unit;		/* what mprotect() and madvise() can be asked for */
	int fd;
};

static struct region regions[] = {
	{ .kind = SMALL, .fate = CALM },
	{ .kind = SMALL, .fate = DISCARD },
	{ .kind = SMALL, .fate = ALIKE },
	{ .kind = MTHP, .fate = CALM },
	{ .kind = MTHP, .fate = DISCARD },
	{ .kind = THP, .fate = CALM },
	{ .kind = THP, .fate = DISCARD },
	{ .kind = HUGETLB, .fate = CALM },
	{ .kind = HUGETLB_SHARED, .fate = CALM },
	{ .kind = SHMEM, .fate = CALM },
	{ .kind = SHMEM, .fate = PUNCH },
	{ .kind = SHMEM_PRIVATE, .fate = CALM },
	{ .kind = SHMEM_PRIVATE, .fate = DISCARD },
	{ .kind = CACHE, .fate = CALM },
	{ .kind = CACHE, .fate = PUNCH },
	{ .kind = CACHE_PRIVATE, .fate = CALM },
	{ .kind = CACHE_PRIVATE, .fate = DISCARD },
	{ .kind = DAX, .fate = PUNCH },
};

#define NR_REGIONS	ARRAY_SIZE(regions)

enum { EXT4, BDEV, NR_LOOPS, PMEM = NR_LOOPS };

static struct target targets[] = {
	[EXT4] = { "ext4", "ext4", { "mkfs.ext4", "-F", "-q" }, 512, "", "" },
	[BDEV] = { "bdev", NULL, { NULL }, 512, "", "" },
	[PMEM] = { "dax", "ext4", { "mkfs.ext4", "-F", "-q", "-b", "4096" }, 0, "", "" },
};

static bool is_private(const struct region *r)
{
	return kinds[r->kind].flags & MAP_PRIVATE;
}

/*
 * The word at index @word of region @id, written in generation @gen. Generation
 * 0 is what a region starts with, and what the file of a private one holds for
 * good. Pages that KSM is to merge count their words from 0.
 */
static uint64_t tag(const struct region *r, size_t word, unsigned int gen)
{
	if (r->fate == ALIKE)
		word %= pagesize / sizeof(uint64_t);
	return 0xa5ULL << 56 | (uint64_t)r->id << 48 |
	       (uint64_t)(word & 0xffffff) << 24 | (gen & 0xffffff);
}

static void put_tags(const struct region *r, void *to, size_t off, size_t len,
		     unsigned int gen)
{
	volatile uint64_t *words = to;
	size_t i;

	for (i = 0; i < len / sizeof(*words); i++)
		words[i] = tag(r, off / sizeof(*words) + i, gen);
}

#define LIVE	UINT32_MAX	/* up to what its owner is writing in this moment */

static unsigned int newest(const struct region *r)
{
	return __atomic_load_n(&shared->generation[r->id], __ATOMIC_SEQ_CST);
}

/* The oldest that may still be seen: the owner may be busy with the newest. */
static unsigned int oldest(const struct region *r)
{
	unsigned int gen = newest(r);

	return gen ? gen - 1 : 0;
}

/*
 * Copied byte by byte while its owner wrote it: each byte is @lost's, or that of
 * @base in a generation from @lo to @hi.
 */
static bool is_torn(uint64_t word, uint64_t base, uint64_t lost, unsigned int lo,
		    unsigned int hi)
{
	unsigned int shift, gen;

	for (shift = 0; shift < 64; shift += 8) {
		for (gen = lo; gen <= hi; gen++)
			if (!(((base | gen) ^ word) >> shift & 0xff))
				break;
		if (gen > hi && (lost ^ word) >> shift & 0xff)
			return false;
	}
	return true;
}

/*
 * Is what is at @from legal as the @len bytes at @off of @r, of generation @lo to
 * @hi? Or is it what it becomes where it may get lost, 0 or what is in the file?
 */
static bool check_tags(const struct region *r, const void *from, size_t off,
		       size_t len, unsigned int lo, unsigned int hi, const char *where)
{
	bool zero = r->fate == PUNCH || (r->fate == DISCARD && kinds[r->kind].backing == ANON);
	const volatile uint64_t *words = from;
	size_t i;

	for (i = 0; i < len / sizeof(*words); i++) {
		uint64_t word = words[i], base = tag(r, off / sizeof(word) + i, 0);
		uint64_t lost = zero ? 0 : r->fate == DISCARD ? base : base | lo;

		if (word == (base | lo) || word == lost)
			continue;
		if (word >= (base | lo) && word <= (base | (hi == LIVE ? newest(r) : hi)))
			continue;
		if (hi == LIVE && is_torn(word, base, lost, lo, newest(r)))
			continue;
		return fail("%s, %s: %#llx at byte %zu, want %#llx, up to generation %u",
			    kinds[r->kind].name, where, (unsigned long long)word,
			    off + i * sizeof(word), (unsigned long long)(base | lo),
			    hi == LIVE ? newest(r) : hi);
	}
	return true;
}

/* Unmap what is at @addr, if any, yet leave no room for another thread's mmap(). */
static char *no_access(char *addr, size_t size)
{
	return mmap(addr, size, PROT_NONE,
		    PRIVATE_ANON | MAP_NORESERVE | (addr ? MAP_FIXED : 0), -1, 0);
}

/*
 * Where the kernel copies to what is then looked at: never protected by a fork,
 * so that each page does not wait for the mmap_lock.
 */
static char *scratch(void)
{
	char *addr = mmap(NULL, bufsize, PROT_READ | PROT_WRITE, SHARED_ANON | MAP_POPULATE,
			  -1, 0);

	if (addr == MAP_FAILED) {
		fail("mmap: %s", strerror(errno));
		return NULL;
	}
	madvise(addr, bufsize, MADV_DONTFORK);
	return addr;
}

static bool is_large(const struct region *r)
{
	const size_t *folio = kinds[r->kind].folio;
	size_t off;

	for (off = 0; folio && off < r->size; off += *folio)
		if (!is_one_folio(r->addr + off, *folio, 0))
			return false;
	return true;
}

static int open_backing(const struct region *r, char *why)
{
	const struct kind_info *k = &kinds[r->kind];
	char path[PATH_LEN + 16];
	const struct target *t;
	int fd = -1;

	switch (k->backing) {
	case ANON:
		break;
	case MEMFD:
		fd = memfd_create("pin_stress", 0);
		break;
	case SECRET:
		fd = syscall(__NR_memfd_secret, 0);
		break;
	case ON_EXT4:
	case ON_DAX:
		t = &targets[k->backing == ON_EXT4 ? EXT4 : PMEM];
		if (t->why[0]) {
			because(why, "%s", t->why);
			return -1;
		}
		snprintf(path, sizeof(path), "%s.%u", t->path, r->id);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd >= 0)
			unlink(path);
		break;
	}
	if (fd < 0)
		because(why, "%s: %s", k->name, strerror(errno));
	return fd;
}

/* Map a region where it is at home, full of generation 0; or say why not. */
static bool map_region(struct region *r, char *why)
{
	const struct kind_info *k = &kinds[r->kind];
	char chunk[4096];
	size_t off;

	r->fd = -1;
	r->size = bufsize / k->part;
	r->unit = k->flags & MAP_HUGETLB ? bufsize : pagesize;
	if (!r->arena) {
		/* Nothing else is near: no VMA merges with another's. */
		r->arena = no_access(NULL, 3 * bufsize);
		if (r->arena == MAP_FAILED)
			goto fail;
		r->arena += bufsize - (uintptr_t)r->arena % bufsize;
	}
	if (k->folio && (!*k->folio || r->size % *k->folio))
		return because(why, "%s: folios of %zu bytes, a region has %zu",
			       k->name, *k->folio, r->size);
	if (k->backing != ANON) {
		r->fd = open_backing(r, why);
		if (r->fd < 0)
			return false;
		if (ftruncate(r->fd, r->size))
			goto fail;
	}
	/* A private one has to be like its file where nobody wrote yet. */
	for (off = 0; r->fd >= 0 && k->backing != SECRET && off < r->size; off += sizeof(chunk)) {
		put_tags(r, chunk, off, sizeof(chunk), 0);
		if (pwrite(r->fd, chunk, sizeof(chunk), off) != sizeof(chunk))
			goto fail;
	}
	r->addr = mmap(r->arena, r->size, PROT_READ | PROT_WRITE, k->flags | MAP_FIXED,
		       r->fd, 0);
	if (r->addr == MAP_FAILED)
		goto fail;
	if (k->advice && madvise(r->addr, r->size, k->advice))
		goto fail;
	if (k->backing == ANON || k->backing == SECRET)
		put_tags(r, r->addr, 0, r->size, 0);
	return true;
fail:
	because(why, "%s: %s", k->name, strerror(errno));
	r->addr = NULL;
	if (r->fd >= 0)
		close(r->fd);
	return false;
}

static void unmap_region(struct region *r)
{
	no_access(r->arena, bufsize);
	if (r->fd >= 0)
		close(r->fd);
	r->addr = NULL;
}

/* Another thread may protect memory from us, or cut off its file, at any time. */
static __thread sigjmp_buf fault_env;
static __thread volatile sig_atomic_t guarded;

static void on_fault(int sig)
{
	if (guarded)
		siglongjmp(fault_env, sig);
	signal(sig, SIG_DFL);
}

enum deed { WRITE, CHECK };

static int access_page(const struct region *r, size_t off, enum deed deed,
		       unsigned int lo, unsigned int hi, const char *where)
{
	int sig = sigsetjmp(fault_env, 0);

	if (!sig) {
		guarded = true;
		if (deed == WRITE)
			put_tags(r, r->addr + off, off, pagesize, hi);
		else
			check_tags(r, r->addr + off, off, pagesize, lo, hi, where);
	}
	guarded = false;
	return sig;
}

/*
 * Write or check a page. Wait until it may be accessed; if its file was cut off
 * before it, there is nothing to do.
 */
static void touch(const struct region *r, size_t off, enum deed deed,
		  unsigned int lo, unsigned int hi, const char *where)
{
	int sig;

	while ((sig = access_page(r, off, deed, lo, hi, where)) == SIGSEGV && !stopping())
		sleep_ms(1);
	if (sig == SIGBUS && r->fate != PUNCH)
		fail("%s, %s: SIGBUS at byte %zu", kinds[r->kind].name, where, off);
}

static struct region *pick_region(unsigned int fates)
{
	struct region *r;

	do {
		r = &regions[rnd(NR_REGIONS)];
	} while (!r->addr || !(r->fate & fates));
	return r;
}

static bool have_region(unsigned int fates)
{
	unsigned int i;

	for (i = 0; i < NR_REGIONS; i++)
		if (regions[i].addr && regions[i].fate & fates)
			return true;
	return false;
}

/* A random part, in pieces of @unit; often all of it. */
static void pick_range(const struct region *r, size_t unit, size_t *off, size_t *len)
{
	unsigned int n = r->size / unit, first = rnd(4) ? rnd(n) : 0;

	*off = first * unit;
	*len = (first ? 1 + rnd(n - first) : n) * unit;
}

/* ---- Actors ------------------------------------------------------------- */

/*
 * Actors share the memory of a process: its mmap_lock makes too many of them wait
 * for each other.
 */
enum group { REGIONS, HOLD, DIO, NR_GROUPS };

struct actor {
	enum group group;
	const char *name;
	void (*run)(const struct actor *actor);
	int arg;
	/* For disturb(): what is done to a part of which regions. */
	bool (*op)(struct region *r, size_t off, size_t len, int arg);
	unsigned int fates;
	const char *path;	/* needed, or there is nothing to do */
};

/*
 * One round after the other. The pause leaves the processor to those actors whose
 * rounds are long; there are many more than there are processors.
 */
static bool again(void)
{
	sleep_ms(rnd(20));
	return !stopping();
}

/*
 * The only one that writes to every second region, and so knows what is in it:
 * what it left there, whatever happened in between.
 */
static void owner(const struct actor *a)
{
	while (again()) {
		struct region *r = pick_region(ANY);
		unsigned int gen = newest(r);
		size_t off;

		if (r->id % 2 != (unsigned int)a->arg)
			continue;
		begin(kinds[r->kind].name);
		for (off = 0; off < r->size; off += pagesize)
			touch(r, off, CHECK, gen, gen, "owner");
		/* Alike is only what stays so; and at rest, or KSM does not take it. */
		if (r->fate != ALIKE)
			__atomic_store_n(&shared->generation[r->id], ++gen, __ATOMIC_SEQ_CST);
		for (off = 0; off < r->size; off += pagesize)
			if (r->fate != ALIKE || !rnd(32))
				touch(r, off, WRITE, gen, gen, "write");
		did(true);
	}
}

/*
 * Short pins. gup_test warns of pages that are not pinned, which the zero page
 * never is: where it may be found, ask to write, or let DUMP_USER_PAGES_TEST
 * do it, which does not look (and dumps nothing).
 */
static void pin(const struct actor *a)
{
	int fd = gup_open(self->skip);

	if (fd < 0)
		return;
	while (again()) {
		struct region *r = pick_region(ANY);
		bool zero = (r->fate == DISCARD && kinds[r->kind].backing == ANON) ||
			    r->kind == DAX;
		struct gup_test gup = { .gup_flags = rnd(2) ? FOLL_WRITE : 0 };
		unsigned long cmd = a->arg ? PIN_FAST_BENCHMARK : PIN_BASIC_TEST;
		size_t off, len;

		if (zero && !gup.gup_flags) {
			cmd = DUMP_USER_PAGES_TEST;
			gup.test_flags = GUP_TEST_FLAG_DUMP_PAGES_USE_PIN;
		}
		pick_range(r, pagesize, &off, &len);
		gup.addr = (uintptr_t)r->addr + off;
		gup.size = len;
		gup.nr_pages_per_call = rnd(2) ? len / pagesize : 1 + rnd(64);
		begin(kinds[r->kind].name);
		if (ioctl(fd, cmd, &gup) || !gup.size)
			continue;
		did(true);
		__atomic_fetch_add(&shared->pinned[r->id], 1, __ATOMIC_RELAXED);
	}
	close(fd);
}

static int longterm(int fd, const void *addr, size_t size, unsigned int flags)
{
	struct pin_longterm_test args = {
		.addr = (uintptr_t)addr,
		.size = size,
		.flags = flags,
	};

	return ioctl(fd, PIN_LONGTERM_TEST_START, &args);
}

static int longterm_read(int fd, void *to)
{
	uint64_t addr = (uintptr_t)to;

	return ioctl(fd, PIN_LONGTERM_TEST_READ, &addr);
}

/* Fast or slow; to write, unless it is the page cache of a file. */
static unsigned int longterm_flags(const struct region *r)
{
	return rnd(4) & (r->kind == CACHE ? PIN_LONGTERM_TEST_FLAG_USE_FAST : ~0);
}

/*
 * Pins held for a while, and looked through. (Not by PIN_LONGTERM_BENCHMARK: it
 * warns if the memory block of a page is going offline, which may begin at any
 * time after the page was pinned.)
 */
static void pin_longterm(const struct actor __always_unused *a)
{
	char *copy = scratch();
	int fd = gup_open(self->skip);

	while (fd >= 0 && copy && again()) {
		struct region *r = pick_region(ANY);
		unsigned int lo = oldest(r);
		size_t off, len;
		int i;

		if (r->kind == DAX)
			continue;
		pick_range(r, pagesize, &off, &len);
		begin(kinds[r->kind].name);
		if (longterm(fd, r->addr + off, len, longterm_flags(r)))
			continue;
		for (i = 0; i < 2; i++) {
			if (longterm_read(fd, copy))
				fail("PIN_LONGTERM_TEST_READ: %s", strerror(errno));
			else
				check_tags(r, copy, off, len, lo, LIVE, "long-term pin");
			sleep_ms(rnd(5));
		}
		ioctl(fd, PIN_LONGTERM_TEST_STOP);
		did(true);
		__atomic_fetch_add(&shared->pinned[r->id], 1, __ATOMIC_RELAXED);
	}
	close(fd);
}

/* Pins by pin_user_pages_remote(): a reader's view of regions others write to. */
static void remote(const struct actor __always_unused *a)
{
	char *copy = scratch();

	while (copy && again()) {
		struct region *r = pick_region(ANY);
		struct iovec local = { copy, 0 }, there;
		unsigned int lo = oldest(r);
		size_t off, len;
		ssize_t ret;

		pick_range(r, pagesize, &off, &len);
		local.iov_len = len;
		there = (struct iovec){ r->addr + off, len };
		begin(kinds[r->kind].name);
		ret = process_vm_readv(getpid(), &local, 1, &there, 1, 0);
		if (ret < 0 && errno == ENOSYS)
			return skip("process_vm_readv: %s", strerror(errno));
		if (ret > 0)
			did(check_tags(r, copy, off, ret, lo, LIVE, "process_vm_readv"));
	}
}

/* What may never be pinned, or not in this way. */
static void refused(const struct actor *a)
{
	struct region r = { .kind = a->arg, .fate = CALM, .id = 0xc0 + a->arg };
	int fd = gup_open(self->skip);

	if (fd < 0 || !map_region(&r, self->skip))
		return;
	while (again()) {
		unsigned int flags = rnd(4) |
			(r.kind == CACHE ? PIN_LONGTERM_TEST_FLAG_USE_WRITE : 0);
		struct gup_test gup = {
			.addr = (uintptr_t)r.addr,
			.size = r.size,
			.nr_pages_per_call = r.size / pagesize,
			.gup_flags = rnd(2) ? FOLL_WRITE : 0,
		};
		/* Fast pins must refuse what is mapped: have it so. */
		unsigned int gen = self->tries & 1;

		begin("pin");
		put_tags(&r, r.addr, 0, r.size, gen);
		if (longterm(fd, r.addr, r.size, flags)) {
			did(errno == EFAULT || errno == EOPNOTSUPP);
		} else {
			fail("%s: pinned for the long term", kinds[r.kind].name);
			ioctl(fd, PIN_LONGTERM_TEST_STOP);
		}
		if (r.kind == SECRETMEM &&
		    !ioctl(fd, rnd(2) ? PIN_FAST_BENCHMARK : PIN_BASIC_TEST, &gup) && gup.size)
			fail("%s: %llu bytes pinned", kinds[r.kind].name, gup.size);
		check_tags(&r, r.addr, 0, r.size, gen, gen, "no pin");
	}
	unmap_region(&r);
	close(fd);
}

/* ---- What happens to regions -------------------------------------------- */

static bool op_advise(struct region *r, size_t off, size_t len, int advice)
{
	return !madvise(r->addr + off, len, advice);
}

static bool op_protect(struct region *r, size_t off, size_t len, int __always_unused arg)
{
	if (mprotect(r->addr + off, len, rnd(2) ? PROT_READ : PROT_NONE))
		return false;
	sched_yield();
	/* Short of VMAs, it could fail: then its owner never writes again. */
	while (mprotect(r->addr + off, len, PROT_READ | PROT_WRITE))
		sched_yield();
	return true;
}

static long read_long(const char *path)
{
	char text[64];

	return read_text(path, text, sizeof(text)) ? 0 : atol(text);
}

static char split_stat[2][PATH_LEN];

static bool op_split(struct region *r, size_t off, size_t len, int __always_unused arg)
{
	long before = read_long(split_stat[0]) + read_long(split_stat[1]);
	char text[80];

	snprintf(text, sizeof(text), "%d,0x%lx,0x%lx", getpid(), (unsigned long)r->addr + off,
		 (unsigned long)r->addr + off + len);
	write_text(SPLIT_PATH, text);
	return read_long(split_stat[0]) + read_long(split_stat[1]) > before;
}

static int nodes[2] = { -1, -1 };

/* Each page to the node where it is not. */
static bool op_migrate(struct region *r, size_t off, size_t len, int __always_unused arg)
{
	int to[NPAGES], status[NPAGES];
	void *pages[NPAGES];
	bool moved = false;
	size_t i, n = len / pagesize;

	for (i = 0; i < n; i++)
		pages[i] = r->addr + off + i * pagesize;
	if (syscall(__NR_move_pages, 0, n, pages, NULL, status, 0))
		return false;
	for (i = 0; i < n; i++)
		to[i] = nodes[status[i] == nodes[0]];
	if (syscall(__NR_move_pages, 0, n, pages, to, status, MPOL_MF_MOVE) < 0)
		return false;
	for (i = 0; i < n; i++)
		moved |= status[i] == to[i];
	return moved;
}

static bool op_ksm(struct region *r, size_t off, size_t len, int __always_unused arg)
{
	madvise(r->addr + off, len, rnd(16) ? MADV_MERGEABLE : MADV_UNMERGEABLE);
	return read_long(KSM_DIR "/pages_sharing") > 0;
}

static bool op_punch(struct region *r, size_t off, size_t len, int __always_unused arg)
{
	return !fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len);
}

static bool op_truncate(struct region *r, size_t off, size_t __always_unused len,
			int __always_unused arg)
{
	bool done;

	done = !ftruncate(r->fd, off);
	sched_yield();
	while (ftruncate(r->fd, r->size) && errno == EINTR)
		;
	return done;
}

static void disturb(const struct actor *a)
{
	if (a->op == op_migrate && nodes[1] < 0)
		return skip("one node of memory only");
	while (again()) {
		struct region *r = pick_region(a->fates);
		size_t off, len;

		pick_range(r, r->unit, &off, &len);
		begin(kinds[r->kind].name);
		did(a->op(r, off, len, a->arg));
	}
}

/* Compaction, reclaim of slabs and page cache: writes to a file of the kernel's. */
static void poke(const struct actor *a)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", a->arg);
	while (again()) {
		begin(a->path);
		did(!write_text(a->path, text));
		sleep_ms(1000);
	}
}

static bool block_write(int block, const char *state)
{
	char path[PATH_LEN];

	snprintf(path, sizeof(path), MEMORY_DIR "/memory%d/state", block);
	return !write_text(path, state);
}

/*
 * Take memory offline and back online, as movable in between: pages end up there
 * that a long-term pin has to move away first. It is the parent that makes sure
 * no block is left behind.
 */
static void hotplug(const struct actor __always_unused *a)
{
	int block, last = -1;
	struct dirent *entry;
	DIR *dir;

	dir = opendir(MEMORY_DIR);
	while (dir && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "memory%d", &block) == 1 && block > last)
			last = block;
	if (dir)
		closedir(dir);
	if (last < 0)
		return skip("no memory blocks");

	for (block = last; again(); block = block ? block - 1 : last) {
		begin("offline");
		shared->block = block;
		if (!block_write(block, "offline")) {
			/*
			 * Interrupted, as it took too long: by then it has moved
			 * pages, which on a slow machine is all that can be had.
			 */
			did(errno == EINTR);
			shared->block = -1;
			continue;
		}
		did(true);
		begin("online_movable");
		if (block_write(block, "online_movable"))
			sleep_ms(200);
		while (again() && shared->block >= 0) {
			begin("offline again");
			block_write(block, "offline");
			if (block_write(block, "online"))
				shared->block = -1;
		}
	}
	if (!self->ops)
		skip("of %ld attempts to take a memory block offline none succeeded", self->tries);
}

/* ---- Children ----------------------------------------------------------- */

static pid_t begin_child(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return 0;
}

static void reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("child: wait status %#x", status);
}

/* Have a child write a generation that its parent must never see. */
static void scribble(const struct region *r)
{
	size_t off;

	/* SIGBUS or not: short of huge pages, it may lose one to its parent. */
	for (off = 0; off < r->size; off += pagesize)
		access_page(r, off, WRITE, 0, 0xffffff, "child");
}

/*
 * A child sees what was there when it was born, and makes itself copies by
 * writing. Every second one goes with a pin in its hands.
 */
static void forks(const struct actor __always_unused *a)
{
	unsigned int lo[NR_REGIONS], i;
	size_t off;
	pid_t pid;
	int fd;

	while (again()) {
		/* A child of many pinned pages is expensive: they are copied. */
		sleep_ms(100);
		for (i = 0; i < NR_REGIONS; i++)
			lo[i] = oldest(&regions[i]);
		begin("fork");
		pid = begin_child();
		if (pid < 0)
			continue;
		if (pid) {
			self->doing = "wait for child";
			reap(pid);
			did(true);
			continue;
		}
		sleep_ms(rnd(5));
		for (i = rnd(3); i < NR_REGIONS; i += 1 + rnd(3)) {
			struct region *r = &regions[i];

			if (!r->addr)
				continue;
			/* What is protected just now stays so here. */
			for (off = 0; off < r->size; off += pagesize)
				access_page(r, off, CHECK, lo[i], LIVE, "child");
			if (is_private(r))
				scribble(r);
			fd = i % 2 ? open(GUP_TEST_PATH, O_RDWR) : -1;
			if (fd >= 0)
				longterm(fd, r->addr, r->size, longterm_flags(r));
		}
		_exit(0);
	}
}

/* ---- The promise of a pin ----------------------------------------------- */

/* One of the things that must leave pinned memory alone. */
static void harass(struct region *r)
{
	static const int advice[] = { MADV_COLD, MADV_PAGEOUT, MADV_COLLAPSE };
	size_t off, len;

	pick_range(r, r->unit, &off, &len);
	if (r->unit == pagesize && len > 16 * pagesize)
		len = 16 * pagesize;
	switch (rnd(5)) {
	case 0:
		op_protect(r, off, len, 0);
		break;
	case 1:
		op_split(r, off, len, 0);
		break;
	case 2:
		if (nodes[1] >= 0)
			op_migrate(r, off, len, 0);
		break;
	case 3:
		op_ksm(r, off, len, 0);
		break;
	case 4:
		op_advise(r, off, len, advice[rnd(ARRAY_SIZE(advice))]);
		break;
	}
}

/* Written by the program, seen through the pin: the same page. */
static bool write_and_look(struct region *r, int fd, char *copy, unsigned int gen,
			   const char *when)
{
	put_tags(r, r->addr, 0, r->size, gen);
	if (longterm_read(fd, copy))
		return fail("PIN_LONGTERM_TEST_READ: %s", strerror(errno));
	return check_tags(r, copy, 0, r->size, gen, gen, when) &&
	       check_tags(r, r->addr, 0, r->size, gen, gen, when);
}

static bool hold_and_fork(struct region *r, int fd, char *copy)
{
	bool ret;
	pid_t pid;

	self->doing = "fork";
	pid = begin_child();
	if (!pid) {
		if (is_private(r))
			scribble(r);
		sleep_ms(rnd(20));
		_exit(0);
	}
	self->doing = "look after fork";
	ret = write_and_look(r, fd, copy, 1, "pin after fork");
	self->doing = "harass";
	harass(r);
	ret = ret && write_and_look(r, fd, copy, 2, "pin harassed");
	self->doing = "wait for child";
	if (pid > 0)
		reap(pid);
	ret = ret && write_and_look(r, fd, copy, 3, "pin after the child's exit");

	/* Gone from the mapping, or from the file as well, yet not freed. */
	self->doing = "unmap";
	if (r->fd >= 0 && !is_private(r) && ftruncate(r->fd, 0))
		return fail("ftruncate: %s", strerror(errno));
	if (r->unit == pagesize && rnd(2))
		no_access(r->addr, r->size / 2);
	else
		madvise(r->addr, r->size, MADV_DONTNEED);
	sleep_ms(rnd(5));
	if (longterm_read(fd, copy))
		return fail("PIN_LONGTERM_TEST_READ: %s", strerror(errno));
	return ret && check_tags(r, copy, 0, r->size, 3, 3, "pin of unmapped pages") && pid > 0;
}

static void hold(const struct actor *a)
{
	struct region r = { .kind = a->arg, .fate = CALM, .id = 0x80 + a->arg };
	char *copy = scratch(), why[WHY_LEN] = "";
	int fd = gup_open(self->skip);
	bool large;

	while (fd >= 0 && copy && again()) {
		begin("map");
		if (!map_region(&r, why))
			continue;
		large = is_large(&r);
		if (!large)
			because(why, "%s: no folios of %zu bytes", kinds[r.kind].name,
				*kinds[r.kind].folio);
		self->doing = "PIN_LONGTERM_TEST_START";
		if (!longterm(fd, r.addr, r.size, longterm_flags(&r)))
			did(hold_and_fork(&r, fd, copy) && large);
		else
			because(why, "%s: PIN_LONGTERM_TEST_START: %s", kinds[r.kind].name,
				strerror(errno));
		ioctl(fd, PIN_LONGTERM_TEST_STOP);
		unmap_region(&r);
	}
	if (!self->ops && !self->failures && !self->skip[0])
		skip("%s", why);
	close(fd);
}

/* ---- Direct I/O --------------------------------------------------------- */

#define TAIL	512		/* of each page: not part of the I/O */

static struct dio {
	struct region src, dst;
	bool ready;
} dios[HUGETLB + 1];

static int dio_iov(const struct region *r, struct iovec *iov)
{
	int i, n = r->size / pagesize;

	for (i = 0; i < n; i++)
		iov[i] = (struct iovec){ r->addr + i * pagesize, pagesize - TAIL };
	return n;
}

/*
 * Write, read, compare. While the device fills the pages, others fork and write
 * to the rest of them: what the device writes must not go to a page that only a
 * child still sees.
 */
static void dio(const struct actor *a)
{
	static struct iovec out[ARRAY_SIZE(dios)][NPAGES], in[ARRAY_SIZE(dios)][NPAGES];
	const struct target *t = &targets[a->arg % 2 ? BDEV : EXT4];
	struct dio *d = &dios[a->arg];
	off_t at = a->arg / 2 * bufsize;
	unsigned int gen = 0, tries;
	ssize_t bytes, ret;
	size_t off;
	int n, fd;

	if (t->why[0])
		return skip("%s: %s", t->name, t->why);
	fd = open(t->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		return skip("%s: O_DIRECT: %s", t->path, strerror(errno));
	d->src = (struct region){ .kind = a->arg, .fate = CALM, .id = 0xa0 + a->arg };
	d->dst = d->src;
	/* Memory may be in pieces for a moment, or a folio on its way elsewhere. */
	for (tries = 0; tries < 20; tries++) {
		if (!map_region(&d->src, self->skip) || !map_region(&d->dst, self->skip))
			return;
		if (is_large(&d->src) && is_large(&d->dst))
			break;
		unmap_region(&d->src);
		unmap_region(&d->dst);
		sleep_ms(50);
	}
	if (!d->dst.addr)
		return skip("%s: no folios of that size", a->name);
	for (off = 0; off < d->dst.size; off += pagesize)
		memset(d->dst.addr + off + pagesize - TAIL, 0, TAIL);
	n = dio_iov(&d->src, out[a->arg]);
	dio_iov(&d->dst, in[a->arg]);
	bytes = n * (pagesize - TAIL);
	__atomic_store_n(&d->ready, true, __ATOMIC_SEQ_CST);

	while (again()) {
		begin("pwritev");
		put_tags(&d->src, d->src.addr, 0, d->src.size, ++gen);
		ret = pwritev(fd, out[a->arg], n, at);
		if (ret == bytes) {
			self->doing = "preadv";
			ret = preadv(fd, in[a->arg], n, at);
		}
		if (ret != bytes && !(ret < 0 && errno == EINTR)) {
			fail("%s: %zd bytes of %zd: %s", self->doing, ret, bytes, strerror(errno));
			continue;
		}
		for (off = 0; ret == bytes && off < d->dst.size; off += pagesize)
			if (!check_tags(&d->dst, d->dst.addr + off, off, pagesize - TAIL,
					gen, gen, "direct read"))
				break;
		did(ret == bytes && off == d->dst.size);
	}
	close(fd);
}

/* The rest of these pages. */
static void dio_tails(const struct actor __always_unused *a)
{
	uint64_t last[ARRAY_SIZE(dios)] = { 0 };
	unsigned int i;
	size_t off;

	while (again()) {
		for (i = 0; i < ARRAY_SIZE(dios); i++) {
			struct region *r = &dios[i].dst;

			if (!__atomic_load_n(&dios[i].ready, __ATOMIC_SEQ_CST))
				continue;
			begin(kinds[r->kind].name);
			for (off = pagesize - TAIL; off < r->size; off += pagesize) {
				volatile uint64_t *word = (uint64_t *)(r->addr + off);

				if (*word != last[i])
					fail("%s: %#llx at byte %zu, want %#llx",
					     kinds[r->kind].name, (unsigned long long)*word,
					     off, (unsigned long long)last[i]);
				*word = last[i] + 1;
			}
			last[i]++;
			did(true);
		}
	}
}

/* Never pinned, but read and written from by all who pin. */
static void zero_page(const struct actor __always_unused *a)
{
	struct region r = { .kind = SMALL, .fate = DISCARD, .id = 0xff };
	char *copy = scratch();
	int gupfd = gup_open(self->skip), fd = -1;
	off_t at = bufsize / 2;
	ssize_t size;

	if (!copy || gupfd < 0 || !map_region(&r, self->skip))
		return;
	size = r.size;
	if (!targets[EXT4].why[0])
		fd = open(targets[EXT4].path, O_RDWR | O_DIRECT | O_CLOEXEC);
	while (again()) {
		struct gup_test gup = {
			.addr = (uintptr_t)r.addr,
			.size = r.size,
			.nr_pages_per_call = 1 + rnd(64),
			.test_flags = GUP_TEST_FLAG_DUMP_PAGES_USE_PIN,
		};
		ssize_t i;

		begin("zero page");
		madvise(r.addr, r.size, MADV_DONTNEED);
		if (ioctl(gupfd, DUMP_USER_PAGES_TEST, &gup) || gup.size != r.size) {
			fail("%llu bytes pinned of %zu", gup.size, r.size);
			continue;
		}
		memset(copy, 0xff, size);
		if (fd >= 0 && (pwrite(fd, r.addr, size, at) != size ||
				pread(fd, copy, size, at) != size)) {
			if (errno != EINTR)
				fail("direct I/O: %s", strerror(errno));
			continue;
		}
		for (i = 0; i < size; i++)
			if (r.addr[i] || (fd >= 0 && copy[i]))
				break;
		did(i == size || fail("not zero at byte %zd", i));
	}
	close(gupfd);
}

/* ---- All of them -------------------------------------------------------- */

static const struct actor actors[] = {
	{ REGIONS, "owner_0", .run = owner },
	{ REGIONS, "owner_1", .run = owner, .arg = 1 },
	{ REGIONS, "pin_fast", .run = pin, .arg = 1 },
	{ REGIONS, "pin_slow", .run = pin },
	{ REGIONS, "pin_longterm", .run = pin_longterm },
	{ REGIONS, "process_vm_readv", .run = remote },
	{ DIO, "refused_secretmem", .run = refused, .arg = SECRETMEM },
	{ DIO, "refused_longterm_dax", .run = refused, .arg = DAX },
	{ DIO, "refused_longterm_cache_write", .run = refused, .arg = CACHE },
	{ DIO, "zero_page", .run = zero_page },
	{ HOLD, "hold_small", .run = hold, .arg = SMALL },
	{ HOLD, "hold_mthp", .run = hold, .arg = MTHP },
	{ HOLD, "hold_thp", .run = hold, .arg = THP },
	{ HOLD, "hold_hugetlb", .run = hold, .arg = HUGETLB },
	{ HOLD, "hold_shmem", .run = hold, .arg = SHMEM },
	{ HOLD, "hold_shmem_private", .run = hold, .arg = SHMEM_PRIVATE },
	{ HOLD, "hold_cache", .run = hold, .arg = CACHE },
	{ HOLD, "hold_cache_private", .run = hold, .arg = CACHE_PRIVATE },
	{ DIO, "dio_small", .run = dio, .arg = SMALL },
	{ DIO, "dio_mthp", .run = dio, .arg = MTHP },
	{ DIO, "dio_thp", .run = dio, .arg = THP },
	{ DIO, "dio_hugetlb", .run = dio, .arg = HUGETLB },
	{ DIO, "dio_tails", .run = dio_tails },
	{ REGIONS, "fork", .run = forks },
	{ HOLD, "fork_hold", .run = forks },
	{ DIO, "fork_dio", .run = forks },
	{ REGIONS, "dontneed", disturb, MADV_DONTNEED, op_advise, DISCARD, NULL },
	{ REGIONS, "free", disturb, MADV_FREE, op_advise, DISCARD, NULL },
	{ REGIONS, "cold", disturb, MADV_COLD, op_advise, ANY, NULL },
	{ REGIONS, "pageout", disturb, MADV_PAGEOUT, op_advise, ANY, NULL },
	{ REGIONS, "collapse", disturb, MADV_COLLAPSE, op_advise, ANY, THP_DIR },
	{ REGIONS, "mprotect", disturb, 0, op_protect, ANY, NULL },
	{ REGIONS, "split", disturb, 0, op_split, ANY, SPLIT_PATH },
	{ REGIONS, "migrate", disturb, 0, op_migrate, ANY, NULL },
	{ REGIONS, "ksm", disturb, 0, op_ksm, ALIKE, KSM_DIR },
	{ REGIONS, "punch", disturb, 0, op_punch, PUNCH, NULL },
	{ REGIONS, "truncate", disturb, 0, op_truncate, PUNCH, NULL },
	{ HOLD, "compact", .run = poke, .arg = 1, .path = "/proc/sys/vm/compact_memory" },
	{ HOLD, "drop_caches", .run = poke, .arg = 3, .path = "/proc/sys/vm/drop_caches" },
	{ HOLD, "hotplug", .run = hotplug, .path = MEMORY_DIR },
};

#define NR_ACTORS	ARRAY_SIZE(actors)

static void *act(void *arg)
{
	const struct actor *a = arg;

	self = &shared->result[a - actors];
	prctl(PR_SET_NAME, a->name);
	seed = a - actors + now_ms();
	if (a->path && access(a->path, F_OK))
		skip("%s: %s", a->path, strerror(errno));
	else if (a->fates && !have_region(a->fates))
		skip("no region for it");
	else
		a->run(a);
	__atomic_store_n(&self->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void on_kick(int __always_unused sig)
{
}

static void on_signal(int sig, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &action, NULL);
}

/* The process of a group of actors. */
static void stress(enum group group)
{
	pthread_t threads[NR_ACTORS];
	unsigned int i, left;
	long kicked = 0;
	size_t off;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	on_signal(SIGSEGV, on_fault, SA_NODEFER);
	on_signal(SIGBUS, on_fault, SA_NODEFER);
	on_signal(SIGUSR1, on_kick, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	self = &shared->result[NR_ACTORS];

	for (i = 0; i < NR_REGIONS && group == REGIONS; i++) {
		regions[i].id = i;
		if (map_region(&regions[i], shared->no_region[i]) && !is_large(&regions[i]))
			because(shared->no_region[i], "no folios of that size");
	}
	for (i = 0; i < NR_ACTORS; i++)
		if (actors[i].group == group &&
		    pthread_create(&threads[i], NULL, act, (void *)&actors[i]))
			_exit(KSFT_FAIL);

	/* What sleeps in the kernel is woken for the end, the endless at times. */
	do {
		sleep_ms(100);
		for (left = i = 0; i < NR_ACTORS; i++) {
			const struct result *res = &shared->result[i];

			if (actors[i].group != group ||
			    __atomic_load_n(&res->done, __ATOMIC_SEQ_CST))
				continue;
			left++;
			if (now_ms() - kicked > 1000 &&
			    (stopping() || (actors[i].run == hotplug &&
					    now_ms() - res->since > KICK_MS)))
				pthread_kill(threads[i], SIGUSR1);
		}
		if (now_ms() - kicked > 1000)
			kicked = now_ms();
	} while (left);
	for (i = 0; i < NR_ACTORS; i++)
		if (actors[i].group == group)
			pthread_join(threads[i], NULL);

	/* An owner may have been stopped within a generation. */
	for (i = 0; i < NR_REGIONS; i++) {
		struct region *r = &regions[i];

		if (!r->addr)
			continue;
		begin(kinds[r->kind].name);
		for (off = 0; off < r->size; off += pagesize)
			if (access_page(r, off, CHECK, oldest(r), newest(r), "end"))
				fail("%s: no access to byte %zu", kinds[r->kind].name, off);
		did(true);
	}
	_exit(KSFT_PASS);
}

/* ---- Setting the scene -------------------------------------------------- */

static struct setting {
	char path[PATH_LEN];
	const char *value;
	char was[64];
} settings[] = {
	{ "", "madvise", "" },		/* of MTHP */
	{ "", "madvise", "" },		/* of THP */
	{ "", "24", "" },		/* pages of hugetlb, for copies too */
	{ KSM_DIR "/sleep_millisecs", "20", "" },
	{ KSM_DIR "/pages_to_scan", "500", "" },
	{ KSM_DIR "/run", "1", "" },
};

static void settings_make(void)
{
	unsigned int i;
	char text[32];

	if (!read_text(THP_DIR "/hpage_pmd_size", text, sizeof(text)))
		pmdsize = strtoul(text, NULL, 10);
	snprintf(settings[0].path, PATH_LEN, THP_SIZE_DIR "/enabled", mthpsize >> 10);
	snprintf(settings[1].path, PATH_LEN, THP_SIZE_DIR "/enabled", pmdsize >> 10);
	snprintf(settings[2].path, PATH_LEN,
		 "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages", bufsize >> 10);
	snprintf(split_stat[0], PATH_LEN, THP_SIZE_DIR "/stats/split", mthpsize >> 10);
	snprintf(split_stat[1], PATH_LEN, THP_SIZE_DIR "/stats/split", pmdsize >> 10);
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		struct setting *s = &settings[i];

		keep_choice(s->path, s->was, sizeof(s->was));
		if (!s->was[0] && read_text(s->path, s->was, sizeof(s->was)))
			continue;
		if (i != 2 || atoi(s->was) < atoi(s->value))
			write_text(s->path, s->value);
	}
	if (!read_text("/sys/devices/system/node/has_memory", text, sizeof(text)))
		sscanf(text, "%d%*[,-]%d", &nodes[0], &nodes[1]);
}

#define PMEM_PATH	"/dev/pmem0"
#define PMEM_HEAD	(1024 * 1024)

static char pmem_zero[PMEM_HEAD], pmem_dir[PATH_LEN / 2];

/*
 * A file system on persistent memory, if there is some and nothing is on it: it
 * may be somebody's.
 */
static void pmem_make(void)
{
	struct target *t = &targets[PMEM];
	static char head[PMEM_HEAD];
	int fd, blank;

	if (targets[EXT4].why[0]) {
		because(t->why, "%s", targets[EXT4].why);
		return;
	}
	fd = open(PMEM_PATH, O_RDWR | O_EXCL | O_CLOEXEC);
	if (fd < 0) {
		because(t->why, PMEM_PATH ": %s", strerror(errno));
		return;
	}
	blank = pread(fd, head, PMEM_HEAD, 0) == PMEM_HEAD && !memcmp(head, pmem_zero, PMEM_HEAD);
	close(fd);
	if (!blank) {
		because(t->why, PMEM_PATH ": something is on it (its first bytes are not zero)");
		return;
	}
	snprintf(pmem_dir, sizeof(pmem_dir), "%s/%s", workdir, t->name);
	snprintf(t->path, sizeof(t->path), "%s/file", pmem_dir);
	if (run(t->mkfs, PMEM_PATH))
		because(t->why, "%s " PMEM_PATH " failed", t->mkfs[0]);
	else if (mkdir(pmem_dir, 0700) || mount(PMEM_PATH, pmem_dir, t->fstype, 0, "dax=always"))
		because(t->why, "mount -o dax " PMEM_PATH ": %s", strerror(errno));
}

static void restore(void)
{
	unsigned int i;
	int fd;

	/* Nothing of ours is left in the block, still it must not take for ever. */
	on_signal(SIGALRM, on_kick, 0);
	for (i = 0; i < 10 && shared->block >= 0; i++) {
		alarm(5);
		block_write(shared->block, "offline");
		if (block_write(shared->block, "online"))
			shared->block = -1;
		alarm(0);
	}
	if (shared->block >= 0)
		ksft_print_msg("memory block %d could not be put back\n", shared->block);
	for (i = 0; i < ARRAY_SIZE(settings); i++)
		if (settings[i].was[0])
			write_text(settings[i].path, settings[i].was);
	if (pmem_dir[0]) {
		umount(pmem_dir);
		fd = open(PMEM_PATH, O_RDWR | O_EXCL | O_CLOEXEC);
		if (fd < 0 || pwrite(fd, pmem_zero, PMEM_HEAD, 0) != PMEM_HEAD)
			ksft_print_msg("%s: not wiped: %s\n", PMEM_PATH, strerror(errno));
		close(fd);
	}
	umount2(workdir, MNT_DETACH);
	rmdir(workdir);
}

/* ---- The watchdog, and what is made of it all --------------------------- */

static void on_end(int __always_unused sig)
{
	shared->stop = true;
}

/* Has each actor done something and each region been pinned, or will never be? */
static bool all_had_a_turn(void)
{
	unsigned int i;

	for (i = 0; i < NR_ACTORS; i++) {
		const struct result *res = &shared->result[i];

		if (!res->ops && !res->failures && !res->done)
			return false;
	}
	for (i = 0; i < NR_REGIONS; i++)
		if (!shared->pinned[i] && !shared->no_region[i][0])
			return false;
	return true;
}

/* Run the groups for @seconds, or longer if need be, and see that they end. */
static bool watch(long seconds)
{
	long start = now_ms(), limit = PATIENCE * seconds * 1000, passed = 0;
	bool good = true;
	pid_t pids[NR_GROUPS];
	unsigned int i, left = NR_GROUPS;
	int status;

	fflush(stdout);
	for (i = 0; i < NR_GROUPS; i++) {
		pids[i] = fork();
		if (!pids[i])
			stress(i);
	}
	while (left && passed < limit + GRACE_MS) {
		for (i = 0; i < NR_GROUPS; i++) {
			if (!pids[i] || waitpid(pids[i], &status, WNOHANG) != pids[i])
				continue;
			if (status)
				ksft_print_msg("group %u: wait status %#x\n", i, status);
			good = good && !status;
			shared->stop |= !!status;
			pids[i] = 0;
			left--;
		}
		passed = now_ms() - start;
		shared->stop |= passed > limit || (passed > seconds * 1000 && all_had_a_turn());
		sleep_ms(100);
	}
	for (i = 0; left && i <= NR_ACTORS; i++) {
		const struct result *res = &shared->result[i];

		if (!res->done && res->doing)
			ksft_print_msg("stuck: %s: %s, for %ld ms\n",
				       i < NR_ACTORS ? actors[i].name : "end", res->doing,
				       now_ms() - res->since);
	}
	for (i = 0; i < NR_GROUPS; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	/* Time to die in, if they can. */
	for (i = 0; left && i < 50; i++) {
		if (waitpid(-1, &status, WNOHANG) > 0)
			left--, good = false;
		sleep_ms(100);
	}
	return good && !left;
}

static void report(unsigned int i, const char *name)
{
	const struct result *res = &shared->result[i];

	ksft_print_msg("%s: %ld of %ld\n", name, res->ops, res->tries);
	if (res->failures)
		ksft_test_result_fail("%s: %ld failures, the first: %s\n", name,
				      res->failures, res->failure);
	else if (res->skip[0])
		ksft_test_result_skip("%s: %s\n", name, res->skip);
	else
		ksft_test_result(res->ops, "%s\n", name);
}

int main(int argc, char **argv)
{
	struct pins before, pins;
	long seconds = SECONDS, start;
	unsigned int i;
	bool ended;
	char *end;

	if (argc > 1) {
		seconds = strtol(argv[1], &end, 10);
		if (argc > 2 || *end || end == argv[1] || seconds < 1 || seconds > 86400) {
			fprintf(stderr, "%s: bad argument\nusage: %s [SECONDS], 1 to 86400\n",
				argv[0], argv[0]);
			return KSFT_FAIL;
		}
	}
	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root: mounts, loop devices, debugfs, settings of mm\n");
	pins_now();
	if (vmstat_why[0])
		ksft_exit_skip("%s\n", vmstat_why);
	pagesize = sysconf(_SC_PAGESIZE);
	bufsize = NPAGES * pagesize;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, SHARED_ANON, -1, 0);
	if (shared == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	shared->block = -1;
	ksft_set_plan(NR_ACTORS + NR_REGIONS + 3);

	on_signal(SIGINT, on_end, 0);
	on_signal(SIGTERM, on_end, 0);
	settings_make();
	targets_make(targets, NR_LOOPS);
	pmem_make();
	before = pins_at_rest();
	start = now_ms();
	ended = watch(seconds);
	ksft_print_msg("%ld s asked for, %ld ms taken\n", seconds, now_ms() - start);
	pins = pins_settled(&before);
	restore();

	for (i = 0; i < NR_ACTORS; i++)
		report(i, actors[i].name);
	report(NR_ACTORS, "contents at the end");
	for (i = 0; i < NR_REGIONS; i++) {
		const char *fate = regions[i].fate == DISCARD ? ", discarded" :
				   regions[i].fate == PUNCH ? ", punched" :
				   regions[i].fate == ALIKE ? ", alike" : "";
		const char *name = kinds[regions[i].kind].name;

		ksft_print_msg("%s%s: %ld pins\n", name, fate, shared->pinned[i]);
		if (shared->no_region[i][0])
			ksft_test_result_skip("region of %s%s: %s\n", name, fate,
					      shared->no_region[i]);
		else
			ksft_test_result(shared->pinned[i], "region of %s%s was pinned\n",
					 name, fate);
	}
	ksft_print_msg("pins: %ld acquired, %ld released\n", pins.acquired, pins.released);
	ksft_test_result(pins.acquired == pins.released && pins.acquired, "pins balance\n");
	ksft_test_result(ended, "all processes ended, in time\n");
	ksft_finished();
}
