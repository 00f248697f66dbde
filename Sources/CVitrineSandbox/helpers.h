// The list of helpers that are alive. For the files of this module only.
#pragma once
#include "csandbox.h"
#include <signal.h>

struct csandbox_place;

// Before a helper is started: a place in the list. Until csandbox_list_end() no signal interrupts this thread.
// ECANCELED when this process is ending.
int csandbox_list_begin(struct csandbox_place **place, sigset_t *mask);
// After it: lists `process`, or gives the place back when it is NULL.
void csandbox_list_end(struct csandbox_place *place, const sigset_t *mask, const csandbox_process *process);
// The helper has been reaped.
void csandbox_list_remove(csandbox_process process);
// A signal ends this process: an exit() that comes before it waits for it. May be called by a signal handler.
void csandbox_note_signal(void);
// Lets exit() end the helpers, and wait for a signal that ends this process.
void csandbox_register_exit(void);
// The handler of csandbox_end_helpers_on_signals(): ends the helpers, and then the process by the signal.
void csandbox_end_by_signal(int number);
