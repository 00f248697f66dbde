// A read-only view of where libraries and fonts are installed (Landlock, Linux 5.13; landlock(7)).
#include "csandbox.h"
#include <errno.h>

#if defined(__linux__) && __has_include(<linux/landlock.h>)
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READING (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
// Everything the first version of the interface knows: bits 0 (execute) to 12 (make a symbolic link).
#define EVERYTHING ((1ull << 13) - 1)

static bool is_restricted;

bool csandbox_may_read_files(void) { return is_restricted; }

static void allow(int rules, const char *path) {
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status;
    struct landlock_path_beneath_attr rule = {.allowed_access = READING, .parent_fd = fd};
    if (fstat(fd, &status) == 0) {
        if (!S_ISDIR(status.st_mode)) rule.allowed_access &= ~(unsigned long long)LANDLOCK_ACCESS_FS_READ_DIR;
        syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    close(fd);
}

int csandbox_restrict_files(void) {
    struct landlock_ruleset_attr all = {.handled_access_fs = EVERYTHING};
    int rules = (int)syscall(__NR_landlock_create_ruleset, &all, sizeof all, 0);
    if (rules < 0) return errno;
    static const char *const system_paths[] = {
        "/usr", "/lib", "/lib64", "/opt", "/nix/store", "/etc/fonts", "/etc/ld.so.cache", "/var/cache/fontconfig",
    };
    static const char *const user_paths[] = {".fonts", ".local/share/fonts", ".cache/fontconfig", ".config/fontconfig"};
    for (size_t i = 0; i < sizeof system_paths / sizeof *system_paths; i++) allow(rules, system_paths[i]);
    const char *home = getenv("HOME");
    for (size_t i = 0; home && i < sizeof user_paths / sizeof *user_paths; i++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s", home, user_paths[i]) < (int)sizeof path) allow(rules, path);
    }
    int e = 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(__NR_landlock_restrict_self, rules, 0)) e = errno;
    close(rules);
    is_restricted = e == 0;
    return e;
}
#else
bool csandbox_may_read_files(void) { return false; }
int csandbox_restrict_files(void) { return ENOSYS; }
#endif
