/* Faults of a disk, for tests/long_faults.rs, by LD_PRELOAD. The FAULT_AT-th call that changes a
 * file or locks one fails as FAULT_KIND says, and with FAULT_STAYS all after it:
 *   ENOSPC, EIO, EMFILE   the error of this name, where such a call can have it
 *   ENOLCK                of locks alone
 *   SHORT                 a write of half of the bytes
 *   KILL-BEFORE, KILL-HALF, KILL-AFTER   the process ends (SIGKILL) instead of the call, amid it
 *                         (a write of half of the bytes) or once it took effect
 * The file FAULT_MARK is made when it happens. Linux, glibc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* What may happen to a call. */
enum { SPACE = 1, DISK = 2, NUMBERS = 4, LOCKS = 8, BYTES = 16 };

static atomic_long calls;

static int is(const char *kind) {
    const char *k = getenv("FAULT_KIND");
    return k && !strcmp(k, kind);
}

static int kills(void) {
    const char *k = getenv("FAULT_KIND");
    return k && !strncmp(k, "KILL", 4);
}

/* Whether this call, to which `faults` may happen, is one that fails. */
static int fails(int faults) {
    const char *at = getenv("FAULT_AT"), *mark = getenv("FAULT_MARK");
    int mine = kills() || (is("ENOSPC") && faults & SPACE) || (is("EIO") && faults & DISK) ||
               (is("EMFILE") && faults & NUMBERS) || (is("ENOLCK") && faults & LOCKS) ||
               (is("SHORT") && faults & BYTES);
    if (!at || !mine) return 0;
    long n = atomic_fetch_add(&calls, 1) + 1, limit = atol(at);
    int now = getenv("FAULT_STAYS") ? n >= limit : n == limit;
    if (now && mark) {
        long fd = syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY, 0644);
        if (fd >= 0) syscall(SYS_close, fd);
    }
    return now;
}

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int number(void) {
    if (is("EIO")) return EIO;
    if (is("EMFILE")) return EMFILE;
    if (is("ENOLCK")) return ENOLCK;
    return ENOSPC;
}

/* A call that does all or nothing, to which `faults` may happen. */
#define WHOLE(faults, call)             \
    if (fails(faults)) {                \
        if (is("KILL-AFTER")) (call);   \
        if (kills()) end();             \
        errno = number();               \
        return -1;                      \
    }                                   \
    return (call)

#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = dlsym(RTLD_NEXT, name)

static int is_file(int fd) {
    struct stat s;
    return fd > 2 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (is_file(fd) && fails(SPACE | DISK | BYTES)) {
        size_t half = length > 1 ? length / 2 : length;
        if (is("KILL-HALF")) real(fd, bytes, half);
        if (is("KILL-AFTER")) real(fd, bytes, length);
        if (kills()) end();
        if (is("SHORT")) return real(fd, bytes, half);
        /* A full disk takes some of it first. */
        if (length > 8 && is("ENOSPC") && !getenv("FAULT_STAYS")) return real(fd, bytes, half);
        errno = number();
        return -1;
    }
    return real(fd, bytes, length);
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    if (!is_file(fd)) return real(fd);
    WHOLE(DISK, real(fd));
}

int ftruncate64(int fd, off64_t length) {
    REAL(int, "ftruncate64", int, off64_t);
    WHOLE(DISK, real(fd, length));
}

int flock(int fd, int how) {
    REAL(int, "flock", int, int);
    WHOLE(LOCKS, real(fd, how));
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    WHOLE(SPACE | DISK, real(from, to));
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    WHOLE(DISK, real(path));
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    WHOLE(SPACE | DISK, real(path, mode));
}

static int opened(const char *symbol, const char *path, int flags, mode_t mode) {
    REAL(int, symbol, const char *, int, ...);
    if (!strncmp(path, "/proc", 5) || !strncmp(path, "/sys", 4)) return real(path, flags, mode);
    int changes = flags & (O_CREAT | O_TRUNC);
    if (!changes && kills()) return real(path, flags, mode);
    WHOLE(changes ? SPACE | DISK | NUMBERS : NUMBERS, real(path, flags, mode));
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened("open64", path, flags, mode);
}
