// Runs a command in which system calls fail, as on a kernel or in a container that forbids them:
//   without-system-calls landlock|seccomp|landlock,seccomp COMMAND [WORD…]
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3) return fprintf(stderr, "usage: without-system-calls landlock|seccomp|landlock,seccomp COMMAND\n"), 2;
    // Landlock is not part of the kernel; the container's profile does not permit seccomp.
    int landlock = strstr(words[1], "landlock") ? ENOSYS : 0, seccomp = strstr(words[1], "seccomp") ? EPERM : 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_landlock_create_ruleset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, landlock ? SECCOMP_RET_ERRNO | landlock : SECCOMP_RET_ALLOW),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, seccomp ? SECCOMP_RET_ERRNO | seccomp : SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        return perror("seccomp"), 1;
    }
    execvp(words[2], words + 2);
    return perror(words[2]), 127;
}
