// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct I/O that is slow to answer: what happens to the user's memory in the
 * meantime must not cost a byte, nor a page.
 *
 *  - fork() while a read is under way, and the parent writes to the page;
 *  - writeback of the file whose shared mapping is read into;
 *  - the reader is killed;
 *  - the server goes, and comes back.
 *
 * A page that is only referenced is copied on write, written back and forgotten
 * as if nothing were to come; one that is pinned is not. And the shapes of I/O
 * that a filesystem may get wrong: one byte, unaligned vectors, holes, the end of
 * the file, large folios.
 *
 * dio.sh brings up the servers. On a filesystem that pins already (those on block
 * devices, FUSE, 9p) the same must hold, and does.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include <linux/fuse.h>

#include "kselftest_harness.h"
#include "mm_pin.h"

#define DELAY_MS	1000	/* a slow read takes at least this long */
#define SETOFF_MS	200	/* by when it is surely under way */
#define DATA_SIZE	(1024UL * 1024)

#define XFS_SIZE	(320UL << 20)	/* the least that mkfs.xfs takes, and some */

#define IS_READ(off)	((char)((off) * 7 + (off) / 509 + 1))

/* ---- A FUSE server, whose reads can be made slow ------------------------ */

struct fuse_file {
	const char *name;
	off_t size;
	int fd;
};

/* A file of its own, and disks for loop devices; inode numbers from 2. */
static struct fuse_file fuse_files[] = {
	{ "file", 2 * DATA_SIZE, -1 },
	{ "bdev", 8 << 20, -1 },
	{ "ext4", 16 << 20, -1 },
	{ "xfs", XFS_SIZE, -1 },
};

struct fuse_shared {
	volatile int delay_ms;		/* of each read */
	volatile int reads;		/* begun */
};

static struct fuse_shared *fuse;
static char fuse_dir[PATH_LEN / 4];
static char fuse_why[WHY_LEN];
static pid_t fuse_pid;

static void fuse_attr(uint64_t node, struct fuse_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->ino = node;
	attr->nlink = 1;
	attr->blksize = pagesize;
	if (node == FUSE_ROOT_ID) {
		attr->mode = S_IFDIR | 0700;
		return;
	}
	attr->mode = S_IFREG | 0600;
	attr->size = fuse_files[node - 2].size;
	attr->blocks = attr->size / 512;
}

