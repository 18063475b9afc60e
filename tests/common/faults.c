/* Faults of a disk, for tests/long_faults.rs: LD_PRELOAD makes the FAULT_AT-th call that changes
 * a file fail as FAULT_KIND says (ENOSPC, EIO, EMFILE or SHORT, a write of half of the bytes), and
 * with FAULT_STAYS all after it. Linux, glibc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static const char *kind(void) {
    const char *k = getenv("FAULT_KIND");
    return k ? k : "";
}

/* Whether this call is one that fails. */
static int fails(void) {
    const char *at = getenv("FAULT_AT");
    if (!at) return 0;
    long n = atomic_fetch_add(&calls, 1) + 1, limit = atol(at);
    return getenv("FAULT_STAYS") ? n >= limit : n == limit;
}

static int number(void) {
    if (!strcmp(kind(), "EIO")) return EIO;
    if (!strcmp(kind(), "EMFILE")) return EMFILE;
    return ENOSPC;
}

static int is_file(int fd) {
    struct stat s;
    return fd > 2 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (is_file(fd) && strcmp(kind(), "EMFILE") && fails()) {
        if (!strcmp(kind(), "SHORT")) return real(fd, bytes, length > 1 ? length / 2 : length);
        /* A full disk takes some of it first. */
        if (length > 8 && !strcmp(kind(), "ENOSPC") && !getenv("FAULT_STAYS"))
            return real(fd, bytes, length / 2);
        errno = number();
        return -1;
    }
    return real(fd, bytes, length);
}

int fsync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    if (is_file(fd) && !strcmp(kind(), "EIO") && fails()) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    if (strcmp(kind(), "EMFILE") && strcmp(kind(), "SHORT") && fails()) {
        errno = number();
        return -1;
    }
    return real(from, to);
}

static int opened(const char *symbol, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, symbol);
    int wanted = !strcmp(kind(), "EMFILE") || (flags & (O_CREAT | O_TRUNC));
    if (wanted && strcmp(kind(), "SHORT") && strncmp(path, "/proc", 5) && fails()) {
        errno = number();
        return -1;
    }
    return real(path, flags, mode);
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
