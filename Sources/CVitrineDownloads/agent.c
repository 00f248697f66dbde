// Sockets of the agent, and its start.
#include "cdownloads.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <TargetConditionals.h>
#endif

static int address(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) return ENAMETOOLONG;
    strcpy(address->sun_path, path);
    return 0;
}

static int make_socket(void) {
#ifdef SOCK_CLOEXEC
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
#else
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (s >= 0) fcntl(s, F_SETFD, FD_CLOEXEC);
#endif
#ifdef SO_NOSIGPIPE
    int one = 1;
    if (s >= 0) setsockopt(s, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
    return s;
}

int cdownloads_limit(int descriptor, int isReading, long milliseconds) {
    struct timeval time = {milliseconds / 1000, (milliseconds % 1000) * 1000};
    int result = setsockopt(descriptor, SOL_SOCKET, isReading ? SO_RCVTIMEO : SO_SNDTIMEO, &time, sizeof time);
    return result == 0 ? 0 : errno;
}

int cdownloads_connect(const char *path, long milliseconds, int *descriptor) {
    struct sockaddr_un to;
    int error = address(path, &to);
    if (error) return error;
    int s = make_socket();
    if (s < 0) return errno;
    // On Linux a connection waits while the queue of the one who listens is full; elsewhere it is refused.
    if (milliseconds > 0) cdownloads_limit(s, 0, milliseconds);
    while (connect(s, (struct sockaddr *)&to, sizeof to) != 0) {
        if (errno == EINTR) continue;
        if (errno == EISCONN) break;
        error = errno;
        close(s);
        return error;
    }
    if (milliseconds > 0) cdownloads_limit(s, 0, 0);
    *descriptor = s;
    return 0;
}

int cdownloads_listen(const char *path, int *descriptor) {
    struct sockaddr_un at;
    int error = address(path, &at);
    if (error) return error;
    int s = make_socket();
    if (s < 0) return errno;
    unlink(path);
    if (bind(s, (struct sockaddr *)&at, sizeof at) != 0 || chmod(path, 0600) != 0 || listen(s, 256) != 0) {
        error = errno;
        close(s);
        return error;
    }
    *descriptor = s;
    return 0;
}

int cdownloads_accept(int listener, int *descriptor) {
    int s;
    do {
#ifdef SOCK_CLOEXEC
        // In one step, or a child that another thread starts just then would keep the connection open.
        s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
#else
        s = accept(listener, NULL, NULL);
#endif
    } while (s < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (s < 0) return errno;
#ifndef SOCK_CLOEXEC
    fcntl(s, F_SETFD, FD_CLOEXEC);
#endif
    *descriptor = s;
    return 0;
}

int cdownloads_peer(int descriptor, unsigned *user, int *process) {
    *process = 0;
#ifdef __linux__
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return errno;
    *user = peer.uid;
    *process = peer.pid;
#else
    uid_t uid;
    gid_t gid;
    if (getpeereid(descriptor, &uid, &gid) != 0) return errno;
    *user = uid;
#ifdef LOCAL_PEERPID
    pid_t pid = 0;
    socklen_t size = sizeof pid;
    if (getsockopt(descriptor, SOL_LOCAL, LOCAL_PEERPID, &pid, &size) == 0) *process = pid;
#endif
#endif
    return 0;
}

long cdownloads_send(int descriptor, const void *bytes, unsigned long count) {
#ifdef MSG_NOSIGNAL
    return send(descriptor, bytes, count, MSG_NOSIGNAL);
#else
    return send(descriptor, bytes, count, 0);
#endif
}

#if defined(__APPLE__) && TARGET_OS_IPHONE
// Programs start no programs there; VitrineDownloads has the system carry downloads instead.
int cdownloads_start(const char *program, char *const arguments[], int ready) {
    (void)program, (void)arguments, (void)ready;
    return ENOTSUP;
}
#else
// Everything from here to exec is safe after a fork of a process with threads (signal-safety(7)).
static void become(const char *program, char *const arguments[], int ready, int null) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    // Out of the way of the numbers they are to have.
    ready = fcntl(ready, F_DUPFD, 16);
    null = fcntl(null, F_DUPFD, 16);
    for (int number = 0; number < 3; number++) dup2(null, number);
    dup2(ready, 3);
    long closed = -1;
#if defined(__linux__) && defined(SYS_close_range)
    closed = syscall(SYS_close_range, 4, ~0u, 0);
#endif
    if (closed != 0) {
        for (int number = 4; number < 4096; number++) close(number);
    }
    if (chdir("/") != 0) _exit(126);
    execv(program, arguments);
    _exit(127);
}

int cdownloads_start(const char *program, char *const arguments[], int ready) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return errno;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        // The child of a child, so that nobody has to wait for it.
        pid_t agent = fork();
        if (agent == 0) become(program, arguments, ready, null);
        _exit(agent < 0 ? 1 : 0);
    }
    int error = child < 0 ? errno : 0;
    close(null);
    int status = 0;
    if (child > 0) {
        pid_t ended;
        do {
            ended = waitpid(child, &status, 0);
        } while (ended < 0 && errno == EINTR);
        if (ended == child && status != 0) error = EAGAIN;
    }
    return error;
}
#endif