static void fuse_reply(int dev, uint64_t unique, int error, void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + len, .error = error, .unique = unique,
	};
	struct iovec iov[] = { { &out, sizeof(out) }, { data, len } };

	/* The request may have been aborted: nothing to be done. */
	if (writev(dev, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		_exit(1);
}

/* One request; @buf has room for the data of a read. */
static void fuse_serve(int dev, const struct fuse_in_header *in, const void *arg, char *buf)
{
	union {
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		struct fuse_write_out write;
		struct fuse_statfs_out statfs;
		struct fuse_init_out init;
	} out = { 0 };
	size_t len = 0, i;
	int error = 0;

	switch (in->opcode) {
	case FUSE_INIT:
		out.init.major = FUSE_KERNEL_VERSION;
		out.init.minor = FUSE_KERNEL_MINOR_VERSION;
		out.init.max_write = DATA_SIZE;
		out.init.max_pages = DATA_SIZE / pagesize;
		out.init.flags = FUSE_MAX_PAGES | FUSE_BIG_WRITES |
				 (((const struct fuse_init_in *)arg)->flags & FUSE_ASYNC_DIO);
		len = sizeof(out.init);
		break;
	case FUSE_LOOKUP:
		error = -ENOENT;
		for (i = 0; i < ARRAY_SIZE(fuse_files); i++) {
			if (strcmp(arg, fuse_files[i].name))
				continue;
			out.entry.nodeid = i + 2;
			fuse_attr(i + 2, &out.entry.attr);
			len = sizeof(out.entry);
			error = 0;
		}
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		fuse_attr(in->nodeid, &out.attr.attr);
		len = sizeof(out.attr);
		break;
	case FUSE_OPEN:
		out.open.open_flags = FOPEN_DIRECT_IO;
		len = sizeof(out.open);
		break;
	case FUSE_READ: {
		const struct fuse_read_in *rd = arg;
		ssize_t got;

		fuse->reads++;
		sleep_ms(fuse->delay_ms);
		got = pread(fuse_files[in->nodeid - 2].fd, buf, rd->size, rd->offset);
		fuse_reply(dev, in->unique, got < 0 ? -errno : 0, buf, got < 0 ? 0 : got);
		return;
	}
	case FUSE_WRITE: {
		const struct fuse_write_in *wr = arg;

		out.write.size = pwrite(fuse_files[in->nodeid - 2].fd, wr + 1, wr->size,
					wr->offset);
		len = sizeof(out.write);
		break;
	}
	case FUSE_STATFS:
		len = sizeof(out.statfs);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_FSYNC:
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		error = -ENOSYS;
	}
	fuse_reply(dev, in->unique, error, &out, error ? 0 : len);
}

static void fuse_loop(int dev)
{
	size_t size = DATA_SIZE + (64 << 10);
	char *in = malloc(size), *buf = malloc(size);
	ssize_t len;

	while (in && buf) {
		len = read(dev, in, size);
		if (len < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
			continue;
		if (len < (ssize_t)sizeof(struct fuse_in_header))
			_exit(0);
		fuse_serve(dev, (void *)in, in + sizeof(struct fuse_in_header), buf);
	}
	_exit(1);
}

/* Mounted at workdir/fuse; served by a child that ends with us. */
static void fuse_start(void)
{
	char options[128];
	unsigned int i;
	int dev;

	fuse = mmap(NULL, pagesize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(fuse_dir, sizeof(fuse_dir), "%s/fuse", workdir);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", dev);
	if (fuse == MAP_FAILED || dev < 0 || mkdir(fuse_dir, 0700) ||
	    mount("mm-pin", fuse_dir, "fuse", 0, options)) {
		because(fuse_why, "fuse: %s", strerror(errno));
		return;
	}
	for (i = 0; i < ARRAY_SIZE(fuse_files); i++) {
		fuse_files[i].fd = memfd_create(fuse_files[i].name, MFD_CLOEXEC);
		if (ftruncate(fuse_files[i].fd, fuse_files[i].size))
			because(fuse_why, "fuse: memfd: %s", strerror(errno));
	}
	fuse_pid = fork();
	if (!fuse_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fuse_loop(dev);
	}
	close(dev);
}

/* ---- What is read from -------------------------------------------------- */

enum source { NFS3, NFS4, P9, FUSE, BDEV, EXT4, XFS, NSOURCES };

struct from {
	const char *name;
	const char *env;	/* the directory, mounted by dio.sh */
	bool slow;		/* can be made so */
	char path[PATH_LEN];
	char why[WHY_LEN];
};

static struct from from[NSOURCES] = {
	[NFS3]	= { "nfs3", "DIO_NFS3", true, "", "" },
	[NFS4]	= { "nfs4", "DIO_NFS4", true, "", "" },
	[P9]	= { "9p", "DIO_9P", false, "", "" },
	[FUSE]	= { "fuse", NULL, true, "", "" },
	[BDEV]	= { "bdev", NULL, true, "", "" },
	[EXT4]	= { "ext4", NULL, true, "", "" },
	[XFS]	= { "xfs", NULL, true, "", "" },
};

#define MKFS_EXT4	"mkfs.ext4", "-F", "-q"
#define MKFS_XFS	"mkfs.xfs", "-f", "-q"

/* Disks that the FUSE server keeps: slow where it is. */
static struct target disks[] = {
	{ .name = "bdev", .block_size = 512 },
	{ .name = "ext4", .fstype = "ext4", .mkfs = { MKFS_EXT4 }, .block_size = 512 },
	{ .name = "xfs", .fstype = "xfs", .mkfs = { MKFS_XFS }, .block_size = 512 },
};

/* What is mapped, and read into. */
enum into { INTO_EXT4, INTO_XFS, NINTO };

static struct target into[NINTO] = {
	[INTO_EXT4] = { .name = "into_ext4", .fstype = "ext4", .mkfs = { MKFS_EXT4 },
			.block_size = 512 },
	[INTO_XFS]  = { .name = "into_xfs", .fstype = "xfs", .mkfs = { MKFS_XFS },
			.block_size = 512, .image_size = XFS_SIZE },
};

static bool fill(const char *path, char *why)
{
	char *data = malloc(DATA_SIZE);
	size_t off;
	int fd;

	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (off = 0; data && off < DATA_SIZE; off++)
		data[off] = IS_READ(off);
	if (fd < 0 || !data || pwrite(fd, data, DATA_SIZE, 0) != (ssize_t)DATA_SIZE ||
	    fsync(fd))
		because(why, "%s: %s", path, strerror(errno));
	close(fd);
	free(data);
	return !why[0];
}

static void from_prepare(struct from *f, enum source source)
{
	struct target *disk;

	if (f->env) {
		if (!getenv(f->env)) {
			because(f->why, "%s is not set: run this by dio.sh", f->env);
			return;
		}
		snprintf(f->path, sizeof(f->path), "%s/dio", getenv(f->env));
	} else if (fuse_why[0]) {
		strcpy(f->why, fuse_why);
		return;
	} else if (source == FUSE) {
		snprintf(f->path, sizeof(f->path), "%s/file", fuse_dir);
	} else {
		disk = &disks[source - BDEV];
		strcpy(f->why, disk->why);
		strcpy(f->path, disk->path);
		if (f->why[0])
			return;
	}
	fill(f->path, f->why);
}

/* Reads become slow, or are no longer: from a server by a delay on lo. */
static int delay_lo(void)
{
	static const char *const argv[] = {
		"tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", NULL
	};
	char delay[16];

	snprintf(delay, sizeof(delay), "%dms", DELAY_MS / 2);
	return run(argv, delay);
}

static void undelay_lo(void)
{
	static const char *const argv[] = { "tc", "qdisc", "del", "dev", "lo", NULL };

	run(argv, "root");
}

static bool slow_start(enum source source, char *why)
{
	if (source == NFS3 || source == NFS4) {
		if (delay_lo())
			return because(why, "tc: no netem delay on lo");
	} else {
		fuse->delay_ms = DELAY_MS;
	}
	return true;
}

static void slow_end(enum source source)
{
	if (source == NFS3 || source == NFS4)
		undelay_lo();
	else if (fuse)
		fuse->delay_ms = 0;
}

static bool from_open(enum source source, int *fd, char *why)
{
	if (from[source].why[0])
		return because(why, "%s: %s", from[source].name, from[source].why);
	*fd = open(from[source].path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (*fd < 0)
		return because(why, "%s: O_DIRECT: %s", from[source].path, strerror(errno));
	return true;
}

/* ---- A read in a thread of its own -------------------------------------- */

struct reader {
	pthread_t thread;
	int fd;
	char *addr;
	size_t len;
	ssize_t ret;
	volatile bool done;
};

static void *read_slowly(void *arg)
{
	struct reader *r = arg;

	r->ret = pread(r->fd, r->addr, r->len, 0);
	r->done = true;
	return NULL;
}

static bool reader_start(struct reader *r, int fd, char *addr, size_t len)
{
	*r = (struct reader){ .fd = fd, .addr = addr, .len = len };
	if (pthread_create(&r->thread, NULL, read_slowly, r))
		return false;
	sleep_ms(SETOFF_MS);
	return !r->done;
}

static size_t wrong_bytes(const char *addr, off_t from, size_t len)
{
	size_t off, wrong = 0;

	for (off = 0; off < len; off++)
		wrong += addr[off] != IS_READ(from + off);
	return wrong;
}

#define EXPECT_READ(addr, from, len) do {					\
	size_t _wrong = wrong_bytes(addr, from, len);				\
										\
	EXPECT_EQ((size_t)0, _wrong)						\
		TH_LOG("%zu bytes of %zu are not what is in the file",		\
		       _wrong, (size_t)(len));					\
} while (0)

#define EXPECT_BALANCED(before)	EXPECT_PINNED_AND_RELEASED(before, 0)

static char *map_anon(size_t size, bool huge)
{
	char *addr, *aligned;

	addr = mmap(NULL, 2 * pmdsize + size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return NULL;
	aligned = (char *)(((uintptr_t)addr + pmdsize - 1) & ~(pmdsize - 1));
	madvise(aligned, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(aligned, 0x5a, size);
	return aligned;
}

/* ---- Slow reads --------------------------------------------------------- */

FIXTURE(slow)
{
	struct pins before;
	struct reader reader;
	int fd;
};

FIXTURE_VARIANT(slow)
{
	enum source source;
};

#define VARIANT_SOURCE(fixture, s)					\
	FIXTURE_VARIANT_ADD(fixture, s) { .source = s }

VARIANT_SOURCE(slow, NFS3);
VARIANT_SOURCE(slow, NFS4);
VARIANT_SOURCE(slow, FUSE);
VARIANT_SOURCE(slow, BDEV);
VARIANT_SOURCE(slow, EXT4);
VARIANT_SOURCE(slow, XFS);

FIXTURE_SETUP(slow)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!from_open(variant->source, &self->fd, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
	if (!slow_start(variant->source, why))
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(slow)
{
	slow_end(variant->source);
	close(self->fd);
}

/*
 * The child that lives on makes the parent's next write to the page a copy. The
 * data must be in the page that the parent sees, whichever half it wrote to.
 */
static void fork_in_the_middle(struct __test_metadata *_metadata, FIXTURE_DATA(slow) *self,
			       char *page)
{
	pid_t pid;

	ASSERT_TRUE(reader_start(&self->reader, self->fd, page, 2048));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	ASSERT_LT(0, pid);
	page[2048] = 'p';
	EXPECT_FALSE(self->reader.done);
	pthread_join(self->reader.thread, NULL);
	EXPECT_EQ(2048, self->reader.ret);
	EXPECT_READ(page, 0, 2048);
	EXPECT_EQ('p', page[2048]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_BALANCED(&self->before);
}

TEST_F(slow, fork_loses_nothing)
{
	char *page = map_anon(pagesize, false);

	ASSERT_NE(NULL, page);
	fork_in_the_middle(_metadata, self, page);
}

TEST_F(slow, fork_loses_nothing_of_a_huge_page)
{
	char *page = map_anon(pmdsize, true);

	ASSERT_NE(NULL, page);
	if (!is_one_folio(page, pmdsize, 0))
		SKIP(return, "no huge page");
	fork_in_the_middle(_metadata, self, page);
}

/* What else looks for pins is to find one for as long as the data may come. */
TEST_F(slow, memory_is_pinned_until_the_data_is_there)
{
	char *page = map_anon(4 * pagesize, false);
	struct pins pins;

	ASSERT_NE(NULL, page);
	ASSERT_TRUE(reader_start(&self->reader, self->fd, page, 4 * pagesize));
	pins = pins_since(&self->before);
	EXPECT_GE(pins.acquired - pins.released, 4)
		TH_LOG("pins: %ld acquired, %ld released", pins.acquired, pins.released);
	pthread_join(self->reader.thread, NULL);
	EXPECT_EQ((ssize_t)(4 * pagesize), self->reader.ret);
	EXPECT_READ(page, 0, 4 * pagesize);
	EXPECT_BALANCED(&self->before);
}

/* The reader is gone, its memory too; the pins go when the answer has come. */
TEST_F(slow, killed_reader_releases_what_it_pins)
{
	struct pins pins;
	pid_t pid;

	pid = fork();
	if (!pid) {
		char *page = map_anon(4 * pagesize, false);

		_exit(pread(self->fd, page, 4 * pagesize, 0) != (ssize_t)(4 * pagesize));
	}
	ASSERT_LT(0, pid);
	sleep_ms(SETOFF_MS);
	pins = pins_since(&self->before);
	EXPECT_GE(pins.acquired, 4)
		TH_LOG("pins: %ld acquired, %ld released", pins.acquired, pins.released);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_BALANCED(&self->before);
}

/* ---- A server that goes in the middle, and comes back ------------------- */

FIXTURE(server)
{
	struct pins before;
	struct reader reader;
	char *addr;
	int fd;
};

FIXTURE_VARIANT(server)
{
	enum source source;
};

VARIANT_SOURCE(server, NFS3);
VARIANT_SOURCE(server, NFS4);

static int nfsd_stop(void)
{
	static const char *const argv[] = { "rpc.nfsd", NULL };

	return run(argv, "0");
}

static int nfsd_start(void)
{
	static const char *const argv[] = { "rpc.nfsd", "-H", "127.0.0.1", NULL };

	return run(argv, "8");
}

FIXTURE_SETUP(server)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!from_open(variant->source, &self->fd, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
	self->addr = map_anon(DATA_SIZE, false);
	ASSERT_NE(NULL, self->addr);
	if (!slow_start(variant->source, why))
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(server)
{
	slow_end(variant->source);
	close(self->fd);
}

/*
 * What was asked before is asked again: the memory is there for both answers. The
 * client tries to connect after 3, 6, 12 s and so on, not within the usual 30 s.
 */
TEST_F_TIMEOUT(server, gone_and_back_in_the_middle_of_a_read, 120)
{
	struct pins pins;

	ASSERT_TRUE(reader_start(&self->reader, self->fd, self->addr, DATA_SIZE));
	EXPECT_EQ(0, nfsd_stop());
	sleep_ms(2 * DELAY_MS);		/* the client has heard of it */
	slow_end(variant->source);
	EXPECT_FALSE(self->reader.done);
	pins = pins_since(&self->before);
	EXPECT_EQ((long)(DATA_SIZE / pagesize), pins.acquired - pins.released);
	ASSERT_EQ(0, nfsd_start());
	pthread_join(self->reader.thread, NULL);
	EXPECT_EQ((ssize_t)DATA_SIZE, self->reader.ret);
	EXPECT_READ(self->addr, 0, DATA_SIZE);
	EXPECT_BALANCED(&self->before);
}

/* ---- Slow reads into the shared mapping of a file ----------------------- */

FIXTURE(mapping)
{
	struct pins before;
	struct reader reader;
	char path[PATH_LEN];
	size_t size;		/* of the folio, and of the read */
	char *addr;
	int fd, file;
};

FIXTURE_VARIANT(mapping)
{
	enum source source;
	enum into into;
	bool large;
};

#define VARIANTS_MAPPING(s)						\
	FIXTURE_VARIANT_ADD(mapping, s##_EXT4_SMALL) { s, INTO_EXT4, false };	\
	FIXTURE_VARIANT_ADD(mapping, s##_EXT4_LARGE) { s, INTO_EXT4, true };	\
	FIXTURE_VARIANT_ADD(mapping, s##_XFS_SMALL) { s, INTO_XFS, false };	\
	FIXTURE_VARIANT_ADD(mapping, s##_XFS_LARGE) { s, INTO_XFS, true }

VARIANTS_MAPPING(NFS3);
VARIANTS_MAPPING(NFS4);
VARIANTS_MAPPING(FUSE);
VARIANTS_MAPPING(BDEV);

#define LARGE	(64UL << 10)

FIXTURE_SETUP(mapping)
{
	struct target *t = &into[variant->into];
	char why[WHY_LEN], *data;

	SKIP_UNLESS_COUNTED();
	if (t->why[0])
		SKIP(return, "%s: %s", t->name, t->why);
	if (!from_open(variant->source, &self->fd, why))
		SKIP(return, "%s", why);

	/* One write of all of it asks for one folio of its size. */
	self->size = variant->large ? LARGE : pagesize;
	snprintf(self->path, sizeof(self->path), "%.*s.map", PATH_LEN - 8, t->path);
	unlink(self->path);
	self->file = open(self->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ASSERT_LE(0, self->file);
	data = calloc(1, LARGE);
	ASSERT_EQ((ssize_t)self->size, pwrite(self->file, data, self->size, 0));
	ASSERT_EQ(0, fsync(self->file));
	free(data);
	self->addr = mmap(NULL, self->size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, self->addr);
	if (variant->large && !is_one_folio(self->addr, LARGE, 0))
		SKIP(return, "%s: no folio of %lu bytes", t->name, LARGE);

	self->before = pins_at_rest();
	if (!slow_start(variant->source, why))
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(mapping)
{
	slow_end(variant->source);
	close(self->fd);
	close(self->file);
	unlink(self->path);
}

/* From the disk: what is in memory was dropped. */
static void expect_on_disk(struct __test_metadata *_metadata, FIXTURE_DATA(mapping) *self)
{
	char *data = malloc(self->size);
	int fd;

	EXPECT_EQ(0, fsync(self->file));
	munmap(self->addr, self->size);
	EXPECT_EQ(0, posix_fadvise(self->file, 0, 0, POSIX_FADV_DONTNEED));
	EXPECT_EQ(0, write_text("/proc/sys/vm/drop_caches", "1"));
	fd = open(self->path, O_RDONLY | O_CLOEXEC);
	EXPECT_EQ((ssize_t)self->size, pread(fd, data, self->size, 0));
	EXPECT_READ(data, 0, self->size);
	close(fd);
	free(data);
}

/*
 * The page is dirty from when it is pinned, and clean once written back in the
 * middle of the read. Only who releases the pin can know of the data.
 */
static void written_back_by(struct __test_metadata *_metadata, FIXTURE_DATA(mapping) *self,
			    int (*write_back)(FIXTURE_DATA(mapping) *self))
{
	ASSERT_TRUE(reader_start(&self->reader, self->fd, self->addr, self->size));
	EXPECT_EQ(0, write_back(self));
	EXPECT_FALSE(self->reader.done)
		TH_LOG("written back too late to tell");
	pthread_join(self->reader.thread, NULL);
	EXPECT_EQ((ssize_t)self->size, self->reader.ret);
	EXPECT_READ(self->addr, 0, self->size);
	expect_on_disk(_metadata, self);
	EXPECT_BALANCED(&self->before);
}

static int by_fsync(FIXTURE_DATA(mapping) *self)
{
	return fsync(self->file);
}

static int by_sync_file_range(FIXTURE_DATA(mapping) *self)
{
	return sync_file_range(self->file, 0, self->size,
			       SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			       SYNC_FILE_RANGE_WAIT_AFTER);
}

static int by_pressure(FIXTURE_DATA(mapping) *self)
{
	if (fsync(self->file) || madvise(self->addr, self->size, MADV_PAGEOUT))
		return -1;
	return posix_fadvise(self->file, 0, 0, POSIX_FADV_DONTNEED);
}

TEST_F(mapping, fsync_in_the_middle_loses_nothing)
{
	written_back_by(_metadata, self, by_fsync);
}

TEST_F(mapping, sync_file_range_in_the_middle_loses_nothing)
{
	written_back_by(_metadata, self, by_sync_file_range);
}

TEST_F(mapping, pressure_in_the_middle_loses_nothing)
{
	written_back_by(_metadata, self, by_pressure);
}

/* ---- The shape of the I/O ----------------------------------------------- */

FIXTURE(shape)
{
	struct pins before;
	int fd;
};

FIXTURE_VARIANT(shape)
{
	enum source source;
};

VARIANT_SOURCE(shape, NFS3);
VARIANT_SOURCE(shape, NFS4);
VARIANT_SOURCE(shape, P9);
VARIANT_SOURCE(shape, FUSE);

FIXTURE_SETUP(shape)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!from_open(variant->source, &self->fd, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(shape)
{
	close(self->fd);
}

TEST_F(shape, single_bytes)
{
	char *buf = map_anon(2 * pagesize, false);
	int i;

	ASSERT_NE(NULL, buf);
	for (i = 0; i < 20; i++) {
		off_t off = pagesize - 10 + i;

		ASSERT_EQ(1, pread(self->fd, buf + off, 1, off));
		EXPECT_EQ(IS_READ(off), buf[off]);
		ASSERT_EQ(1, pwrite(self->fd, buf + off, 1, off));
	}
	EXPECT_EQ(0x5a, buf[pagesize - 11]);
	EXPECT_EQ(0x5a, buf[pagesize + 10]);
	EXPECT_PINNED_AND_RELEASED(&self->before, 40);
}

/* Segments of odd sizes at odd places, an empty one among them. */
TEST_F(shape, unaligned_vectors)
{
	size_t lens[] = { 1, 4097, 0, 511, 12345, 3, 65537, 9 }, off = 0, gap = 0;
	struct iovec iov[ARRAY_SIZE(lens)];
	char *buf = map_anon(64 * pagesize, false);
	unsigned int i;

	ASSERT_NE(NULL, buf);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		gap += 77;
		iov[i].iov_base = buf + off + gap;
		iov[i].iov_len = lens[i];
		off += lens[i];
	}
	ASSERT_EQ((ssize_t)off, preadv(self->fd, iov, ARRAY_SIZE(lens), 3));
	for (i = 0, off = 3; i < ARRAY_SIZE(lens); i++) {
		EXPECT_READ(iov[i].iov_base, off, lens[i]);
		off += lens[i];
	}
	ASSERT_EQ((ssize_t)off - 3, pwritev(self->fd, iov, ARRAY_SIZE(lens), 3));
	memset(buf, 0, 64 * pagesize);
	ASSERT_EQ((ssize_t)off - 3, preadv(self->fd, iov, ARRAY_SIZE(lens), 3));
	EXPECT_READ(iov[6].iov_base, 3 + 1 + 4097 + 511 + 12345 + 3, 65537);
	EXPECT_PINNED_AND_RELEASED(&self->before, 3 * 21);
}

TEST_F(shape, huge_page)
{
	char *buf = map_anon(pmdsize, true);

	ASSERT_NE(NULL, buf);
	ASSERT_EQ((ssize_t)DATA_SIZE - 100, pread(self->fd, buf + 512, DATA_SIZE - 100, 0));
	EXPECT_READ(buf + 512, 0, DATA_SIZE - 100);
	EXPECT_EQ(0x5a, buf[511]);
	EXPECT_EQ(0x5a, buf[512 + DATA_SIZE - 100]);
	EXPECT_PINNED_AND_RELEASED(&self->before, DATA_SIZE / pagesize);
}

/* Pages that a program has of its own from a fork, and others shared. */
TEST_F(shape, tail_that_is_not_there)
{
	char *buf = map_anon(8 * pagesize, false);
	ssize_t ret;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, munmap(buf + 5 * pagesize, pagesize));
	ret = pread(self->fd, buf, 8 * pagesize, 0);
	if (ret < 0) {
		EXPECT_EQ(EFAULT, errno);
		ret = 0;
	}
	EXPECT_READ(buf, 0, ret);
	EXPECT_GE((ssize_t)(5 * pagesize), ret);
	EXPECT_PINNED_AND_RELEASED(&self->before, 5);
}

TEST_F(shape, end_of_file)
{
	char *buf = map_anon(8 * pagesize, false);
	struct stat st;
	off_t off;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, fstat(self->fd, &st));
	/* A reply of NFS is padded to a multiple of four bytes. */
	off = st.st_size - 2 * pagesize - 8;
	ASSERT_EQ((ssize_t)(2 * pagesize + 8), pread(self->fd, buf, 8 * pagesize, off));
	EXPECT_EQ(0x5a, buf[2 * pagesize + 8]);
	EXPECT_PINNED_AND_RELEASED(&self->before, 3);
}

/* A splice moves pages of the kernel: not pinned, and all there. */
TEST_F(shape, splice_pins_nothing)
{
	char data[512];
	int p[2];

	ASSERT_EQ(0, pipe(p));
	lseek(self->fd, 0, SEEK_SET);
	ASSERT_EQ(512, splice(self->fd, NULL, p[1], NULL, 512, 0));
	ASSERT_EQ(512, read(p[0], data, 512));
	EXPECT_READ(data, 0, 512);
	ASSERT_EQ(512, write(p[1], data, 512));
	lseek(self->fd, 0, SEEK_SET);
	ASSERT_EQ(512, splice(p[0], NULL, self->fd, NULL, 512, 0));
	close(p[0]);
	close(p[1]);
	EXPECT_BALANCED(&self->before);
}

/* ---- Requests that 9p takes --------------------------------------------- */

static char p9_irq[64];		/* how /proc/interrupts names the device's queue */

/* The one virtio-9p device with our tag: its queue's name, as in /proc/interrupts. */
static void p9_find(void)
{
	char path[PATH_LEN], tag[32];
	int i;

	for (i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "/sys/bus/virtio/devices/virtio%d/mount_tag", i);
		if (read_text(path, tag, sizeof(tag)) || strcmp(tag, "mm-pin"))
			continue;
		snprintf(p9_irq, sizeof(p9_irq), "virtio%d-requests", i);
	}
}

/* Answers so far: an interrupt each, as one request at a time is outstanding. */
static long p9_requests(void)
{
	static char text[64 << 10];
	char *line, *at, *end;
	ssize_t len = 0, ret;
	long sum = 0;
	int fd = open("/proc/interrupts", O_RDONLY | O_CLOEXEC);

	while ((ret = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += ret;
	close(fd);
	text[len] = '\0';
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!p9_irq[0] || !strstr(line, p9_irq))
			continue;
		for (at = strchr(line, ':') + 1; ; at = end) {
			long n = strtol(at, &end, 10);

			if (end == at)
				return sum;
			sum += n;
		}
	}
	return -1;
}

FIXTURE(p9)
{
	char *buf;
	int fd;
};

FIXTURE_SETUP(p9)
{
	char why[WHY_LEN];

	if (!from_open(P9, &self->fd, why))
		SKIP(return, "%s", why);
	if (p9_requests() < 0)
		SKIP(return, "no interrupts of the 9p device in /proc/interrupts");
	self->buf = map_anon(pmdsize, true);
	ASSERT_NE(NULL, self->buf);
	if (pmdsize < DATA_SIZE || !is_one_folio(self->buf, pmdsize, 0))
		SKIP(return, "no huge page");
}

FIXTURE_TEARDOWN(p9)
{
	close(self->fd);
}

/* The header leaves no room for all of it in one message of 1 MiB. */
TEST_F(p9, read_of_1m_takes_two_requests)
{
	long before = p9_requests();

	ASSERT_EQ((ssize_t)DATA_SIZE, pread(self->fd, self->buf, DATA_SIZE, 0));
	EXPECT_GE(2, p9_requests() - before)
		TH_LOG("%ld requests", p9_requests() - before);
	EXPECT_READ(self->buf, 0, DATA_SIZE);
}

TEST_F(p9, write_of_1m_takes_two_requests)
{
	long before;

	ASSERT_EQ((ssize_t)DATA_SIZE, pread(self->fd, self->buf, DATA_SIZE, 0));
	before = p9_requests();
	ASSERT_EQ((ssize_t)DATA_SIZE, pwrite(self->fd, self->buf, DATA_SIZE, 0));
	EXPECT_GE(2, p9_requests() - before)
		TH_LOG("%ld requests", p9_requests() - before);
	memset(self->buf, 0, DATA_SIZE);
	ASSERT_EQ((ssize_t)DATA_SIZE, pread(self->fd, self->buf, DATA_SIZE, 0));
	EXPECT_READ(self->buf, 0, DATA_SIZE);
}

/* Scattered pages: as many as the queue of 128 descriptors holds. */
TEST_F(p9, read_of_1m_of_small_pages_takes_three_requests)
{
	char *buf = map_anon(DATA_SIZE, false);
	long before = p9_requests();

	ASSERT_NE(NULL, buf);
	ASSERT_EQ((ssize_t)DATA_SIZE, pread(self->fd, buf, DATA_SIZE, 0));
	EXPECT_GE(3, p9_requests() - before)
		TH_LOG("%ld requests", p9_requests() - before);
	EXPECT_READ(buf, 0, DATA_SIZE);
}

/* ---- The copies of a FUSE server ---------------------------------------- */

/* stat() moves no data of the caller's: what is pinned is the server's buffer. */
TEST(fuse_request_is_read_into_pinned_memory)
{
	struct pins before, pins;
	struct statfs st;

	SKIP_UNLESS_COUNTED();
	if (fuse_why[0])
		SKIP(return, "%s", fuse_why);
	before = pins_at_rest();
	ASSERT_EQ(0, statfs(fuse_dir, &st));
	pins = pins_settled(&before);
	EXPECT_LE(1, pins.acquired);
	EXPECT_EQ(pins.acquired, pins.released);
}

/* ---- Setting the scene -------------------------------------------------- */

static void restore(void)
{
	char dir[PATH_LEN / 2];
	unsigned int i;

	/* While there is a server to write back to. */
	for (i = 0; i < ARRAY_SIZE(disks); i++) {
		snprintf(dir, sizeof(dir), "%s/%s", workdir, disks[i].name);
		umount2(dir, MNT_DETACH);
	}
	if (fuse_pid > 0)
		kill(fuse_pid, SIGKILL);
	targets_gone();
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (!tests_begin(argc, argv, restore))
		return test_harness_run(argc, argv);

	targets_make(into, ARRAY_SIZE(into));
	fuse_start();
	for (i = 0; i < ARRAY_SIZE(disks); i++) {
		snprintf(disks[i].image, sizeof(disks[i].image), "%s/%s", fuse_dir,
			 disks[i].name);
		if (!fuse_why[0])
			target_make(&disks[i]);
	}
	for (i = 0; i < NSOURCES; i++)
		from_prepare(&from[i], i);
	p9_find();
	pins_now();
	return test_harness_run(argc, argv);
}
