// Ends the helpers before this process ends: an orphan is for process 1 to reap, and some never do (wait(2), notes).
#include "helpers.h"
#include <errno.h>

#ifdef __linux__
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// FREE -> CLAIMED -> STARTING -> LISTED -> FREE. Only STARTING and LISTED places have an owner that may be read.
enum { FREE, CLAIMED, STARTING, LISTED };

struct csandbox_place {
    atomic_int state;
    atomic_int owner; // a forked child inherits the list, but not the helpers
    csandbox_process process;
    struct csandbox_place *next;
};

// Places are never freed, so that a signal handler can walk the list at any time.
static _Atomic(struct csandbox_place *) places;
// The process that is ending its helpers and starts no more; not a flag, which a forked child would inherit.
static atomic_int ending;
static atomic_bool adopts;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The process that a signal is ending.
static atomic_int signalled;

void csandbox_note_signal(void) { atomic_store(&signalled, getpid()); }

// What is ended for a signal fails work of the program, which would then exit with a status before the signal ends it.
static void end_at_exit(void) {
    while (atomic_load(&signalled) == getpid()) pause();
    csandbox_end_helpers();
}

static void register_exit(void) { atexit(end_at_exit); }

void csandbox_register_exit(void) { pthread_once(&once, register_exit); }

static struct csandbox_place *claim(void) {
    for (struct csandbox_place *p = atomic_load(&places); p; p = p->next) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&p->state, &expected, CLAIMED)) return p;
    }
    struct csandbox_place *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    atomic_store(&p->state, CLAIMED);
    p->next = atomic_load(&places);
    while (!atomic_compare_exchange_weak(&places, &p->next, p)) {}
    return p;
}

int csandbox_list_begin(struct csandbox_place **place, sigset_t *mask) {
    csandbox_register_exit();
    struct csandbox_place *p = claim();
    if (!p) return ENOMEM;
    // A handler that runs on this thread waits for every helper that is being started, which would be for ever.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, mask);
    atomic_store(&p->owner, getpid());
    atomic_store(&p->state, STARTING);
    // After the state is set: whoever ends the helpers sees either this place or that it is refused here.
    if (atomic_load(&ending) == getpid()) {
        csandbox_list_end(p, mask, NULL);
        return ECANCELED;
    }
    *place = p;
    return 0;
}

void csandbox_list_end(struct csandbox_place *place, const sigset_t *mask, const csandbox_process *process) {
    if (process) place->process = *process;
    atomic_store(&place->state, process ? LISTED : FREE);
    pthread_sigmask(SIG_SETMASK, mask, NULL);
}

void csandbox_list_remove(csandbox_process process) {
    for (struct csandbox_place *p = atomic_load(&places); p; p = p->next) {
        if (atomic_load(&p->state) == LISTED && atomic_load(&p->owner) == getpid() && p->process.pid == process.pid) {
            atomic_store(&p->state, FREE);
            return;
        }
    }
}

// Everything in here may be called by a signal handler (signal-safety(7)).
void csandbox_end_helpers(void) {
    int saved = errno, self = getpid();
    atomic_store(&ending, self);
    for (struct csandbox_place *p = atomic_load(&places); p; p = p->next) {
        struct timespec moment = {0, 200000};
        while (atomic_load(&p->state) == STARTING && atomic_load(&p->owner) == self) nanosleep(&moment, NULL);
    }
    // All are killed before the first is waited for.
    for (int reaps = 0; reaps < 2; reaps++) {
        for (struct csandbox_place *p = atomic_load(&places); p; p = p->next) {
            if (atomic_load(&p->state) != LISTED || atomic_load(&p->owner) != self) continue;
            csandbox_process process = p->process;
            siginfo_t information;
            // One that another thread has reaped in the meantime is none of this process's any more.
            if (waitid(P_PID, (id_t)process.pid, &information, WEXITED | WNOHANG | WNOWAIT)) continue;
            if (reaps) csandbox_reap_group(process);
            else csandbox_kill_group(process);
        }
    }
    // What helpers have left to this process, as it wished.
    while (atomic_load(&adopts) && waitpid(-1, NULL, WNOHANG) > 0) {}
    errno = saved;
}

void csandbox_end_by_signal(int number) {
    csandbox_note_signal();
    csandbox_end_helpers();
    signal(number, SIG_DFL);
    // Delivered when this handler returns, so that the parent sees which signal it was.
    raise(number);
}

int csandbox_end_helpers_on_signals(void) {
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action)) return errno;
        // Somebody handles it already, or nohup(1) has it ignored.
        if ((action.sa_flags & SA_SIGINFO) || action.sa_handler != SIG_DFL) continue;
        action.sa_handler = csandbox_end_by_signal;
        action.sa_flags = 0;
        sigfillset(&action.sa_mask);
        if (sigaction(numbers[i], &action, NULL)) return errno;
    }
    return 0;
}

int csandbox_adopt_orphans(void) {
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) return errno;
    atomic_store(&adopts, true);
    return 0;
}

void csandbox_reap_group(csandbox_process process) {
    pid_t n;
    do n = waitpid(-process.pid, NULL, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
}

#else
void csandbox_end_helpers(void) {}
int csandbox_end_helpers_on_signals(void) { return ENOSYS; }
void csandbox_end_by_signal(int number) { (void)number; }
void csandbox_note_signal(void) {}
void csandbox_register_exit(void) {}
int csandbox_adopt_orphans(void) { return ENOSYS; }
void csandbox_reap_group(csandbox_process process) { (void)process; }
#endif
