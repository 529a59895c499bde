// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every pin that user space can cause is released again, and counted on both
 * sides: nr_foll_pin_acquired and nr_foll_pin_released of /proc/vmstat move by
 * the same amount.
 *
 * A test pins pages in one way, on one kind of page, and then asks three things:
 *
 *  - Do the two counters agree once the operation is over? A pin that is taken
 *    and never counted, or counted and never released, makes them useless to
 *    find a leaked pin with, and a leaked pin is a page that is lost for good.
 *  - Did the first one move by at least the pages that had to be pinned? If it
 *    did not, the kernel took plain references, or the test did nothing.
 *  - Where the kernel must not pin at all (the zero page, vmsplice(),
 *    MSG_ZEROCOPY, get_user_pages()), did both stand still?
 *
 * The counters belong to the whole machine: nothing else may do direct I/O
 * while this runs.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <linux/aio_abi.h>
#include <linux/if_alg.h>
#include <linux/if_xdp.h>
#include <linux/io_uring.h>
#include <linux/memfd.h>
#include <linux/udmabuf.h>

#include "kselftest_harness.h"
#include "mm_pin.h"

#define BIO_MAX_VECS		256	/* include/linux/bio.h */

#define EXPECT_NO_PINS(before) do {					\
	struct pins _pins = pins_settled(before);			\
									\
	EXPECT_EQ(0, _pins.acquired);					\
	EXPECT_EQ(0, _pins.released);					\
} while (0)

/* Taken, and still held. */
#define EXPECT_PINS_HELD(before) do {					\
	struct pins _pins = pins_since(before);				\
									\
	EXPECT_GT(_pins.acquired, _pins.released)			\
		TH_LOG("pins: %ld acquired, %ld released",		\
		       _pins.acquired, _pins.released);			\
} while (0)

/* ---- Kinds of page ------------------------------------------------------ */

enum kind {
	SMALL,		/* anonymous, one page a folio */
	MTHP,		/* anonymous, 64 KiB folios, mapped by PTEs */
	THP,		/* anonymous, one folio mapped by a PMD */
	HUGETLB,
	SHMEM,		/* memfd, mapped shared */
};

struct buf {
	char *addr;
};

#define NR_HUGEPAGES	4

static char hugetlb_path[PATH_LEN];
static char mthp_path[PATH_LEN];
static char pmd_path[PATH_LEN];
static char hugetlb_was[32], mthp_was[64], pmd_was[64];

/* Anonymous memory of bufsize bytes, aligned to it, nothing behind it. */
static char *map_aligned(void)
{
	char *addr, *aligned;

	addr = mmap(NULL, 3 * bufsize, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return NULL;
	aligned = (char *)(((uintptr_t)addr + bufsize - 1) & ~(bufsize - 1));
	if (aligned != addr)
		munmap(addr, aligned - addr);
	munmap(aligned + bufsize, addr + 2 * bufsize - aligned);
	return aligned;
}

static bool map_large(struct buf *buf, size_t size, const char *path, char *why)
{
	size_t off;

	if (!size || size > bufsize)
		return because(why, "large folios of %zu bytes, a buffer has %zu",
			       size, bufsize);
	write_text(mthp_path, "never");
	write_text(pmd_path, "never");
	if (write_text(path, "madvise"))
		return because(why, "%s: %s", path, strerror(errno));
	buf->addr = map_aligned();
	if (!buf->addr || madvise(buf->addr, bufsize, MADV_HUGEPAGE))
		return because(why, "MADV_HUGEPAGE: %s", strerror(errno));
	memset(buf->addr, 0x5a, bufsize);
	for (off = 0; off < bufsize; off += size) {
		if (is_one_folio(buf->addr + off, size, 0))
			continue;
		return because(why, "no folio of %zu bytes at offset %zu of %zu",
			       size, off, bufsize);
	}
	return true;
}

/* A populated buffer of bufsize bytes, or false and why there is none. */
static bool buf_map(struct buf *buf, enum kind kind, char *why)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char text[32];
	int memfd;

	switch (kind) {
	case SMALL:
		buf->addr = map_aligned();
		if (!buf->addr)
			return because(why, "mmap: %s", strerror(errno));
		madvise(buf->addr, bufsize, MADV_NOHUGEPAGE);
		break;
	case MTHP:
		return map_large(buf, mthpsize, mthp_path, why);
	case THP:
		return map_large(buf, pmdsize, pmd_path, why);
	case HUGETLB:
		flags |= MAP_HUGETLB | __builtin_ctzl(bufsize) << MAP_HUGE_SHIFT;
		buf->addr = mmap(NULL, bufsize, PROT_READ | PROT_WRITE, flags, -1, 0);
		if (buf->addr == MAP_FAILED) {
			int err = errno;

			if (read_text(hugetlb_path, text, sizeof(text)))
				snprintf(text, sizeof(text), "none");
			text[strcspn(text, "\n")] = '\0';
			return because(why,
				       "hugetlb: %s, pages of %zu bytes: asked for %d, there are %s",
				       strerror(err), bufsize, NR_HUGEPAGES, text);
		}
		break;
	case SHMEM:
		memfd = memfd_create("pin_balance", 0);
		if (memfd < 0 || ftruncate(memfd, bufsize))
			return because(why, "memfd: %s", strerror(errno));
		buf->addr = mmap(NULL, bufsize, PROT_READ | PROT_WRITE, MAP_SHARED,
				 memfd, 0);
		close(memfd);
		if (buf->addr == MAP_FAILED)
			return because(why, "memfd: mmap: %s", strerror(errno));
		break;
	}
	memset(buf->addr, 0x5a, bufsize);
	return true;
}

/* ---- What the I/O goes to ----------------------------------------------- */

enum { VFAT, EXT4, EXT4_4K, BDEV, BDEV4K, NFS3, P9 };

static struct target targets[] = {
	[VFAT]	 = { "vfat", "vfat", { "mkfs.vfat", "-I" }, 512, "", "" },
	[EXT4]	 = { "ext4", "ext4", { "mkfs.ext4", "-F", "-q" }, 512, "", "" },
	[BDEV]	 = { "bdev", NULL, { NULL }, 512, "", "" },
	/* Blocks of a page: then the end of an I/O may have to be cut back. */
	[EXT4_4K] = { "ext4_4k", "ext4", { "mkfs.ext4", "-F", "-q" }, 4096, "", "" },
	[BDEV4K] = { "bdev4k", NULL, { NULL }, 4096, "", "" },
	[NFS3]	 = { .name = "nfs3", .env = "DIO_NFS3" },
	[P9]	 = { .name = "9p", .env = "DIO_9P" },
};

static bool target_open(const struct target *t, int *fd, char *why)
{
	if (t->why[0])
		return because(why, "%s: %s", t->name, t->why);
	*fd = open(t->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (*fd < 0)
		return because(why, "%s: O_DIRECT: %s", t->path, strerror(errno));
	return true;
}

/* ---- AIO and io_uring by system call ------------------------------------ */

static int aio_submit(aio_context_t ctx, int fd, int opcode, void *addr,
		      size_t len, off_t off)
{
	struct iocb cb = {
		.aio_lio_opcode = opcode,
		.aio_fildes = fd,
		.aio_buf = (uintptr_t)addr,
		.aio_nbytes = len,
		.aio_offset = off,
	};
	struct iocb *cbs[] = { &cb };

	return syscall(__NR_io_submit, ctx, 1, cbs);
}

/* The result of one asynchronous read or write, or a negative errno. */
static long aio_rw(int fd, int opcode, void *addr, size_t len)
{
	aio_context_t ctx = 0;
	struct io_event event;
	long ret = 0;

	if (syscall(__NR_io_setup, 1, &ctx))
		return -errno;
	if (aio_submit(ctx, fd, opcode, addr, len, 0) != 1 ||
	    syscall(__NR_io_getevents, ctx, 1, 1, &event, NULL) != 1)
		ret = -errno;
	else
		ret = event.res;
	syscall(__NR_io_destroy, ctx);
	return ret;
}

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	void *map;
	size_t map_len, sqes_len;
};

