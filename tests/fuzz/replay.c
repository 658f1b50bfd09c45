/* Runs a fuzz target once on each file of the given directories (or files): the corpus as an ordinary test, for compilers
 * without libFuzzer. Says how many files it ran; fails when there was none. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* Runs one file, as an exact heap block, so that a sanitizer sees a byte too far. */
static void run_file(const char *path, size_t len) {
    uint8_t *data = malloc(len == 0 ? 1 : len);
    FILE *file = fopen(path, "rb");
    if (data == NULL || file == NULL || fread(data, 1, len, file) != len) {
        die(path);
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, len);
    free(data);
}

static size_t run_directory(const char *path);

/* A file, or a directory at the top. Returns the number of files run. */
static size_t run_path(const char *path, int is_top) {
    struct stat info;
    if (stat(path, &info) != 0) {
        die(path);
    }
    if (S_ISDIR(info.st_mode)) {
        return is_top ? run_directory(path) : 0;
    }
    run_file(path, (size_t)info.st_size);
    return 1;
}

static size_t run_directory(const char *path) {
    size_t n = 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        die(path);
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char name[4096];
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            n += run_path(name, 0);
        }
    }
    (void)closedir(directory);
    return n;
}

int main(int argc, char **argv) {
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        n += run_path(argv[i], 1);
    }
    printf("%zu files\n", n);
    return n == 0;
}
