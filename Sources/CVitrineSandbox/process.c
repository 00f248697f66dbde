// Sockets, shared memory and processes: everything both sides of the worker protocol share.
#include "helpers.h"
#include <errno.h>

#ifdef __linux__
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int csandbox_socket_pair(int sockets[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) ? errno : 0;
}

int csandbox_stream_pair(int sockets[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) ? errno : 0;
}

int csandbox_shared_memory(size_t size, int *fd) {
    int m = memfd_create("vitrine-pixels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (m < 0) return errno;
    // With the size sealed neither side can make the other's mapping fault by truncating the file.
    if (ftruncate(m, (off_t)size) || fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        int e = errno;
        close(m);
        return e;
    }
    *fd = m;
    return 0;
}

int csandbox_sealed_copy(const void *bytes, size_t count, int *fd) {
    int m = memfd_create("vitrine-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (m < 0) return errno;
    const char *p = bytes;
    while (count) {
        ssize_t n = write(m, p, count);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int e = n ? errno : ENOSPC;
            close(m);
            return e;
        }
        p += n;
        count -= (size_t)n;
    }
    if (fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) {
        int e = errno;
        close(m);
        return e;
    }
    *fd = m;
    return 0;
}

int csandbox_map(int fd, size_t size, void **address) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return errno;
    *address = p;
    return 0;
}

int csandbox_map_readonly(int fd, size_t size, void **address) {
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return errno;
    *address = p;
    return 0;
}

void csandbox_unmap(void *address, size_t size) { munmap(address, size); }

int csandbox_release_pages(int fd, size_t offset, size_t count) {
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)count) ? errno : 0;
}

int csandbox_send(int socket, const void *bytes, size_t count, int fd) {
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec part = {(void *)bytes, count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    for (;;) {
        ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (n >= 0) return 0;
        if (errno != EINTR) return errno;
    }
}

// Milliseconds of the monotonic clock.
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int csandbox_wait_readable(int socket, int milliseconds) {
    int64_t end = now() + milliseconds;
    for (;;) {
        struct pollfd p = {socket, POLLIN, 0};
        int64_t left = milliseconds < 0 ? -1 : end - now();
        if (milliseconds >= 0 && left < 0) left = 0;
        int n = poll(&p, 1, (int)left);
        if (n > 0) return 0;
        if (n == 0) return ETIMEDOUT;
        if (errno != EINTR) return errno;
    }
}

int csandbox_set_patience(int socket, int milliseconds) {
    struct timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};
    return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) ? errno : 0;
}

int csandbox_receive(int socket, int milliseconds, void *bytes, size_t capacity, size_t *count, int *fd) {
    union { struct cmsghdr header; char room[CMSG_SPACE(4 * sizeof(int))]; } control;
    struct iovec part = {bytes, capacity};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *fd = -1;
    *count = 0;
    // The socket's own time-out saves a poll() before each packet, but begins anew after a signal.
    int64_t end = now() + milliseconds;
    ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR) {
        int64_t left = end - now();
        int e = csandbox_wait_readable(socket, left > 0 ? (int)left : 0);
        if (e) return e;
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    }
    if (n < 0) return errno == ECONNRESET ? 0 : errno == EAGAIN ? ETIMEDOUT : errno;
    bool extra = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < fds; i++) {
            int one;
            memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
            if (*fd < 0) *fd = one;
            else {
                close(one);
                extra = true;
            }
        }
    }
    if (extra || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        if (*fd >= 0) close(*fd);
        *fd = -1;
        return EBADMSG;
    }
    *count = (size_t)n;
    return 0;
}

int csandbox_write_some(int socket, const void *bytes, size_t count, size_t *written) {
    for (;;) {
        ssize_t n = send(socket, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        *written = n > 0 ? (size_t)n : 0;
        if (n >= 0) return 0;
        if (errno != EINTR) return errno;
    }
}

int csandbox_wait_stream(int socket, bool write, int milliseconds) {
    struct pollfd p = {socket, write ? POLLOUT : POLLIN, 0};
    int n = poll(&p, 1, milliseconds);
    if (n > 0) return 0;
    return n == 0 || errno == EINTR ? ETIMEDOUT : errno;
}

int csandbox_spawn(const char *path, char *const argv[], char *const envp[], int socket, int memory,
                   csandbox_process *process) {
    // Above every number they are to be moved to, so that one move cannot overwrite the other's origin.
    int s = fcntl(socket, F_DUPFD_CLOEXEC, 16), m = fcntl(memory, F_DUPFD_CLOEXEC, 16), e = 0;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (s < 0 || m < 0) e = errno;
    if (!e) e = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!e) e = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, s, CSANDBOX_SOCKET);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, m, CSANDBOX_MEMORY);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    if (!e) e = posix_spawn_file_actions_addclosefrom_np(&actions, CSANDBOX_MEMORY + 1);
