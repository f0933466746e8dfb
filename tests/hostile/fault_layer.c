/* A layer between a program and the system in which the n-th call that changes the disk fails.
   Preloaded; the program arms it by fault_from and reads fault_calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls, first = -1, last = -1;
static atomic_int code = ENOSPC;

/* Let the calls from number `from` to number `to` fail, counted from 1; none if `from` is 0. */
void fault_from(long from, long to, int error) {
  calls = 0;
  code = error;
  last = to;
  first = from;
}

void fault_stop(void) { first = -1; }

long fault_calls(void) { return calls; }

static int fails(void) {
  if (first < 0) return 0;
  long number = ++calls;
  if (number < first || number > last || first == 0) return 0;
  errno = code;
  return 1;
}

#define LAYER(type, name, parameters, arguments, counted)                    \
  type name parameters {                                                     \
    static type(*real) parameters;                                           \
    if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);           \
    if ((counted) && fails()) return -1;                                     \
    return real arguments;                                                   \
  }

LAYER(ssize_t, write, (int fd, const void* data, size_t size), (fd, data, size), fd > 2)
LAYER(ssize_t, pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at), 1)
LAYER(ssize_t, pwrite64, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at), 1)
LAYER(ssize_t, writev, (int fd, const struct iovec* data, int count), (fd, data, count), fd > 2)
LAYER(int, fsync, (int fd), (fd), 1)
LAYER(int, fdatasync, (int fd), (fd), 1)
LAYER(int, ftruncate, (int fd, off_t size), (fd, size), 1)
LAYER(int, ftruncate64, (int fd, off64_t size), (fd, size), 1)
LAYER(int, fchmod, (int fd, mode_t mode), (fd, mode), 1)
LAYER(int, mkdir, (const char* path, mode_t mode), (path, mode), 1)
LAYER(int, rename, (const char* from, const char* to), (from, to), 1)
LAYER(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), 1)
LAYER(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
      (a, from, b, to, flags), 1)
