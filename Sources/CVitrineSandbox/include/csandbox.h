// Process isolation for decoders: spawning a helper, handing it descriptors, and locking it in.
//
// Plain types only; every call answers 0 or a positive errno value unless it says otherwise. On systems other than
// Linux each call answers ENOSYS.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Descriptors a helper finds open when it starts; 0 to 2 are /dev/null.
#define CSANDBOX_SOCKET 3
#define CSANDBOX_MEMORY 4

// A connected pair of packet sockets, closed on exec.
int csandbox_socket_pair(int sockets[2]);
// A connected pair of stream sockets, closed on exec.
int csandbox_stream_pair(int sockets[2]);
// Shared memory of `size` bytes: pages appear when first written, the size is sealed. `*fd` is closed on exec.
int csandbox_shared_memory(size_t size, int *fd);
// Shared memory holding a copy of `bytes`, sealed against every change. `*fd` is closed on exec.
int csandbox_sealed_copy(const void *bytes, size_t count, int *fd);
// Maps `size` bytes of `fd` for reading and writing.
int csandbox_map(int fd, size_t size, void **address);
// Maps `size` bytes of `fd` for reading, privately.
int csandbox_map_readonly(int fd, size_t size, void **address);
void csandbox_unmap(void *address, size_t size);
// Gives the pages of `fd` from `offset` to `offset + count` back to the system; they read as zero afterwards.
int csandbox_release_pages(int fd, size_t offset, size_t count);

// Sends one packet, with a descriptor unless `fd` is negative. Never raises SIGPIPE.
int csandbox_send(int socket, const void *bytes, size_t count, int fd);
// How long csandbox_receive() waits on this end of a socket, at least 1 ms.
int csandbox_set_patience(int socket, int milliseconds);
// Waits for one packet of at most `capacity` bytes as long as csandbox_set_patience() said; `milliseconds` is the same
// number again. ETIMEDOUT when there was none. `*count` is 0 when the other side has closed. `*fd` is the descriptor
// that came along or -1. A packet that is too long or carries more than one descriptor gives EBADMSG.
int csandbox_receive(int socket, int milliseconds, void *bytes, size_t capacity, size_t *count, int *fd);
// Waits until `socket` has a packet or is closed. ETIMEDOUT after `milliseconds` (negative: for ever).
int csandbox_wait_readable(int socket, int milliseconds);

// Writes some of the bytes to a stream socket, without waiting: EAGAIN when it takes none now. Never raises SIGPIPE.
int csandbox_write_some(int socket, const void *bytes, size_t count, size_t *written);
// Waits until a stream socket can be read from or, if `write` is set, written to. ETIMEDOUT after `milliseconds`.
int csandbox_wait_stream(int socket, bool write, int milliseconds);

typedef struct {
    int pid;
    int pidfd; // -1 where the kernel has none (before 5.3)
} csandbox_process;

// Starts `path` with `socket` as descriptor 3, `memory` as 4, 0 to 2 on /dev/null and nothing else open, in a
// process group of its own, with default signal handling.
int csandbox_spawn(const char *path, char *const argv[], char *const envp[], int socket, int memory,
                   csandbox_process *process);
// Finds a shared library that `path` links and the system does not have, and writes its name. False if there is none.
// `envp` has LD_TRACE_LOADED_OBJECTS=1, by which the loader lists the libraries instead of starting the program (ld.so(8)).
bool csandbox_find_missing_library(const char *path, char *const envp[], char *name, size_t size);
// SIGKILL.
void csandbox_kill(csandbox_process process);
// SIGKILL for the process and all of its group that are left. Only before it is reaped.
void csandbox_kill_group(csandbox_process process);
// Reaps the process. `*signal` is what ended it, or 0 with `*code` set. EAGAIN when it still runs and `block` is
// false; ECHILD when somebody else has reaped it.
int csandbox_reap(csandbox_process process, bool block, int *signal, int *code);
// Processor time that the process has used, in nanoseconds; -1 when it has ended.
int64_t csandbox_processor_time(csandbox_process process);
void csandbox_forget(csandbox_process process);
// Waits until all of the process's group that are this process's children have ended. Only after
// csandbox_kill_group(), which it needs not to wait for ever.
void csandbox_reap_group(csandbox_process process);

// Bytes of stack that a helper's first thread may have.
#define CSANDBOX_STACK (8 << 20)

typedef struct {
    uint64_t address_space; // bytes mapped
    uint64_t data;          // bytes of private writable memory, stacks of the first thread aside
    uint64_t cpu_seconds;   // further seconds of processor time
} csandbox_limits;

// Limits a helper from outside for its next piece of work, as it must not change its limits itself. `most` becomes what
// even this process cannot exceed later, processor time aside. `current` remembers what holds; all zero at first.
int csandbox_limit(csandbox_process process, csandbox_limits most, csandbox_limits wanted, csandbox_limits *current);

// Kills and reaps all helpers of this process, and lets none start any more. Called when the process exits.
// Async-signal-safe.
void csandbox_end_helpers(void);
// Has SIGHUP, SIGINT, SIGQUIT, SIGPIPE and SIGTERM end the helpers before they end the process, as far as the process
// leaves them to the system.
int csandbox_end_helpers_on_signals(void);
// Makes this process, not process 1, the parent of its descendants' orphans, for csandbox_reap_group().
int csandbox_adopt_orphans(void);

// Has SIGHUP, SIGINT and SIGTERM written to a pipe, a byte with the number for each; `*fd` is its other end. A signal
// whose action is not the default is left alone. Only once in a process.
int csandbox_catch_termination(int *fd);
// Ends this process by the default action of `signal`.
void csandbox_end_by(int signal);

// Lets all threads share `count` malloc arenas (mallopt(3), M_ARENA_MAX); to be called before there are other threads.
void csandbox_limit_arenas(int count);

// One aligned 64-bit word of shared memory, sequentially consistent.
void csandbox_store(void *word, uint64_t value);
uint64_t csandbox_load(const void *word);

// --- inside the helper -------------------------------------------------------------------------------------------

// Closes every descriptor from `first` on.
void csandbox_close_from(int first);
// One malloc arena; large blocks go back to the system when they are freed.
void csandbox_tune_allocator(void);
// Gives the free memory between allocated blocks back to the system.
void csandbox_return_memory(void);
// Ends this process when the other end of `socket` is gone, even in the middle of a decode.
int csandbox_exit_on_hangup(int socket);
// Leaves this thread, and those it will start, a read-only view of /usr, /opt and where fonts are kept; to be called
// before there are other threads. Where the kernel has no Landlock it fails, and csandbox_enter() forbids all opening.
int csandbox_restrict_files(void);
bool csandbox_may_read_files(void);
// No more files, processes, sockets, core dumps or changes of limits: no new privileges, and a system call filter.
// Unknown calls end the process. Cannot be undone.
int csandbox_enter(void);
// Private memory of this process in bytes: resident pages that no other process shares. `fd` is an open
// /proc/self/statm. 0 when unknown.
size_t csandbox_private_memory(int fd);
