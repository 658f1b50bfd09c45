/* Files, mapped read-only. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static nib_status fail_errno(nib_error *err, const char *path, int number) {
    char reason[128];
    /* The GNU strerror_r gives a pointer, which need not be the buffer. */
    return nib_fail(err, NIB_EIO, "%s: %s", path, strerror_r(number, reason, sizeof reason));
}

bool nib_file_identify(nib_file_id *id, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return false;
    }
    uint64_t changed_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec;
    *id = (nib_file_id){(uint64_t)info.st_dev, (uint64_t)info.st_ino, (uint64_t)info.st_size, changed_ns};
    return true;
}

nib_status nib_map_file(nib_mapping *out, const char *path, nib_error *err) {
    *out = (nib_mapping){0};
    nib_status status = NIB_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_errno(err, path, errno);
    }
    struct stat info;
    if (fstat(fd, &info) != 0) {
        status = fail_errno(err, path, errno);
        goto close_fd;
    }
    if (!S_ISREG(info.st_mode)) {
        status = nib_fail(err, NIB_EIO, "%s: is no regular file", path);
        goto close_fd;
    }
    if (info.st_size == 0) {
        goto close_fd;
    }
    void *base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED) {
        status = fail_errno(err, path, errno);
        goto close_fd;
    }
    *out = (nib_mapping){base, (size_t)info.st_size, base};
close_fd:
    (void)close(fd);
    return status;
}

void nib_mapping_drop(const void *data, size_t len) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) / page * page, end = ((uintptr_t)data + len) / page * page;
    if (begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* a wish */
    }
}

void nib_unmap_file(nib_mapping *mapping) {
    if (mapping->base != NULL) {
        (void)munmap(mapping->base, mapping->len);
    }
    *mapping = (nib_mapping){0};
}
