/* Preloaded into a broker: makes writes to chosen files fail, those of compiled code included.

   FAILING_WRITES names a control file. While it exists and contains "<which> <text>\n", writes to files whose
   path contains <text> fail:

     all       every pwrite fails with EIO
     markers   a pwrite of as many bytes as an end marker has fails with EIO
     short     every pwrite writes half of its bytes; the next one for the rest fails with EIO
     interrupt every other pwrite writes nothing and fails with EINTR, which is no error
     <kind>@<first>-<last>
               the pwrites with these numbers go wrong, counted from 0 since the file last had another text:
               EIO and ENOSPC fail, `half` writes half of its bytes, which is no error, and `half+ENOSPC` does so and
               finds the disk full from then on; with a `!` at the end ftruncate fails, too, from the first one on

   Each failure appends a byte to the file "<control file>.count". */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARKER_BYTES = 78, TEXT_BYTES = 1024 };

typedef ssize_t Pwrite(int, const void *, size_t, off64_t);
typedef int Ftruncate(int, off64_t);

static __thread int rest_fails;
static int calls;
static char counted[TEXT_BYTES];
static int cut_fails;

static int wanted(int fd, char *which) {
  const char *control = getenv("FAILING_WRITES");
  char text[TEXT_BYTES], link[64], path[TEXT_BYTES], part[TEXT_BYTES];
  int file = control == NULL ? -1 : open(control, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = 0;
  if (sscanf(text, "%31s %900s", which, part) != 2) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  if (strcmp(counted, text) != 0) {
    strcpy(counted, text);
    calls = 0;
    cut_fails = 0;
  }
  return strstr(path, part) != NULL;
}

static ssize_t fail(int error) {
  char count[TEXT_BYTES];
  snprintf(count, sizeof count, "%s.count", getenv("FAILING_WRITES"));
  int file = open(count, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file >= 0) {
    ssize_t ignored = write(file, "x", 1);
    (void)ignored;
    close(file);
  }
  errno = error;
  return -1;
}

static ssize_t numbered(Pwrite *real, const char *which, int fd, const void *data, size_t size, off64_t position) {
  char kind[16];
  int first, last, call = calls++;
  if (sscanf(which, "%15[^@]@%d-%d", kind, &first, &last) != 3 || call < first || call > last)
    return real(fd, data, size, position);
  cut_fails = which[strlen(which) - 1] == '!';
  if (strcmp(kind, "EIO") == 0) return fail(EIO);
  if (strncmp(kind, "half", 4) == 0 && (call == first || kind[4] == 0)) {
    ssize_t failed = fail(0);
    (void)failed;
    return real(fd, data, size < 2 ? size : size / 2, position);
  }
  return fail(ENOSPC);
}

static ssize_t pwrite_or_fail(int fd, const void *data, size_t size, off64_t position) {
  static Pwrite *real;
  char which[32] = "";
  if (real == NULL) real = (Pwrite *)dlsym(RTLD_NEXT, "pwrite64");
  if (wanted(fd, which)) {
    if (strchr(which, '@') != NULL) return numbered(real, which, fd, data, size, position);
    if (strcmp(which, "all") == 0 || (strcmp(which, "markers") == 0 && size == MARKER_BYTES)) return fail(EIO);
    if (strcmp(which, "interrupt") == 0) {
      rest_fails = !rest_fails;
      return rest_fails ? fail(EINTR) : real(fd, data, size, position);
    }
    if (strcmp(which, "short") == 0) {
      if (rest_fails || size < 2) {
        rest_fails = 0;
        return fail(EIO);
      }
      rest_fails = 1;
      return real(fd, data, size / 2, position);
    }
  }
  rest_fails = 0;
  return real(fd, data, size, position);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t position) {
  return pwrite_or_fail(fd, data, size, position);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t position) {
  return pwrite_or_fail(fd, data, size, position);
}

static int ftruncate_or_fail(int fd, off64_t size) {
  static Ftruncate *real;
  char which[32] = "";
  if (real == NULL) real = (Ftruncate *)dlsym(RTLD_NEXT, "ftruncate64");
  if (wanted(fd, which) && cut_fails) return (int)fail(EIO);
  return real(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate_or_fail(fd, size); }

int ftruncate64(int fd, off64_t size) { return ftruncate_or_fail(fd, size); }
