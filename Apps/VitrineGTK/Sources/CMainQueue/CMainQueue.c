#define _GNU_SOURCE
#include "CMainQueue.h"
#include <unistd.h>
#include <sys/syscall.h>

int vitrine_is_first_thread(void) { return syscall(SYS_gettid) == getpid(); }