static int ring_open(struct ring *ring, unsigned int entries)
{
	struct io_uring_params p = { 0 };
	size_t sq, cq;
	char *map;

	ring->fd = syscall(__NR_io_uring_setup, entries, &p);
	if (ring->fd < 0)
		return -errno;

	/* One mapping for both rings: IORING_FEAT_SINGLE_MMAP, since v5.4. */
	sq = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	ring->map_len = sq > cq ? sq : cq;
	ring->sqes_len = p.sq_entries * sizeof(struct io_uring_sqe);
	map = mmap(NULL, ring->map_len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, ring->sqes_len, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	if (map == MAP_FAILED || ring->sqes == MAP_FAILED)
		return -errno;

	ring->map = map;
	ring->sq_tail = (unsigned int *)(map + p.sq_off.tail);
	ring->sq_mask = (unsigned int *)(map + p.sq_off.ring_mask);
	ring->sq_array = (unsigned int *)(map + p.sq_off.array);
	ring->cq_head = (unsigned int *)(map + p.cq_off.head);
	ring->cq_tail = (unsigned int *)(map + p.cq_off.tail);
	ring->cq_mask = (unsigned int *)(map + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(map + p.cq_off.cqes);
	return 0;
}

/* The mappings hold the ring as much as its descriptor does: drop both. */
static void ring_close(struct ring *ring)
{
	munmap(ring->map, ring->map_len);
	munmap(ring->sqes, ring->sqes_len);
	close(ring->fd);
}

static int ring_submit(struct ring *ring, int fd, int opcode, void *addr,
		       size_t len, off_t off)
{
	unsigned int tail = *ring->sq_tail, i = tail & *ring->sq_mask;

	ring->sqes[i] = (struct io_uring_sqe) {
		.opcode = opcode,
		.fd = fd,
		.addr = (uintptr_t)addr,
		.len = len,
		.off = off,
	};
	ring->sq_array[i] = i;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	return syscall(__NR_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0);
}

static long ring_wait(struct ring *ring)
{
	unsigned int head = *ring->cq_head;
	long res;

	while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
		if (syscall(__NR_io_uring_enter, ring->fd, 0, 1,
			    IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			return -errno;
	}
	res = ring->cqes[head & *ring->cq_mask].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return res;
}

static long ring_rw(struct ring *ring, int fd, int opcode, void *addr, size_t len)
{
	if (ring_submit(ring, fd, opcode, addr, len, 0) != 1)
		return -errno;
	return ring_wait(ring);
}

static int ring_register(struct ring *ring, unsigned int opcode, void *arg,
			 unsigned int nr)
{
	if (syscall(__NR_io_uring_register, ring->fd, opcode, arg, nr) < 0)
		return -errno;
	return 0;
}

static int ring_register_buf(struct ring *ring, void *addr, size_t len)
{
	struct iovec iov = { addr, len };

	return ring_register(ring, IORING_REGISTER_BUFFERS, &iov, 1);
}

#define SKIP_OR_ASSERT_RING(ring, entries) do {				\
	int _err = ring_open(ring, entries);				\
									\
	if (_err == -ENOSYS || _err == -EPERM)				\
		SKIP(return, "io_uring_setup: %s", strerror(-_err));	\
	ASSERT_EQ(0, _err);						\
} while (0)

/* ---- Children ----------------------------------------------------------- */

/*
 * Run @work in a child for good, and kill it with SIGKILL as soon as it has
 * taken @npages pins: it dies with pins in its hands. Returns false if it never
 * came that far.
 */
static bool kill_while_pinning(void (*work)(void *), void *arg,
			       const struct pins *before, long npages)
{
	long start = now_ms();
	bool reached = false;
	pid_t pid;

	pid = fork();
	if (!pid) {
		for (;;)
			work(arg);
	}
	while (pid > 0 && !reached && now_ms() - start < SETTLE_MS) {
		reached = pins_since(before).acquired >= npages;
		if (!reached)
			sleep_ms(1);
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return reached;
}

/* What the child passes to _exit(), -1 if it died of a signal. */
static int run_child(int (*work)(void *), void *arg)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid)
		_exit(work(arg));
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* A variant for every kind of page. */
#define VARIANT_KIND(fixture, k)					\
	FIXTURE_VARIANT_ADD(fixture, k) { .kind = k }

#define VARIANTS_KIND(fixture)						\
	VARIANT_KIND(fixture, SMALL);					\
	VARIANT_KIND(fixture, MTHP);					\
	VARIANT_KIND(fixture, THP);					\
	VARIANT_KIND(fixture, HUGETLB);					\
	VARIANT_KIND(fixture, SHMEM)

/* ---- Direct I/O: a device or file system, times a kind of page ---------- */

FIXTURE(direct_io)
{
	struct buf buf;
	struct pins before;
	int fd;
};

FIXTURE_VARIANT(direct_io)
{
	int target;
	enum kind kind;
};

#define VARIANT_TARGET_KIND(fixture, t, k)				\
	FIXTURE_VARIANT_ADD(fixture, t##_##k) { .target = t, .kind = k }

#define VARIANTS_DIRECT_IO(t)						\
	VARIANT_TARGET_KIND(direct_io, t, SMALL);			\
	VARIANT_TARGET_KIND(direct_io, t, MTHP);			\
	VARIANT_TARGET_KIND(direct_io, t, THP);				\
	VARIANT_TARGET_KIND(direct_io, t, HUGETLB);			\
	VARIANT_TARGET_KIND(direct_io, t, SHMEM)

VARIANTS_DIRECT_IO(VFAT);
VARIANTS_DIRECT_IO(EXT4);
VARIANTS_DIRECT_IO(BDEV);
VARIANTS_DIRECT_IO(NFS3);
VARIANTS_DIRECT_IO(P9);

FIXTURE_SETUP(direct_io)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!target_open(&targets[variant->target], &self->fd, why))
		SKIP(return, "%s", why);
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(direct_io)
{
}

/*
 * The path of a database: the buffer is pinned, sent, unpinned. fs/direct-io.c
 * holds a page up to three times over (in the request, as the page in hand, in
 * the bio) and must count each.
 */
TEST_F(direct_io, write_releases_what_it_pins)
{
	ASSERT_EQ((ssize_t)bufsize, pwrite(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* A read dirties the pages on its way out: another release path. */
TEST_F(direct_io, read_releases_what_it_pins)
{
	ASSERT_EQ((ssize_t)bufsize, pread(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

#define NSEGS	8

static void segments(struct buf *buf, struct iovec *iov)
{
	int i;

	for (i = 0; i < NSEGS; i++) {
		iov[i].iov_base = buf->addr + i * (bufsize / NSEGS);
		iov[i].iov_len = bufsize / NSEGS / 2;
	}
}

/* Segments that lie apart: each is pinned by a call of its own. */
TEST_F(direct_io, vectored_write_releases_what_it_pins)
{
	struct iovec iov[NSEGS];

	segments(&self->buf, iov);
	ASSERT_EQ((ssize_t)bufsize / 2, pwritev(self->fd, iov, NSEGS, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES / 2);
}

TEST_F(direct_io, vectored_read_releases_what_it_pins)
{
	struct iovec iov[NSEGS];

	segments(&self->buf, iov);
	ASSERT_EQ((ssize_t)bufsize / 2, preadv(self->fd, iov, NSEGS, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES / 2);
}

/*
 * Sector-sized segments that share pages: as many pins as segments, on few
 * pages, and adjacent ones may be joined in a bio.
 */
TEST_F(direct_io, segments_that_share_a_page_release_what_they_pin)
{
	struct iovec iov[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = self->buf.addr + i * 512;
		iov[i].iov_len = 512;
	}
	ASSERT_EQ(64 * 512, preadv(self->fd, iov, ARRAY_SIZE(iov), 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, ARRAY_SIZE(iov));
}

/* The pins are dropped by the completion, not by the submitter. */
TEST_F(direct_io, aio_write_releases_what_it_pins)
{
	long ret = aio_rw(self->fd, IOCB_CMD_PWRITE, self->buf.addr, bufsize);

	if (ret == -ENOSYS)
		SKIP(return, "io_setup: %s", strerror(ENOSYS));
	ASSERT_EQ((long)bufsize, ret);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

TEST_F(direct_io, aio_read_releases_what_it_pins)
{
	long ret = aio_rw(self->fd, IOCB_CMD_PREAD, self->buf.addr, bufsize);

	if (ret == -ENOSYS)
		SKIP(return, "io_setup: %s", strerror(ENOSYS));
	ASSERT_EQ((long)bufsize, ret);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* io_uring may issue twice, without and then with leave to sleep. */
TEST_F(direct_io, uring_write_releases_what_it_pins)
{
	struct ring ring;

	SKIP_OR_ASSERT_RING(&ring, 8);
	ASSERT_EQ((long)bufsize, ring_rw(&ring, self->fd, IORING_OP_WRITE,
					 self->buf.addr, bufsize));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
	ring_close(&ring);
}

TEST_F(direct_io, uring_read_releases_what_it_pins)
{
	struct ring ring;

	SKIP_OR_ASSERT_RING(&ring, 8);
	ASSERT_EQ((long)bufsize, ring_rw(&ring, self->fd, IORING_OP_READ,
					 self->buf.addr, bufsize));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
	ring_close(&ring);
}

/*
 * A registered buffer is pinned once, when it is registered; the I/O rides on
 * that and must neither pin nor unpin.
 */
TEST_F(direct_io, uring_fixed_io_pins_at_registration_only)
{
	struct pins registered, io;
	struct ring ring;

	SKIP_OR_ASSERT_RING(&ring, 8);
	ASSERT_EQ(0, ring_register_buf(&ring, self->buf.addr, bufsize));
	registered = pins_since(&self->before);
	EXPECT_GE(registered.acquired, (long)NPAGES);
	EXPECT_GT(registered.acquired, registered.released);

	ASSERT_EQ((long)bufsize, ring_rw(&ring, self->fd, IORING_OP_WRITE_FIXED,
					 self->buf.addr, bufsize));
	ASSERT_EQ((long)bufsize, ring_rw(&ring, self->fd, IORING_OP_READ_FIXED,
					 self->buf.addr, bufsize));
	sleep_ms(10);
	io = pins_since(&self->before);
	EXPECT_EQ(registered.acquired, io.acquired);
	EXPECT_EQ(registered.released, io.released);

	ASSERT_EQ(0, ring_register(&ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
	ring_close(&ring);
}

/* ---- Direct I/O that fails part way ------------------------------------- */

FIXTURE(failing_io)
{
	struct buf buf;
	struct pins before;
	int fd;
	off_t end;
};

FIXTURE_VARIANT(failing_io)
{
	int target;
	enum kind kind;
};

#define VARIANTS_FAILING_IO(t)						\
	VARIANT_TARGET_KIND(failing_io, t, SMALL);			\
	VARIANT_TARGET_KIND(failing_io, t, THP)

VARIANTS_FAILING_IO(VFAT);
VARIANTS_FAILING_IO(EXT4);
VARIANTS_FAILING_IO(BDEV);
VARIANTS_FAILING_IO(BDEV4K);
VARIANTS_FAILING_IO(NFS3);
VARIANTS_FAILING_IO(P9);

FIXTURE_SETUP(failing_io)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!target_open(&targets[variant->target], &self->fd, why))
		SKIP(return, "%s", why);
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->end = lseek(self->fd, 0, SEEK_END);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(failing_io)
{
}

/*
 * The last page of the buffer is not there. What was pinned before it is sent,
 * or given back; forgetting it leaks the pages.
 */
TEST_F(failing_io, read_into_unmapped_tail_balances)
{
	ASSERT_EQ(0, munmap(self->buf.addr + bufsize - pagesize, pagesize));
	EXPECT_GT((ssize_t)bufsize, pread(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 1);
}

/* fs/direct-io.c writes the zero page for the tail: that one has no pin. */
TEST_F(failing_io, write_from_unmapped_tail_balances)
{
	ASSERT_EQ(0, munmap(self->buf.addr + bufsize - pagesize, pagesize));
	EXPECT_GT((ssize_t)bufsize, pwrite(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 1);
}

TEST_F(failing_io, read_into_prot_none_tail_balances)
{
	ASSERT_EQ(0, mprotect(self->buf.addr + bufsize - pagesize, pagesize, PROT_NONE));
	EXPECT_GT((ssize_t)bufsize, pread(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 1);
}

TEST_F(failing_io, write_from_prot_none_tail_balances)
{
	ASSERT_EQ(0, mprotect(self->buf.addr + bufsize - pagesize, pagesize, PROT_NONE));
	EXPECT_GT((ssize_t)bufsize, pwrite(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 1);
}

/* Nothing there at all: nothing to pin, nothing to release. */
TEST_F(failing_io, unmapped_buffer_pins_nothing)
{
	ASSERT_EQ(0, munmap(self->buf.addr, bufsize));
	EXPECT_EQ(-1, pread(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, pwrite(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_NO_PINS(&self->before);
}

/* The kernel may not write here, so it must not pin for writing. */
TEST_F(failing_io, read_into_read_only_buffer_pins_nothing)
{
	ASSERT_EQ(0, mprotect(self->buf.addr, bufsize, PROT_READ));
	EXPECT_EQ(-1, pread(self->fd, self->buf.addr, bufsize, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_NO_PINS(&self->before);
}

/* The buffer reaches beyond the end of the file: pages pinned, never filled. */
TEST_F(failing_io, read_across_end_of_file_balances)
{
	off_t from = (self->end - bufsize / 2) & ~(off_t)4095;

	EXPECT_EQ(self->end - from, pread(self->fd, self->buf.addr, bufsize, from));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES / 2);
}

/* Whether there is something to be read only a server can tell. */
TEST_F(failing_io, read_behind_end_of_file_pins_nothing)
{
	off_t from = (self->end + 4095) & ~(off_t)4095;

	EXPECT_EQ(0, pread(self->fd, self->buf.addr, bufsize, from));
	if (targets[variant->target].env)
		EXPECT_PINNED_AND_RELEASED(&self->before, 0);
	else
		EXPECT_NO_PINS(&self->before);
}

#define SKIP_UNLESS_BLOCKS() do {					\
	if (targets[variant->target].env)				\
		SKIP(return, "%s: not a file of blocks, takes any alignment",	\
		     targets[variant->target].name);			\
} while (0)

TEST_F(failing_io, misaligned_length_pins_nothing)
{
	SKIP_UNLESS_BLOCKS();
	EXPECT_EQ(-1, pread(self->fd, self->buf.addr, 1000, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, pwrite(self->fd, self->buf.addr, 1000, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_NO_PINS(&self->before);
}

/*
 * The first segment is pinned by the time the second is found wanting;
 * fs/direct-io.c looks at all of them first.
 */
TEST_F(failing_io, misaligned_second_segment_balances)
{
	struct iovec iov[] = {
		{ self->buf.addr, pagesize },
		{ self->buf.addr + 2 * pagesize + 1, pagesize },
	};

	SKIP_UNLESS_BLOCKS();
	EXPECT_EQ(-1, preadv(self->fd, iov, 2, 0));
	EXPECT_EQ(EINVAL, errno);
	if (variant->target == VFAT)
		EXPECT_NO_PINS(&self->before);
	else
		EXPECT_PINNED_AND_RELEASED(&self->before, 1);
}

/* The last write but one is cut short for want of room, the last refused. */
TEST_F(failing_io, write_to_full_file_system_balances)
{
	char path[PATH_LEN + 8];
	ssize_t ret;
	off_t off;
	int fd;

	if (variant->target != EXT4)
		SKIP(return, "%s: no direct write can run out of room",
		     targets[variant->target].name);
	snprintf(path, sizeof(path), "%s.full", targets[EXT4].path);
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	ASSERT_LE(0, fd);
	for (off = 0; off < (off_t)IMAGE_SIZE; off += ret) {
		ret = pwrite(fd, self->buf.addr, bufsize, off);
		if (ret < (ssize_t)bufsize)
			break;
	}
	EXPECT_GT((off_t)IMAGE_SIZE, off);
	EXPECT_EQ(-1, pwrite(fd, self->buf.addr, bufsize, off + bufsize));
	EXPECT_EQ(ENOSPC, errno);
	close(fd);
	unlink(path);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

struct io_arg {
	struct buf *buf;
	int fd;
};

static void read_again(void *arg)
{
	struct io_arg *io = arg;

	if (pread(io->fd, io->buf->addr, bufsize, 0) < 0)
		_exit(1);
}

/* Killed in the middle of its I/O, the task still owes the release. */
TEST_F(failing_io, killed_in_a_read_balances)
{
	struct io_arg io = { &self->buf, self->fd };

	EXPECT_TRUE(kill_while_pinning(read_again, &io, &self->before, NPAGES));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

#define INFLIGHT	32

static int exit_with_aio(void *arg)
{
	size_t len = bufsize / INFLIGHT;
	struct io_arg *io = arg;
	aio_context_t ctx = 0;
	int i;

	if (syscall(__NR_io_setup, INFLIGHT, &ctx))
		return errno == ENOSYS ? KSFT_SKIP : 1;
	for (i = 0; i < INFLIGHT; i++)
		if (aio_submit(ctx, io->fd, IOCB_CMD_PREAD, io->buf->addr + i * len,
			       len, i * len) != 1)
			return 1;
	return 0;
}

/* Gone without a look at its events: the completions find no process. */
TEST_F(failing_io, exit_with_aio_outstanding_balances)
{
	struct io_arg io = { &self->buf, self->fd };
	int ret = run_child(exit_with_aio, &io);

	if (ret == KSFT_SKIP)
		SKIP(return, "io_setup: %s", strerror(ENOSYS));
	ASSERT_EQ(0, ret);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/*
 * The ring goes while its requests and its buffer are in use. The buffer was
 * pinned, and what the first request reads into; of the others some may be
 * cancelled before they pin anything.
 */
TEST_F(failing_io, ring_closed_with_io_outstanding_balances)
{
	size_t len = bufsize / INFLIGHT;
	struct ring ring;
	int i;

	SKIP_OR_ASSERT_RING(&ring, 2 * INFLIGHT);
	ASSERT_EQ(0, ring_register_buf(&ring, self->buf.addr, bufsize));
	ASSERT_EQ((long)len, ring_rw(&ring, self->fd, IORING_OP_READ,
				     self->buf.addr, len));
	for (i = 0; i < INFLIGHT; i++) {
		ASSERT_EQ(1, ring_submit(&ring, self->fd, IORING_OP_READ,
					 self->buf.addr + i * len, len, i * len));
		ASSERT_EQ(1, ring_submit(&ring, self->fd, IORING_OP_READ_FIXED,
					 self->buf.addr + i * len, len, i * len));
	}
	ring_close(&ring);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES + len / pagesize);
}

/* ---- Direct I/O that is cut back to whole blocks ------------------------ */

FIXTURE(cut_io)
{
	struct buf buf;
	struct pins before;
	int fd;
};

FIXTURE_VARIANT(cut_io)
{
	int target;
	enum kind kind;
};

VARIANT_TARGET_KIND(cut_io, VFAT, THP);
VARIANT_TARGET_KIND(cut_io, EXT4, THP);
VARIANT_TARGET_KIND(cut_io, EXT4_4K, SMALL);
VARIANT_TARGET_KIND(cut_io, EXT4_4K, THP);
VARIANT_TARGET_KIND(cut_io, BDEV, THP);
VARIANT_TARGET_KIND(cut_io, BDEV4K, SMALL);
VARIANT_TARGET_KIND(cut_io, BDEV4K, MTHP);
VARIANT_TARGET_KIND(cut_io, BDEV4K, THP);
VARIANT_TARGET_KIND(cut_io, BDEV4K, HUGETLB);

FIXTURE_SETUP(cut_io)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!target_open(&targets[variant->target], &self->fd, why))
		SKIP(return, "%s", why);
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(cut_io)
{
}

/*
 * The first segment ends a sector into its second page, the second segment is
 * not there. A device with blocks of a page cuts the I/O back to one page, and
 * has to release the other: in a large folio both are one vector of the bio.
 */
TEST_F(cut_io, shortened_vector_releases_what_is_cut_off)
{
	struct iovec iov[] = {
		{ self->buf.addr, pagesize + 512 },
		{ NULL, pagesize - 512 },
	};

	EXPECT_GT((ssize_t)(2 * pagesize), preadv(self->fd, iov, 2, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 2);
}

/* Less than a block, on two pages: the vector goes as a whole, with both. */
TEST_F(cut_io, dropped_vector_releases_what_is_cut_off)
{
	struct iovec iov[] = {
		{ self->buf.addr + pagesize - 512, 1024 },
		{ NULL, pagesize - 1024 },
	};

	EXPECT_GT((ssize_t)pagesize, preadv(self->fd, iov, 2, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 2);
}

/*
 * The same without any failure: more segments than a bio has vectors, so the
 * bio is full in the middle of a block and is cut back to its start. Its last
 * vector goes, a sector long, and the second page of the one before.
 */
TEST_F(cut_io, full_bio_releases_what_is_cut_off)
{
	struct iovec iov[BIO_MAX_VECS + 16];
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = self->buf.addr + i * 2 % (NPAGES - 2) * pagesize;
		iov[i].iov_len = i ? pagesize + 512 : pagesize;
		if (i == BIO_MAX_VECS - 1)
			iov[i].iov_len = 512;
		if (i == ARRAY_SIZE(iov) - 1)
			iov[i].iov_len = pagesize - len % pagesize;
		len += iov[i].iov_len;
	}
	EXPECT_EQ((ssize_t)len, preadv(self->fd, iov, ARRAY_SIZE(iov), 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 2 * BIO_MAX_VECS);
}

/* ---- process_vm_readv() and process_vm_writev() ------------------------- */

FIXTURE(process_vm)
{
	struct buf buf;
	char *local;
	struct iovec liov, riov;
	struct pins before;
};

FIXTURE_VARIANT(process_vm)
{
	enum kind kind;
};

VARIANTS_KIND(process_vm);

FIXTURE_SETUP(process_vm)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->local = calloc(1, bufsize);
	ASSERT_NE(NULL, self->local);
	self->liov = (struct iovec) { self->local, bufsize };
	self->riov = (struct iovec) { self->buf.addr, bufsize };
	if (process_vm_readv(getpid(), &self->liov, 1, &self->riov, 0, 0) < 0 &&
	    errno == ENOSYS)
		SKIP(return, "process_vm_readv: %s", strerror(ENOSYS));
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(process_vm)
{
	free(self->local);
}

TEST_F(process_vm, readv_releases_what_it_pins)
{
	ASSERT_EQ((ssize_t)bufsize, process_vm_readv(getpid(), &self->liov, 1,
						     &self->riov, 1, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* Dirties the pages on release: unpin_user_pages_dirty_lock(). */
TEST_F(process_vm, writev_releases_what_it_pins)
{
	ASSERT_EQ((ssize_t)bufsize, process_vm_writev(getpid(), &self->liov, 1,
						      &self->riov, 1, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* Remote pages pinned, the local side faults: the copy stops half way. */
TEST_F(process_vm, local_fault_balances)
{
	self->liov.iov_base = map_aligned();
	ASSERT_NE(NULL, self->liov.iov_base);
	ASSERT_EQ(0, mprotect((char *)self->liov.iov_base + bufsize / 2,
			      bufsize / 2, PROT_NONE));
	EXPECT_GT((ssize_t)bufsize, process_vm_readv(getpid(), &self->liov, 1,
						     &self->riov, 1, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES / 2);
}

/* The remote side ends early. */
TEST_F(process_vm, remote_unmapped_tail_balances)
{
	if (variant->kind == HUGETLB)
		SKIP(return, "a part of a hugetlb page, %zu of %zu bytes, cannot be unmapped",
		     pagesize, bufsize);
	ASSERT_EQ(0, munmap(self->buf.addr + bufsize - pagesize, pagesize));
	EXPECT_GT((ssize_t)bufsize, process_vm_readv(getpid(), &self->liov, 1,
						     &self->riov, 1, 0));
	EXPECT_GT((ssize_t)bufsize, process_vm_writev(getpid(), &self->liov, 1,
						      &self->riov, 1, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* ---- The interfaces themselves: mm/gup_test.c --------------------------- */

static int gup(int fd, unsigned long cmd, void *addr, size_t size,
	       unsigned int nr_pages_per_call, unsigned int flags)
{
	struct gup_test gup = {
		.addr = (uintptr_t)addr,
		.size = size,
		.nr_pages_per_call = nr_pages_per_call,
		.gup_flags = flags,
	};

	return ioctl(fd, cmd, &gup);
}

FIXTURE(gup)
{
	struct buf buf;
	struct pins before;
	int fd;
};

FIXTURE_VARIANT(gup)
{
	enum kind kind;
	unsigned int per_call;
};

#define VARIANT_GUP(k)							\
	FIXTURE_VARIANT_ADD(gup, k##_1_a_call) { k, 1 };		\
	FIXTURE_VARIANT_ADD(gup, k##_512_a_call) { k, NPAGES }

VARIANT_GUP(SMALL);
VARIANT_GUP(MTHP);
VARIANT_GUP(THP);
VARIANT_GUP(HUGETLB);
VARIANT_GUP(SHMEM);

FIXTURE_SETUP(gup)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	self->fd = gup_open(why);
	if (self->fd < 0)
		SKIP(return, "%s", why);
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(gup)
{
}

/* The page table walk that takes no lock, then the one that does. */
#define TEST_GUP_PINS(name, cmd, flags)					\
TEST_F(gup, name)							\
{									\
	ASSERT_EQ(0, gup(self->fd, cmd, self->buf.addr, bufsize,	\
			 variant->per_call, flags));			\
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);		\
}

TEST_GUP_PINS(pin_fast_to_read_releases_what_it_pins, PIN_FAST_BENCHMARK, 0)
TEST_GUP_PINS(pin_fast_to_write_releases_what_it_pins, PIN_FAST_BENCHMARK, FOLL_WRITE)
TEST_GUP_PINS(pin_to_read_releases_what_it_pins, PIN_BASIC_TEST, 0)
TEST_GUP_PINS(pin_to_write_releases_what_it_pins, PIN_BASIC_TEST, FOLL_WRITE)
/* A long-term pin may find a page in the wrong place, and pin again elsewhere. */
TEST_GUP_PINS(longterm_pin_to_read_releases_what_it_pins, PIN_LONGTERM_BENCHMARK, 0)
TEST_GUP_PINS(longterm_pin_to_write_releases_what_it_pins, PIN_LONGTERM_BENCHMARK,
	      FOLL_WRITE)

/* A plain reference is not a pin. */
TEST_F(gup, get_moves_neither_counter)
{
	ASSERT_EQ(0, gup(self->fd, GUP_FAST_BENCHMARK, self->buf.addr, bufsize,
			 variant->per_call, 0));
	ASSERT_EQ(0, gup(self->fd, GUP_FAST_BENCHMARK, self->buf.addr, bufsize,
			 variant->per_call, FOLL_WRITE));
	ASSERT_EQ(0, gup(self->fd, GUP_BASIC_TEST, self->buf.addr, bufsize,
			 variant->per_call, 0));
	ASSERT_EQ(0, gup(self->fd, GUP_BASIC_TEST, self->buf.addr, bufsize,
			 variant->per_call, FOLL_WRITE));
	EXPECT_NO_PINS(&self->before);
}

/* Pins up to the hole, then gives up: those must be found again. */
TEST_F(gup, pin_up_to_a_hole_balances)
{
	char *hole = self->buf.addr + bufsize - pagesize;

	if (variant->kind == HUGETLB)
		SKIP(return, "a part of a hugetlb page, %zu of %zu bytes, cannot be unmapped",
		     pagesize, bufsize);
	ASSERT_EQ(0, munmap(hole, pagesize));
	gup(self->fd, PIN_FAST_BENCHMARK, self->buf.addr, bufsize,
	    variant->per_call, FOLL_WRITE);
	gup(self->fd, PIN_BASIC_TEST, self->buf.addr, bufsize,
	    variant->per_call, FOLL_WRITE);
	gup(self->fd, PIN_LONGTERM_BENCHMARK, self->buf.addr, bufsize,
	    variant->per_call, FOLL_WRITE);
	EXPECT_PINNED_AND_RELEASED(&self->before, 3 * (NPAGES - 1));
}

/* ---- Pins that are held ------------------------------------------------- */

FIXTURE(held_pin)
{
	struct buf buf;
	struct pins before;
	int fd;
};

FIXTURE_VARIANT(held_pin)
{
	enum kind kind;
};

VARIANTS_KIND(held_pin);

FIXTURE_SETUP(held_pin)
{
	struct pin_longterm_test args = {
		.flags = PIN_LONGTERM_TEST_FLAG_USE_WRITE |
			 PIN_LONGTERM_TEST_FLAG_USE_FAST,
	};
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	self->fd = gup_open(why);
	if (self->fd < 0)
		SKIP(return, "%s", why);
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
	args.addr = (uintptr_t)self->buf.addr;
	args.size = bufsize;
	ASSERT_EQ(0, ioctl(self->fd, PIN_LONGTERM_TEST_START, &args));
	EXPECT_PINS_HELD(&self->before);
}

FIXTURE_TEARDOWN(held_pin)
{
}

TEST_F(held_pin, stop_releases)
{
	ASSERT_EQ(0, ioctl(self->fd, PIN_LONGTERM_TEST_STOP));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* The last reference to the file drops the pins. */
TEST_F(held_pin, close_releases)
{
	ASSERT_EQ(0, close(self->fd));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* No page table leads to the pages any more: the pin is all they have. */
TEST_F(held_pin, unmapped_while_pinned_balances)
{
	ASSERT_EQ(0, munmap(self->buf.addr, bufsize));
	EXPECT_PINS_HELD(&self->before);
	ASSERT_EQ(0, ioctl(self->fd, PIN_LONGTERM_TEST_STOP));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* A large folio that is mapped in part is to be split, and is pinned. */
TEST_F(held_pin, unmapped_in_part_while_pinned_balances)
{
	if (variant->kind == HUGETLB)
		SKIP(return, "a part of a hugetlb page, %zu of %zu bytes, cannot be unmapped",
		     bufsize / 2, bufsize);
	ASSERT_EQ(0, munmap(self->buf.addr + bufsize / 4, bufsize / 2));
	ASSERT_EQ(0, ioctl(self->fd, PIN_LONGTERM_TEST_STOP));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

static int write_and_exit(void *arg)
{
	memset(arg, 1, bufsize);
	return 0;
}

/* fork() copies what is pinned; the copies are not pinned. */
TEST_F(held_pin, fork_while_pinned_balances)
{
	ASSERT_EQ(0, run_child(write_and_exit, self->buf.addr));
	ASSERT_EQ(0, ioctl(self->fd, PIN_LONGTERM_TEST_STOP));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* A second range cannot be started on the same file; nothing may be lost. */
TEST_F(held_pin, refused_second_pin_balances)
{
	struct pin_longterm_test args = {
		.addr = (uintptr_t)self->buf.addr,
		.size = bufsize,
	};

	ASSERT_EQ(-1, ioctl(self->fd, PIN_LONGTERM_TEST_START, &args));
	ASSERT_EQ(0, ioctl(self->fd, PIN_LONGTERM_TEST_STOP));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* ---- io_uring: memory that stays registered ----------------------------- */

FIXTURE(uring)
{
	struct buf buf;
	struct pins before;
	struct ring ring;
};

FIXTURE_VARIANT(uring)
{
	enum kind kind;
};

VARIANTS_KIND(uring);

FIXTURE_SETUP(uring)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	SKIP_OR_ASSERT_RING(&self->ring, 8);
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(uring)
{
}

/*
 * Of a large folio the ring keeps one pin and gives back the others at once:
 * what it counts then must fit what it counts at the end.
 */
TEST_F(uring, unregistered_buffer_releases_what_it_pins)
{
	ASSERT_EQ(0, ring_register_buf(&self->ring, self->buf.addr, bufsize));
	EXPECT_PINS_HELD(&self->before);
	ASSERT_EQ(0, ring_register(&self->ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* Starts and ends inside of folios: head, middle and tail differ. */
TEST_F(uring, buffer_off_folio_bounds_releases_what_it_pins)
{
	ASSERT_EQ(0, ring_register_buf(&self->ring, self->buf.addr + 3 * pagesize + 512,
				       bufsize - 8 * pagesize));
	EXPECT_PINS_HELD(&self->before);
	ASSERT_EQ(0, ring_register(&self->ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES - 7);
}

TEST_F(uring, closed_ring_releases_its_buffer)
{
	ASSERT_EQ(0, ring_register_buf(&self->ring, self->buf.addr, bufsize));
	EXPECT_PINS_HELD(&self->before);
	ring_close(&self->ring);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* A second buffer in the place of the first. */
TEST_F(uring, replaced_buffer_releases_what_it_pinned)
{
	struct iovec iov = { self->buf.addr, bufsize / 2 };
	struct io_uring_rsrc_update2 update = {
		.data = (uintptr_t)&iov,
		.nr = 1,
	};

	ASSERT_EQ(0, ring_register_buf(&self->ring, self->buf.addr, bufsize));
	ASSERT_LE(0, ring_register(&self->ring, IORING_REGISTER_BUFFERS_UPDATE,
				   &update, sizeof(update)));
	EXPECT_PINS_HELD(&self->before);
	ASSERT_EQ(0, ring_register(&self->ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES + NPAGES / 2);
}

/* Two rings, one set of pins: the last to go releases it. */
TEST_F(uring, cloned_buffer_is_pinned_once)
{
	struct io_uring_clone_buffers clone = { .src_fd = self->ring.fd };
	struct pins registered, cloned;
	struct ring other;
	int err;

	ASSERT_EQ(0, ring_open(&other, 8));
	ASSERT_EQ(0, ring_register_buf(&self->ring, self->buf.addr, bufsize));
	registered = pins_since(&self->before);
	err = ring_register(&other, IORING_REGISTER_CLONE_BUFFERS, &clone, 1);
	if (err == -EINVAL)
		SKIP(return, "IORING_REGISTER_CLONE_BUFFERS: %s", strerror(-err));
	ASSERT_EQ(0, err);
	cloned = pins_since(&self->before);
	EXPECT_EQ(registered.acquired, cloned.acquired);
	EXPECT_EQ(registered.released, cloned.released);
	ring_close(&self->ring);
	sleep_ms(20);
	EXPECT_PINS_HELD(&self->before);
	ring_close(&other);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* A request that never ends holds the buffer: closing the ring cancels it. */
TEST_F(uring, ring_closed_with_request_outstanding_balances)
{
	int pipefd[2];

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, ring_register_buf(&self->ring, self->buf.addr, bufsize));
	ASSERT_EQ(1, ring_submit(&self->ring, pipefd[0], IORING_OP_READ_FIXED,
				 self->buf.addr, pagesize, 0));
	ASSERT_EQ(0, ring_register(&self->ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	EXPECT_PINS_HELD(&self->before);
	ring_close(&self->ring);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* Refused for what it lacks, after the rest was pinned. */
TEST_F(uring, unmapped_tail_is_refused_and_balances)
{
	if (variant->kind == HUGETLB)
		SKIP(return, "a part of a hugetlb page, %zu of %zu bytes, cannot be unmapped",
		     pagesize, bufsize);
	ASSERT_EQ(0, munmap(self->buf.addr + bufsize - pagesize, pagesize));
	EXPECT_EQ(-EFAULT, ring_register_buf(&self->ring, self->buf.addr, bufsize));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES - 1);
}

/* The first of two is registered when the second is refused: both must go. */
TEST_F(uring, refused_second_buffer_balances)
{
	struct iovec iov[] = {
		{ self->buf.addr, bufsize },
		{ NULL, pagesize },
	};

	EXPECT_EQ(-EFAULT, ring_register(&self->ring, IORING_REGISTER_BUFFERS, iov, 2));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* Pinned and, if large, coalesced: only then is RLIMIT_MEMLOCK looked at. */
static int register_beyond_memlock(void *arg)
{
	struct rlimit limit = { 16 * pagesize, 16 * pagesize };
	enum kind *kind = arg;
	char why[WHY_LEN];
	struct ring ring;
	struct buf buf;

	if (!buf_map(&buf, *kind, why) || setrlimit(RLIMIT_MEMLOCK, &limit) ||
	    setuid(65534))
		return KSFT_FAIL;
	if (ring_open(&ring, 1))
		return KSFT_SKIP;
	if (ring_register_buf(&ring, buf.addr, bufsize) != -ENOMEM)
		return KSFT_FAIL;
	return KSFT_PASS;
}

TEST_F(uring, refused_by_memlock_limit_balances)
{
	enum kind kind = variant->kind;
	int ret = run_child(register_beyond_memlock, &kind);

	if (ret == KSFT_SKIP)
		SKIP(return, "io_uring_setup: not for an unprivileged user");
	EXPECT_EQ(KSFT_PASS, ret);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* The ring itself in memory of the user. */
TEST_F(uring, ring_in_user_memory_releases_what_it_pins)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_NO_MMAP,
		.sq_off.user_addr = (uintptr_t)self->buf.addr,
		.cq_off.user_addr = (uintptr_t)self->buf.addr + bufsize / 2,
	};
	int fd;

	fd = syscall(__NR_io_uring_setup, 256, &p);
	ASSERT_LE(0, fd);
	EXPECT_PINS_HELD(&self->before);
	close(fd);
	EXPECT_PINNED_AND_RELEASED(&self->before, 2);
}

/* Provided buffers, their ring in memory of the user. */
TEST_F(uring, buffer_ring_in_user_memory_releases_what_it_pins)
{
	struct io_uring_buf_reg reg = {
		.ring_addr = (uintptr_t)self->buf.addr,
		.ring_entries = 4 * pagesize / sizeof(struct io_uring_buf),
	};

	ASSERT_EQ(0, ring_register(&self->ring, IORING_REGISTER_PBUF_RING, &reg, 1));
	EXPECT_PINS_HELD(&self->before);
	ASSERT_EQ(0, ring_register(&self->ring, IORING_UNREGISTER_PBUF_RING, &reg, 1));
	EXPECT_PINNED_AND_RELEASED(&self->before, 4);
}

TEST_F(uring, memory_region_releases_what_it_pins)
{
	struct io_uring_region_desc region = {
		.user_addr = (uintptr_t)self->buf.addr,
		.size = bufsize,
		.flags = IORING_MEM_REGION_TYPE_USER,
	};
	struct io_uring_mem_region_reg reg = {
		.region_uptr = (uintptr_t)&region,
	};
	int err;

	err = ring_register(&self->ring, IORING_REGISTER_MEM_REGION, &reg, 1);
	if (err == -EINVAL)
		SKIP(return, "IORING_REGISTER_MEM_REGION: %s", strerror(-err));
	ASSERT_EQ(0, err);
	EXPECT_PINS_HELD(&self->before);
	ring_close(&self->ring);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* ---- Other subsystems --------------------------------------------------- */

FIXTURE(subsystem)
{
	struct buf buf;
	struct pins before;
};

FIXTURE_VARIANT(subsystem)
{
	enum kind kind;
};

VARIANTS_KIND(subsystem);

FIXTURE_SETUP(subsystem)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	if (!buf_map(&self->buf, variant->kind, why))
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(subsystem)
{
}

static int hash_open(char *why)
{
	struct sockaddr_alg sa = {
		.salg_family = AF_ALG,
		.salg_type = "hash",
		.salg_name = "sha256",
	};
	int fd, op = -1;

	fd = socket(AF_ALG, SOCK_SEQPACKET, 0);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		op = accept(fd, NULL, 0);
	if (op < 0)
		because(why, "AF_ALG, sha256: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return op;
}

/* crypto/algif_hash.c reads the data where it is. */
TEST_F(subsystem, hash_socket_releases_what_it_pins)
{
	char why[WHY_LEN];
	int fd;

	fd = hash_open(why);
	if (fd < 0)
		SKIP(return, "%s", why);
	ASSERT_EQ((ssize_t)bufsize, send(fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
	close(fd);
}

TEST_F(subsystem, hash_socket_with_unmapped_tail_balances)
{
	char why[WHY_LEN];
	int fd;

	if (variant->kind == HUGETLB)
		SKIP(return, "a part of a hugetlb page, %zu of %zu bytes, cannot be unmapped",
		     pagesize, bufsize);
	fd = hash_open(why);
	if (fd < 0)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, munmap(self->buf.addr + bufsize - pagesize, pagesize));
	EXPECT_GT((ssize_t)bufsize, send(fd, self->buf.addr, bufsize, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 1);
	close(fd);
}

/* Packet memory of an AF_XDP socket, held until the socket goes. */
TEST_F(subsystem, xdp_umem_releases_what_it_pins)
{
	struct xdp_umem_reg reg = {
		.addr = (uintptr_t)self->buf.addr,
		.len = bufsize,
		.chunk_size = 2048,
	};
	int fd;

	fd = socket(AF_XDP, SOCK_RAW, 0);
	if (fd < 0)
		SKIP(return, "AF_XDP: %s", strerror(errno));
	ASSERT_EQ(0, setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)));
	EXPECT_PINS_HELD(&self->before);
	close(fd);
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

/* The pipe gets plain references: readers of it may keep them for ever. */
TEST_F(subsystem, vmsplice_moves_neither_counter)
{
	struct iovec iov = { self->buf.addr, 8 * pagesize };
	int pipefd[2];

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ((ssize_t)iov.iov_len, vmsplice(pipefd[1], &iov, 1, 0));
	EXPECT_NO_PINS(&self->before);
	close(pipefd[0]);
	close(pipefd[1]);
	EXPECT_NO_PINS(&self->before);
}

/* So does a socket buffer. */
TEST_F(subsystem, msg_zerocopy_moves_neither_counter)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(sa);
	long start = now_ms();
	int rx, tx, one = 1;

	rx = socket(AF_INET, SOCK_DGRAM, 0);
	tx = socket(AF_INET, SOCK_DGRAM, 0);
	if (rx < 0 || tx < 0)
		SKIP(return, "AF_INET: %s", strerror(errno));
	if (bind(rx, (struct sockaddr *)&sa, sizeof(sa)) ||
	    getsockname(rx, (struct sockaddr *)&sa, &len) ||
	    connect(tx, (struct sockaddr *)&sa, sizeof(sa)))
		SKIP(return, "127.0.0.1: %s (is lo up?)", strerror(errno));
	ASSERT_EQ(0, setsockopt(tx, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)));
	ASSERT_EQ(32768, send(tx, self->buf.addr, 32768, MSG_ZEROCOPY));
	EXPECT_NO_PINS(&self->before);
	/* A report comes back only if the pages themselves were sent. */
	while (recv(tx, &one, sizeof(one), MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		ASSERT_EQ(EAGAIN, errno);
		ASSERT_GT(SETTLE_MS, now_ms() - start);
		sleep_ms(1);
	}
	close(tx);
	close(rx);
	EXPECT_NO_PINS(&self->before);
}

/* What is written to is pinned, be it by a copy. */
TEST_F(subsystem, proc_mem_write_releases_what_it_pins)
{
	char *copy = malloc(bufsize);
	int fd;

	ASSERT_NE(NULL, copy);
	memset(copy, 0xa5, bufsize);
	fd = open("/proc/self/mem", O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ((ssize_t)bufsize, pwrite(fd, copy, bufsize,
					   (off_t)(uintptr_t)self->buf.addr));
	EXPECT_EQ(0, memcmp(copy, self->buf.addr, bufsize));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
	close(fd);
	free(copy);
}

/* A look at another's memory: get_user_pages_remote(). */
TEST_F(subsystem, proc_mem_moves_neither_counter)
{
	char *copy = malloc(bufsize);
	int fd;

	ASSERT_NE(NULL, copy);
	fd = open("/proc/self/mem", O_RDONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ((ssize_t)bufsize, pread(fd, copy, bufsize,
					  (off_t)(uintptr_t)self->buf.addr));
	EXPECT_NO_PINS(&self->before);
	close(fd);
	free(copy);
}

/* ---- udmabuf: memfd_pin_folios() ---------------------------------------- */

FIXTURE(udmabuf)
{
	struct udmabuf_create create;
	struct pins before;
	int dev;
};

FIXTURE_VARIANT(udmabuf)
{
	bool hugetlb;
};

FIXTURE_VARIANT_ADD(udmabuf, SHMEM) { .hugetlb = false };
FIXTURE_VARIANT_ADD(udmabuf, HUGETLB) { .hugetlb = true };

FIXTURE_SETUP(udmabuf)
{
	unsigned int flags = MFD_ALLOW_SEALING;
	int memfd;

	SKIP_UNLESS_COUNTED();
	self->dev = open("/dev/udmabuf", O_RDWR);
	if (self->dev < 0)
		SKIP(return, "/dev/udmabuf: %s", strerror(errno));
	if (variant->hugetlb)
		flags |= MFD_HUGETLB | __builtin_ctzl(bufsize) << MFD_HUGE_SHIFT;
	memfd = memfd_create("pin_balance", flags);
	if (memfd < 0 || ftruncate(memfd, 2 * bufsize))
		SKIP(return, "memfd, flags %#x: %s", flags, strerror(errno));
	ASSERT_EQ(0, fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	self->create.memfd = memfd;
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(udmabuf)
{
}

/* It pins folios, not pages, and in any number of lists. */
TEST_F(udmabuf, buffer_releases_what_it_pins)
{
	int fd;

	self->create.size = bufsize;
	fd = ioctl(self->dev, UDMABUF_CREATE, &self->create);
	if (fd < 0 && variant->hugetlb)
		SKIP(return, "hugetlb: UDMABUF_CREATE: %s", strerror(errno));
	ASSERT_LE(0, fd);
	EXPECT_PINS_HELD(&self->before);
	close(fd);
	EXPECT_PINNED_AND_RELEASED(&self->before, variant->hugetlb ? 1 : NPAGES);
}

/* The first item is pinned when the second is found to reach too far. */
TEST_F(udmabuf, refused_second_item_balances)
{
	struct {
		struct udmabuf_create_list head;
		struct udmabuf_create_item items[2];
	} list = {
		.head.count = 2,
		.items = {
			{ self->create.memfd, 0, 0, bufsize },
			{ self->create.memfd, 0, bufsize, 2 * bufsize },
		},
	};

	ASSERT_EQ(-1, ioctl(self->dev, UDMABUF_CREATE_LIST, &list));
	EXPECT_PINNED_AND_RELEASED(&self->before, variant->hugetlb ? 1 : NPAGES);
}

/* ---- The zero page: never pinned ---------------------------------------- */

FIXTURE(zero_page)
{
	char *addr;
	struct pins before;
};

FIXTURE_SETUP(zero_page)
{
	unsigned long i;

	SKIP_UNLESS_COUNTED();
	self->addr = map_aligned();
	ASSERT_NE(NULL, self->addr);
	madvise(self->addr, bufsize, MADV_NOHUGEPAGE);
	for (i = 0; i < NPAGES; i++)
		ASSERT_EQ(0, ((volatile char *)self->addr)[i * pagesize]);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(zero_page)
{
}

/*
 * One page, mapped everywhere, never freed: it is handed out without a pin, and
 * whoever releases it must know. Counted on one side only, the sum would be off
 * by every read of fresh memory. (The other commands of gup_test warn of a page
 * that is not pinned, this one does not; it is asked to dump no page.)
 */
TEST_F(zero_page, pinned_to_read_moves_neither_counter)
{
	struct gup_test pin = {
		.addr = (uintptr_t)self->addr,
		.size = bufsize,
		.nr_pages_per_call = NPAGES,
		.test_flags = GUP_TEST_FLAG_DUMP_PAGES_USE_PIN,
	};
	char why[WHY_LEN];
	int fd;

	fd = gup_open(why);
	if (fd < 0)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, ioctl(fd, DUMP_USER_PAGES_TEST, &pin));
	EXPECT_NO_PINS(&self->before);
}

/* For the long term a private mapping gets pages of its own, even to read. */
TEST_F(zero_page, pinned_longterm_is_replaced_and_pinned)
{
	char why[WHY_LEN];
	int fd;

	fd = gup_open(why);
	if (fd < 0)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, gup(fd, PIN_LONGTERM_BENCHMARK, self->addr, bufsize, NPAGES, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

TEST_F(zero_page, pinned_to_write_is_replaced_and_pinned)
{
	char why[WHY_LEN];
	int fd;

	fd = gup_open(why);
	if (fd < 0)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, gup(fd, PIN_FAST_BENCHMARK, self->addr, bufsize, NPAGES, FOLL_WRITE));
	EXPECT_PINNED_AND_RELEASED(&self->before, NPAGES);
}

TEST_F(zero_page, process_vm_readv_moves_neither_counter)
{
	char *local = calloc(1, bufsize);
	struct iovec liov = { local, bufsize }, riov = { self->addr, bufsize };
	ssize_t ret;

	ASSERT_NE(NULL, local);
	ret = process_vm_readv(getpid(), &liov, 1, &riov, 1, 0);
	if (ret < 0 && errno == ENOSYS)
		SKIP(return, "process_vm_readv: %s", strerror(errno));
	ASSERT_EQ((ssize_t)bufsize, ret);
	EXPECT_NO_PINS(&self->before);
	free(local);
}

#define TEST_ZERO_PAGE_WRITE(name, target)				\
TEST_F(zero_page, name)							\
{									\
	char why[WHY_LEN];						\
	int fd;								\
									\
	if (!target_open(&targets[target], &fd, why))			\
		SKIP(return, "%s", why);				\
	ASSERT_EQ((ssize_t)bufsize, pwrite(fd, self->addr, bufsize, 0));	\
	EXPECT_NO_PINS(&self->before);					\
}

/* The bio holds the zero page many times over, and releases it as often. */
TEST_ZERO_PAGE_WRITE(written_to_vfat_moves_neither_counter, VFAT)
TEST_ZERO_PAGE_WRITE(written_to_ext4_moves_neither_counter, EXT4)
TEST_ZERO_PAGE_WRITE(written_to_bdev_moves_neither_counter, BDEV)

/* Pinned or not is the kernel's choice for the huge one, as long as it adds up. */
TEST_F(zero_page, huge_zero_page_balances)
{
	char why[WHY_LEN], *addr;
	int fd;

	if (!pmdsize || pmdsize > bufsize)
		SKIP(return, "a PMD maps %zu bytes, a buffer has %zu", pmdsize, bufsize);
	write_text(mthp_path, "never");
	if (write_text(pmd_path, "madvise"))
		SKIP(return, "%s: %s", pmd_path, strerror(errno));
	fd = gup_open(why);
	if (fd < 0)
		SKIP(return, "%s", why);
	addr = map_aligned();
	ASSERT_NE(NULL, addr);
	ASSERT_EQ(0, madvise(addr, bufsize, MADV_HUGEPAGE));
	ASSERT_EQ(0, *(volatile char *)addr);
	if (!is_one_folio(addr, pmdsize, 1 << KPF_ZERO_PAGE))
		SKIP(return, "no huge zero page, see %s/use_zero_page", THP_DIR);
	ASSERT_EQ(0, gup(fd, PIN_FAST_BENCHMARK, addr, bufsize, NPAGES, 0));
	ASSERT_EQ(0, gup(fd, PIN_BASIC_TEST, addr, bufsize, 1, 0));
	ASSERT_EQ(0, gup(fd, PIN_LONGTERM_BENCHMARK, addr, bufsize, NPAGES, 0));
	EXPECT_PINNED_AND_RELEASED(&self->before, 0);
}

/* ---- Killed while pinning ----------------------------------------------- */

FIXTURE(killed)
{
	struct pins before;
	int fd;
};

FIXTURE_SETUP(killed)
{
	char why[WHY_LEN];

	SKIP_UNLESS_COUNTED();
	self->fd = gup_open(why);
	if (self->fd < 0)
		SKIP(return, "%s", why);
	self->before = pins_at_rest();
}

FIXTURE_TEARDOWN(killed)
{
}

#define BIG	(16 * bufsize)

struct gup_arg {
	unsigned long cmd;
	int fd;
};

static void pin_fresh_memory(void *arg)
{
	struct gup_arg *g = arg;
	void *addr;

	addr = mmap(NULL, BIG, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		_exit(1);
	madvise(addr, BIG, MADV_NOHUGEPAGE);
	gup(g->fd, g->cmd, addr, BIG, BIG / pagesize, FOLL_WRITE);
	munmap(addr, BIG);
}

/* The walk gives up at the next page, with all earlier ones in its hands. */
TEST_F(killed, in_a_longterm_pin_balances)
{
	struct gup_arg g = { PIN_LONGTERM_BENCHMARK, self->fd };

	EXPECT_TRUE(kill_while_pinning(pin_fresh_memory, &g, &self->before, 100));
	EXPECT_PINNED_AND_RELEASED(&self->before, 100);
}

TEST_F(killed, in_a_fast_pin_balances)
{
	struct gup_arg g = { PIN_FAST_BENCHMARK, self->fd };

	EXPECT_TRUE(kill_while_pinning(pin_fresh_memory, &g, &self->before, 100));
	EXPECT_PINNED_AND_RELEASED(&self->before, 100);
}

static void pin_and_hold(void *arg)
{
	struct gup_arg *g = arg;
	struct pin_longterm_test args = {
		.size = BIG,
		.flags = PIN_LONGTERM_TEST_FLAG_USE_WRITE,
	};
	void *addr;
	int fd;

	/* A file of its own: it goes with the child. */
	close(g->fd);
	fd = open(GUP_TEST_PATH, O_RDWR | O_CLOEXEC);
	addr = mmap(NULL, BIG, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || addr == MAP_FAILED)
		_exit(1);
	args.addr = (uintptr_t)addr;
	ioctl(fd, PIN_LONGTERM_TEST_START, &args);
	pause();
}

/* Exit drops the memory first, or the file that pins it: either order. */
TEST_F(killed, holding_a_longterm_pin_balances)
{
	struct gup_arg g = { PIN_LONGTERM_TEST_START, self->fd };

	EXPECT_TRUE(kill_while_pinning(pin_and_hold, &g, &self->before, 100));
	EXPECT_PINNED_AND_RELEASED(&self->before, 100);
}

/* ---- Setting the scene -------------------------------------------------- */

static void restore(void)
{
	if (hugetlb_was[0])
		write_text(hugetlb_path, hugetlb_was);
	if (mthp_was[0])
		write_text(mthp_path, mthp_was);
	if (pmd_was[0])
		write_text(pmd_path, pmd_was);
	targets_gone();
}

static void kinds_prepare(void)
{
	char text[32];

	snprintf(mthp_path, sizeof(mthp_path), THP_DIR "/hugepages-%zukB/enabled",
		 mthpsize >> 10);
	snprintf(pmd_path, sizeof(pmd_path), THP_DIR "/hugepages-%zukB/enabled",
		 pmdsize >> 10);
	snprintf(hugetlb_path, sizeof(hugetlb_path),
		 "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
		 bufsize >> 10);
	keep_choice(mthp_path, mthp_was, sizeof(mthp_was));
	keep_choice(pmd_path, pmd_was, sizeof(pmd_was));
	if (!read_text(hugetlb_path, hugetlb_was, sizeof(hugetlb_was))) {
		snprintf(text, sizeof(text), "%d", NR_HUGEPAGES);
		if (atoi(hugetlb_was) < NR_HUGEPAGES)
			write_text(hugetlb_path, text);
		else
			hugetlb_was[0] = '\0';
	}
}

int main(int argc, char **argv)
{
	if (!tests_begin(argc, argv, restore))
		return test_harness_run(argc, argv);

	kinds_prepare();
	targets_make(targets, ARRAY_SIZE(targets));
	pins_now();
	return test_harness_run(argc, argv);
}