#endif
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (!e) e = posix_spawnattr_setsigmask(&attributes, &none);
    if (!e) e = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!e) e = posix_spawnattr_setpgroup(&attributes, 0);
    if (!e) {
        e = posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    pid_t pid = -1;
    struct csandbox_place *place;
    sigset_t mask;
    if (!e) e = csandbox_list_begin(&place, &mask);
    if (!e) {
        e = posix_spawn(&pid, path, &actions, &attributes, argv, envp);
        if (!e) {
            process->pid = pid;
            process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); // closed on exec by definition
        }
        csandbox_list_end(place, &mask, e ? NULL : process);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (s >= 0) close(s);
    if (m >= 0) close(m);
    return e;
}

bool csandbox_find_missing_library(const char *path, char *const envp[], char *name, size_t size) {
    enum { SECONDS = 5 };
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int e = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (!e) e = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    char *const argv[] = {(char *)path, NULL};
    pid_t pid = -1;
    if (!e) e = posix_spawn(&pid, path, &actions, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    static const char missing[] = " => not found";
    char text[32768];
    size_t count = 0;
    while (!e && count < sizeof text - 1) {
        struct pollfd p = {ends[0], POLLIN, 0};
        int ready = poll(&p, 1, SECONDS * 1000);
        if (ready < 0 && errno == EINTR) continue;
        ssize_t n = ready > 0 ? read(ends[0], text + count, sizeof text - 1 - count) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        count += (size_t)n;
    }
    text[count] = 0;
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    char *end = strstr(text, missing);
    if (!end || !size) return false;
    *end = 0;
    char *start = strrchr(text, '\t');
    snprintf(name, size, "%s", start ? start + 1 : text);
    return true;
}

void csandbox_kill(csandbox_process process) {
    // By descriptor where there is one: a number could be another process's once somebody has reaped ours.
    if (process.pidfd >= 0) syscall(SYS_pidfd_send_signal, process.pidfd, SIGKILL, NULL, 0);
    else kill(process.pid, SIGKILL);
}

void csandbox_kill_group(csandbox_process process) { kill(-process.pid, SIGKILL); }

int csandbox_reap(csandbox_process process, bool block, int *signal, int *code) {
    int status = 0;
    pid_t n;
    do n = waitpid(process.pid, &status, block ? 0 : WNOHANG);
    while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    if (n == 0) return EAGAIN;
    *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return 0;
}

// The soft limit becomes `wanted`, the hard one `most`, or less where the helper has inherited less.
static int limit(pid_t pid, int resource, rlim_t wanted, rlim_t most) {
    struct rlimit old, new;
    if (prlimit(pid, resource, NULL, &old)) return errno;
    new.rlim_max = old.rlim_max != RLIM_INFINITY && old.rlim_max < most ? old.rlim_max : most;
    new.rlim_cur = new.rlim_max != RLIM_INFINITY && wanted > new.rlim_max ? new.rlim_max : wanted;
    return prlimit(pid, resource, &new, NULL) ? errno : 0;
}

int csandbox_limit(csandbox_process process, csandbox_limits most, csandbox_limits wanted, csandbox_limits *current) {
    int e = 0;
    if (current->address_space == 0) e = limit(process.pid, RLIMIT_STACK, CSANDBOX_STACK, CSANDBOX_STACK);
    if (!e && current->address_space != wanted.address_space) {
        e = limit(process.pid, RLIMIT_AS, wanted.address_space, most.address_space);
        if (!e) current->address_space = wanted.address_space;
    }
    if (!e && current->data != wanted.data) {
        e = limit(process.pid, RLIMIT_DATA, wanted.data, most.data);
        if (!e) current->data = wanted.data;
    }
    clockid_t clock;
    struct timespec used;
    if (e) return e;
    // Only a process that has ended has no clock.
    if (clock_getcpuclockid(process.pid, &clock) || clock_gettime(clock, &used)) return ESRCH;
    uint64_t seconds = (uint64_t)used.tv_sec + 2 + wanted.cpu_seconds;
    if (current->cpu_seconds == seconds) return 0;
    e = limit(process.pid, RLIMIT_CPU, seconds, RLIM_INFINITY);
    if (!e) current->cpu_seconds = seconds;
    return e;
}

int64_t csandbox_processor_time(csandbox_process process) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(process.pid, &clock) || clock_gettime(clock, &used)) return -1;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void csandbox_forget(csandbox_process process) {
    csandbox_list_remove(process);
    if (process.pidfd >= 0) close(process.pidfd);
}

static int termination_pipe = -1;

static void note_termination(int number) {
    int e = errno;
    csandbox_note_signal();
    unsigned char byte = (unsigned char)number;
    ssize_t n = write(termination_pipe, &byte, 1);
    (void)n; // A full pipe holds enough.
    errno = e;
}

int csandbox_catch_termination(int *fd) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return errno;
    termination_pipe = ends[1];
    csandbox_register_exit();
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old, new = {.sa_handler = note_termination, .sa_flags = SA_RESTART};
        if (sigaction(signals[i], NULL, &old)) continue;
        // The handler that ends the helpers gives way: csandbox_end_by() does its work.
        if (old.sa_handler != SIG_DFL && old.sa_handler != csandbox_end_by_signal) continue;
        sigaction(signals[i], &new, NULL);
    }
    *fd = ends[0];
    return 0;
}

