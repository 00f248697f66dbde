// The helper's cage: resource limits and a seccomp filter written as plain BPF (seccomp(2), bpf(4)).
#include "csandbox.h"
#include <errno.h>

#ifdef __linux__
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
// Memory, threads, time, signals of this very process, and descriptors already open: what decoding needs.
static const int allowed[] = {
    __NR_read, __NR_pread64, __NR_readv, __NR_write, __NR_writev, __NR_lseek, __NR_fstat, __NR_close, __NR_munmap,
    __NR_mremap, __NR_madvise, __NR_brk, __NR_futex, __NR_set_robust_list, __NR_exit, __NR_exit_group,
    __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_rt_sigreturn, __NR_sigaltstack, __NR_getpid, __NR_gettid,
    __NR_getppid, __NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid, __NR_sched_yield, __NR_sched_getaffinity,
    __NR_sched_getparam, __NR_sched_getscheduler, __NR_clock_gettime, __NR_clock_getres, __NR_clock_nanosleep,
    __NR_nanosleep, __NR_gettimeofday, __NR_getrandom, __NR_getrusage, __NR_getrlimit, __NR_times,
    __NR_sysinfo, __NR_uname, __NR_recvmsg, __NR_sendmsg, __NR_ppoll, __NR_restart_syscall, __NR_getcpu,
    __NR_membarrier,
#ifdef __NR_poll
    __NR_poll,
#endif
#ifdef __NR_time
    __NR_time,
#endif
#ifdef __NR_arch_prctl
    __NR_arch_prctl,
#endif
#ifdef __NR_rseq
    __NR_rseq,
#endif
};

// Calls that libraries make without needing them: refused politely.
static const struct { int call; int error; } refused[] = {
    {__NR_statx, ENOSYS},
    {__NR_readlinkat, ENOENT}, {__NR_statfs, ENOENT}, {__NR_fstatfs, ENOSYS}, {__NR_getdents64, EBADF},
    {__NR_mkdirat, EACCES}, {__NR_unlinkat, EACCES}, {__NR_getcwd, ENOENT}, {__NR_socket, EACCES},
    {__NR_connect, EACCES}, {__NR_getpeername, ENOTSOCK},
    {__NR_getsockname, ENOTSOCK}, {__NR_getsockopt, ENOTSOCK}, {__NR_ioctl, ENOTTY}, {__NR_fcntl, EINVAL},
    {__NR_dup, EMFILE}, {__NR_dup3, EMFILE},
    {__NR_pipe2, EMFILE}, {__NR_eventfd2, EMFILE}, {__NR_memfd_create, EACCES}, {__NR_ftruncate, EACCES},
    {__NR_fallocate, EACCES}, {__NR_fadvise64, 0}, {__NR_mlock, EPERM}, {__NR_prctl, EPERM},
    {__NR_sched_setscheduler, EPERM}, {__NR_sched_setaffinity, EPERM}, {__NR_setpriority, EPERM},
    {__NR_setrlimit, EPERM}, {__NR_getpriority, EPERM}, {__NR_sched_setattr, EPERM}, {__NR_sched_getattr, EPERM},
    {__NR_get_mempolicy, EPERM}, {__NR_mbind, EPERM}, {__NR_set_mempolicy, EPERM},
    // glibc falls back to clone(), whose flags a filter can see.
    {__NR_clone3, ENOSYS},
#ifdef __NR_open
    {__NR_open, ENOENT}, {__NR_stat, ENOENT}, {__NR_lstat, ENOENT}, {__NR_readlink, ENOENT},
    {__NR_mkdir, EACCES}, {__NR_unlink, EACCES}, {__NR_pipe, EMFILE}, {__NR_dup2, EMFILE}, {__NR_getdents, EBADF},
#endif
};

static const int access_calls[] = {
    __NR_faccessat,
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
#ifdef __NR_access
    __NR_access,
#endif
};

// Newer calls than this list knows do not exist, as far as the helper can see: libraries have a fallback for those.
#define NEWEST_KNOWN __NR_faccessat2

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define RETURN(what) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | ((error) & SECCOMP_RET_DATA))
#define SKIP_UNLESS(call, n) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, (n))
// The low half of an argument; both architectures are little-endian.
#define LOAD_ARGUMENT(i) \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]))

#define LOAD_HIGH(i) \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]) + 4)