void csandbox_end_by(int number) {
    csandbox_end_helpers();
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(number, &standard, NULL);
    kill(getpid(), number);
}

void csandbox_close_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    for (long fd = first; fd < (most > 0 ? most : 1024); fd++) close((int)fd);
}

void csandbox_limit_arenas(int count) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, count);
#endif
}

void csandbox_tune_allocator(void) {
#ifdef __GLIBC__
    csandbox_limit_arenas(1);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
}

void csandbox_return_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void *watch(void *argument) {
    struct pollfd p = {(int)(intptr_t)argument, POLLRDHUP, 0};
    for (;;) {
        int n = poll(&p, 1, -1);
        if (n > 0 || (n < 0 && errno != EINTR)) _exit(0);
    }
}

int csandbox_exit_on_hangup(int socket) {
    // Not PR_SET_PDEATHSIG: that fires when the thread that spawned us ends, not when its process does.
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    int e = pthread_create(&thread, &attributes, watch, (void *)(intptr_t)socket);
    pthread_attr_destroy(&attributes);
    return e;
}

size_t csandbox_private_memory(int fd) {
    char text[128];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0) return 0;
    text[n] = 0;
    unsigned long size = 0, resident = 0, shared = 0;
    if (sscanf(text, "%lu %lu %lu", &size, &resident, &shared) != 3 || shared > resident) return 0;
    return (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

#else

int csandbox_socket_pair(int sockets[2]) { (void)sockets; return ENOSYS; }
int csandbox_stream_pair(int sockets[2]) { (void)sockets; return ENOSYS; }
int csandbox_write_some(int s, const void *b, size_t n, size_t *w) { (void)s; (void)b; (void)n; *w = 0; return ENOSYS; }
int csandbox_wait_stream(int s, bool w, int ms) { (void)s; (void)w; (void)ms; return ENOSYS; }
int csandbox_shared_memory(size_t size, int *fd) { (void)size; (void)fd; return ENOSYS; }
int csandbox_sealed_copy(const void *b, size_t n, int *fd) { (void)b; (void)n; (void)fd; return ENOSYS; }
int csandbox_map(int fd, size_t size, void **a) { (void)fd; (void)size; (void)a; return ENOSYS; }
int csandbox_map_readonly(int fd, size_t size, void **a) { (void)fd; (void)size; (void)a; return ENOSYS; }
void csandbox_unmap(void *a, size_t size) { (void)a; (void)size; }
int csandbox_release_pages(int fd, size_t o, size_t n) { (void)fd; (void)o; (void)n; return ENOSYS; }
int csandbox_send(int s, const void *b, size_t n, int fd) { (void)s; (void)b; (void)n; (void)fd; return ENOSYS; }
int csandbox_set_patience(int s, int ms) { (void)s; (void)ms; return ENOSYS; }
int csandbox_receive(int s, int ms, void *b, size_t c, size_t *n, int *fd) {
    (void)s; (void)ms; (void)b; (void)c; *n = 0; *fd = -1;
    return ENOSYS;
}
int csandbox_wait_readable(int s, int ms) { (void)s; (void)ms; return ENOSYS; }
int csandbox_spawn(const char *path, char *const a[], char *const e[], int s, int m, csandbox_process *p) {
    (void)path; (void)a; (void)e; (void)s; (void)m; (void)p;
    return ENOSYS;
}
bool csandbox_find_missing_library(const char *path, char *const e[], char *name, size_t size) {
    (void)path; (void)e; (void)name; (void)size;
    return false;
}
void csandbox_kill(csandbox_process p) { (void)p; }
void csandbox_kill_group(csandbox_process p) { (void)p; }
int csandbox_reap(csandbox_process p, bool block, int *signal, int *code) {
    (void)p; (void)block; (void)signal; (void)code;
    return ENOSYS;
}
int csandbox_limit(csandbox_process p, csandbox_limits m, csandbox_limits w, csandbox_limits *c) {
    (void)p; (void)m; (void)w; (void)c;
    return ENOSYS;
}
int64_t csandbox_processor_time(csandbox_process p) { (void)p; return -1; }
void csandbox_forget(csandbox_process p) { (void)p; }
void csandbox_close_from(int first) { (void)first; }
int csandbox_catch_termination(int *fd) { *fd = -1; return ENOSYS; }
void csandbox_end_by(int number) { (void)number; }
void csandbox_tune_allocator(void) {}
void csandbox_return_memory(void) {}
int csandbox_exit_on_hangup(int socket) { (void)socket; return ENOSYS; }
size_t csandbox_private_memory(int fd) { (void)fd; return 0; }
#endif

void csandbox_store(void *word, uint64_t value) { __atomic_store_n((uint64_t *)word, value, __ATOMIC_SEQ_CST); }
uint64_t csandbox_load(const void *word) { return __atomic_load_n((const uint64_t *)word, __ATOMIC_SEQ_CST); }