static int install_filter(void) {
    struct sock_filter f[16 + 2 * COUNT(allowed) + 2 * COUNT(refused) + 64];
    size_t n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    f[n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT(allowed); i++) {
        f[n++] = SKIP_UNLESS((unsigned)allowed[i], 1);
        f[n++] = RETURN(SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        f[n++] = SKIP_UNLESS((unsigned)refused[i].call, 1);
        f[n++] = REFUSE((unsigned)refused[i].error);
    }
    // Threads, never processes.
    f[n++] = SKIP_UNLESS(__NR_clone, 4);
    f[n++] = LOAD_ARGUMENT(0);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
    f[n++] = RETURN(SECCOMP_RET_ALLOW);
    f[n++] = REFUSE(EPERM);
    // Memory, never executable, and none that is shared with nobody: it counts for the address space, not for the data.
    f[n++] = SKIP_UNLESS(__NR_mmap, 4);
    f[n++] = LOAD_ARGUMENT(3);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_SHARED | MAP_ANONYMOUS);
    f[n++] = SKIP_UNLESS(MAP_SHARED | MAP_ANONYMOUS, 1);
    f[n++] = REFUSE(EACCES);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < 2; i++) {
        f[n++] = SKIP_UNLESS(i ? __NR_mprotect : __NR_mmap, 4);
        f[n++] = LOAD_ARGUMENT(2);
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
        f[n++] = RETURN(SECCOMP_RET_ALLOW);
        f[n++] = REFUSE(EACCES);
    }
    // fstat() of an open descriptor, as current C libraries ask for it. (A path beside the flag would tell a file's
    // size and dates, which is why there is nothing more to this exception.)
    f[n++] = SKIP_UNLESS(__NR_newfstatat, 4);
    f[n++] = LOAD_ARGUMENT(3);
    f[n++] = SKIP_UNLESS(AT_EMPTY_PATH, 1);
    f[n++] = RETURN(SECCOMP_RET_ALLOW);
    f[n++] = REFUSE(ENOENT);
    // Fonts are opened when a document first asks for them; Landlock says which files those may be.
    f[n++] = SKIP_UNLESS(__NR_openat, 4);
    f[n++] = LOAD_ARGUMENT(2);
    f[n++] = (struct sock_filter)BPF_JUMP(
        BPF_JMP | BPF_JSET | BPF_K, csandbox_may_read_files() ? O_ACCMODE | O_CREAT | O_TRUNC : 0xFFFFFFFF, 1, 0);
    f[n++] = csandbox_may_read_files() ? RETURN(SECCOMP_RET_ALLOW) : REFUSE(ENOENT);
    f[n++] = REFUSE(ENOENT);
    // Whether a font may be read; tells no more than whether a file exists.
    for (size_t i = 0; i < COUNT(access_calls); i++) {
        f[n++] = SKIP_UNLESS((unsigned)access_calls[i], 1);
        f[n++] = csandbox_may_read_files() ? RETURN(SECCOMP_RET_ALLOW) : REFUSE(ENOENT);
    }
    // Signals to itself (abort); limits of itself to read: the address of new ones must be null.
    f[n++] = SKIP_UNLESS(__NR_tgkill, 4);
    f[n++] = LOAD_ARGUMENT(0);
    f[n++] = SKIP_UNLESS((unsigned)getpid(), 1);
    f[n++] = RETURN(SECCOMP_RET_ALLOW);
    f[n++] = REFUSE(EPERM);
    f[n++] = SKIP_UNLESS(__NR_prlimit64, 8);
    f[n++] = LOAD_ARGUMENT(0);
    f[n++] = SKIP_UNLESS(0, 5);
    f[n++] = LOAD_ARGUMENT(2);
    f[n++] = SKIP_UNLESS(0, 3);
    f[n++] = LOAD_HIGH(2);
    f[n++] = SKIP_UNLESS(0, 1);
    f[n++] = RETURN(SECCOMP_RET_ALLOW);
    f[n++] = REFUSE(EPERM);
    // The 32-bit numbering of x86-64 (x32) begins at 0x40000000: killed, not refused.
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_KNOWN, 0, 2);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 1, 0);
    f[n++] = REFUSE(ENOSYS);
    f[n++] = RETURN(SECCOMP_RET_KILL_PROCESS);

    struct sock_fprog program = {(unsigned short)n, f};
    // TSYNC: threads that exist already (the hang-up watcher, a codec's pool) are caged with the caller.
    long r = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    return r == 0 ? 0 : r > 0 ? ESRCH : errno;
}

int csandbox_enter(void) {
    // 64 descriptors are few, and none can be opened anyway; 0 bytes of file size also bar writing to any file.
    struct rlimit none = {0, 0}, few = {64, 64};
    if (setrlimit(RLIMIT_CORE, &none) || setrlimit(RLIMIT_FSIZE, &none) || setrlimit(RLIMIT_NOFILE, &few)) return errno;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) return errno;
    return install_filter();
}
#else
int csandbox_enter(void) { return ENOTSUP; }
#endif

#else
int csandbox_enter(void) { return ENOSYS; }
#endif
